//! Import of files as memory-mapped columns: recordings to be labelled by tasks, and all other logs.

use crate::error::Error;
use album_base::number::seconds;
use album_data::columns::{Import, Imported, import, import_source};
use album_data::ogbench::TaskName;
use album_data::{Description, Format, Source, needs_task};
use album_train::StopFlag;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A dataset to import.
#[derive(Clone, Debug)]
pub struct ImportRequest<'a> {
    /// Files or folders that form one dataset, and how to read them.
    pub source: Source,
    /// The task whose columns and dimensions the data must have.
    pub task: Option<&'a str>,
    /// The folder to create; by default named after the single file.
    pub out: Option<&'a Path>,
    /// Whether an existing imported folder may be replaced.
    pub replace: bool,
}

/// An imported folder of columns.
#[derive(Debug, Serialize)]
pub struct ImportedFolder {
    /// Its path.
    pub folder: PathBuf,
    /// The files that it was made from.
    pub sources: Vec<PathBuf>,
    /// Its contents.
    #[serde(flatten)]
    pub imported: Imported,
    /// What was detected, if the sources are a log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<Description>,
    /// Time taken.
    pub wall_seconds: f64,
}

impl ImportRequest<'_> {
    /// Imports everything, or nothing if the flag is raised. `progress` receives the completed fraction.
    pub fn run(&self, stop: &StopFlag, progress: &mut dyn FnMut(f64)) -> Result<ImportedFolder, Error> {
        let start = Instant::now();
        let task = self.task.map(str::parse::<TaskName>).transpose();
        let environment = task.map_err(|e| Error::Config(e.to_string()))?.map(|task| task.environment());
        let folder = self.target()?;
        let sources = self.recordings()?;
        if self.task.is_some() && sources.is_none() {
            return Err(Error::Usage("--task checks npz files without options for their columns".into()));
        }
        let imported = match &sources {
            Some(sources) => {
                let what = Import { sources, target: &folder, replace: self.replace, environment };
                let imported = import(&what, &mut |done, total| {
                    progress(done as f64 / total.max(1) as f64);
                    !stop.is_set()
                });
                imported?.map(|imported| (imported, None))
            }
            None => import_source(&self.source, &folder, self.replace, &mut |_| !stop.is_set())?
                .map(|(imported, description)| (imported, Some(description))),
        };
        let Some((imported, description)) = imported else {
            return Err(Error::Stopped("import stopped; nothing was written".into()));
        };
        let sources = sources.unwrap_or_else(|| self.source.paths.clone());
        Ok(ImportedFolder {
            folder,
            sources,
            imported,
            description,
            wall_seconds: start.elapsed().as_secs_f64(),
        })
    }

    /// The folder to create.
    fn target(&self) -> Result<PathBuf, Error> {
        match (self.out, &self.source.paths[..]) {
            (Some(out), _) => Ok(out.to_path_buf()),
            (None, [one]) if one.file_name().is_some() => {
                let name = if one.is_dir() { one.clone() } else { one.with_extension("") };
                Ok(PathBuf::from(format!("{}.columns", name.display())))
            }
            _ => Err(Error::Usage("several files need --out DIR, the folder to create".into())),
        }
    }

    /// The npz files in order, if they are recordings whose rewards come from tasks rather than a log.
    fn recordings(&self) -> Result<Option<Vec<PathBuf>>, Error> {
        let plain = self.source == Source { paths: self.source.paths.clone(), ..Source::default() };
        if !plain || self.source.format()? != Format::Npz {
            return Ok(None);
        }
        let mut files = Vec::new();
        for path in &self.source.paths {
            if path.is_dir() { files.extend(slices(path)?) } else { files.push(path.clone()) }
        }
        Ok((self.task.is_some() || needs_task(&files[0])?).then_some(files))
    }
}

/// The npz files of a folder, without validation files.
fn slices(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(Error::io(folder))? {
        let path = entry.map_err(Error::io(folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".npz") && !name.ends_with("-val.npz") && !name.starts_with('.') {
            files.push(path);
        }
    }
    if files.is_empty() {
        let folder = folder.display();
        return Err(Error::Config(format!("{folder}: found no npz file for training in this folder")));
    }
    files.sort();
    Ok(files)
}

impl ImportedFolder {
    /// What was guessed about a log.
    pub fn guesses(&self) -> impl Iterator<Item = &String> {
        self.description.iter().flat_map(|description| &description.guesses)
    }
}

impl fmt::Display for ImportedFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Imported { transitions, episodes, bytes, .. } = &self.imported;
        let (folder, time) = (self.folder.display(), seconds(self.wall_seconds));
        write!(f, "{transitions} transitions in {episodes} episodes, {bytes} bytes, into {folder} in {time}")
    }
}
