//! Records a dataset by its official recipe: training episodes, and a tenth as many for validation.

use crate::error::Error;
use crate::expert;
use album_base::files::{self, Links};
use album_base::number::plural;
use album_data::ogbench::{MazeSize, RecipeKind, TaskName};
use album_envs::play::{self, Outcome, RecordError, Recorder, Split};
use album_envs::{EnvError, Python, navigate};
use album_policy::PolicyFile;
use album_train::StopFlag;
use serde::Serialize;
use std::fmt;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// A dataset to record.
#[derive(Clone, Debug)]
pub struct RecordRequest<'a> {
    /// Any task of the dataset.
    pub task: TaskName,
    /// Number of training episodes; by default as in the official data.
    pub episodes: Option<NonZero<usize>>,
    /// Number of worker processes or threads; the data does not depend on it.
    pub workers: NonZero<usize>,
    /// The recording seed.
    pub seed: u64,
    /// Folder for the two files.
    pub folder: &'a Path,
    /// The ant's policy file; by default [`expert::ANT`].
    pub expert: Option<&'a Path>,
    /// A Python with ogbench; by default the one that `album train` would use.
    pub python: Option<&'a Path>,
}

/// A recorded dataset.
#[derive(Debug, Serialize)]
pub struct Recorded {
    /// The dataset's name.
    pub dataset: String,
    /// The recording seed.
    pub seed: u64,
    /// The training episodes.
    pub train: RecordedFile,
    /// The validation episodes.
    pub validation: RecordedFile,
    /// Versions of the packages that recorded the data; `None` for native environments and files that
    /// existed.
    pub packages: Option<String>,
    /// Time taken.
    pub wall_seconds: f64,
}

/// A file of recorded episodes.
#[derive(Debug, Serialize)]
pub struct RecordedFile {
    /// Its path.
    pub path: PathBuf,
    /// Number of episodes.
    pub episodes: usize,
    /// Rows per episode.
    pub rows: usize,
    /// Whether the file is new.
    pub made: bool,
}

impl fmt::Display for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.train, self.validation)
    }
}

impl fmt::Display for RecordedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.made { "made" } else { "kept, recorded earlier by the same recipe:" };
        let episodes = plural(self.episodes, "episode", "episodes");
        write!(f, "{verb} {} ({episodes} of {} rows)", self.path.display(), self.rows)
    }
}

/// Progress of a recording.
#[derive(Debug)]
pub enum Event<'a> {
    /// Recording of this file starts.
    Begun(String),
    /// An event of the recording processes.
    Play(play::Event<'a>),
}

impl RecordRequest<'_> {
    /// Records what is missing until the flag is raised; the same call resumes.
    pub fn record(&self, stop: &StopFlag, observer: &mut dyn FnMut(Event<'_>)) -> Result<Recorded, Error> {
        let start = Instant::now();
        let (environment, kind) = (self.task.environment(), self.task.data_kind());
        let recorded = match environment.recipe(kind) {
            Some(RecipeKind::Navigate(size)) => self.navigate(size)?,
            Some(RecipeKind::Play | RecipeKind::Walk) => {
                let recipe =
                    play::Recipe::published(environment, kind, self.seed).ok_or_else(|| self.refusal())?;
                let episodes = self.episodes.map_or(recipe.episodes, NonZero::get);
                let expert = self.walker(&recipe)?;
                self.play(&play::Recipe { episodes, expert, ..recipe }, stop, observer)?
            }
            None => return Err(self.refusal()),
        };
        Ok(Recorded { wall_seconds: start.elapsed().as_secs_f64(), ..recorded })
    }

    /// The policy file of the walking body, if the recipe has one.
    fn walker(&self, recipe: &play::Recipe) -> Result<Option<Arc<[u8]>>, Error> {
        if !recipe.needs_expert() {
            return match self.expert {
                None => Ok(None),
                Some(_) => Err(Error::Usage(format!("--expert: no expert is needed for {}", recipe.name()))),
            };
        }
        let Some(path) = self.expert else { return Ok(Some(expert::ANT.into())) };
        let bytes = files::read(path, Links::Follow, files::LONGEST_TEXT).map_err(Error::io(path))?;
        let policy =
            PolicyFile::from_bytes(&bytes).map_err(|e| Error::Config(format!("{}: {e}", path.display())))?;
        let (found, expected) = (policy.manifest.observation_dim(), recipe.environment.observation_dim);
        match found == expected {
            true => Ok(Some(bytes.into())),
            false => Err(Error::Config(format!(
                "{}: found a policy with {found} inputs, expected {expected}: the body without x and y, and a direction",
                path.display()
            ))),
        }
    }

    fn refusal(&self) -> Error {
        let name = self.task.dataset_name();
        let why = match self.task.environment().point_maze() {
            Some(_) => format!("album has no recipe for `{}` data", self.task.data_kind()),
            None => "its recipe needs expert policies that are not in the package ogbench".to_owned(),
        };
        Error::Config(format!(
            "{name} cannot be recorded: {why}; `album data fetch {name}` downloads the official files"
        ))
    }

    fn recorded(&self, [train, validation]: [RecordedFile; 2], packages: Option<String>) -> Recorded {
        let dataset = self.task.dataset_name();
        Recorded { dataset, seed: self.seed, train, validation, packages, wall_seconds: 0.0 }
    }

    /// Records PointMaze, which is native and takes seconds.
    fn navigate(&self, size: MazeSize) -> Result<Recorded, Error> {
        let published = navigate::Recipe::train(size, self.seed);
        let episodes = self.episodes.map_or(published.episodes, NonZero::get);
        let train = navigate::Recipe { episodes, ..published };
        let validation = navigate::Recipe {
            episodes: episodes.div_ceil(10),
            ..navigate::Recipe::validation(size, self.seed)
        };
        std::fs::create_dir_all(self.folder).map_err(Error::io(self.folder))?;
        let file = |recipe: &navigate::Recipe, name: String| {
            let path = self.folder.join(name);
            let made = navigate::cached(&path, recipe, self.workers).map_err(env_error)?;
            Ok::<_, Error>(RecordedFile { path, episodes: recipe.episodes, rows: recipe.rows, made })
        };
        let files =
            [file(&train, self.task.dataset_file())?, file(&validation, self.task.validation_file())?];
        Ok(self.recorded(files, None))
    }

    fn play(
        &self,
        recipe: &play::Recipe,
        stop: &StopFlag,
        observer: &mut dyn FnMut(Event<'_>),
    ) -> Result<Recorded, Error> {
        let is_recorded = |split| recipe.is_recorded(self.folder, split).map_err(record_error);
        let (train, validation) = (is_recorded(Split::Train)?, is_recorded(Split::Validation)?);
        let packages = if train && validation {
            // Left over if an earlier process was killed just before it finished.
            let _ = std::fs::remove_dir_all(recipe.work_folder(self.folder));
            None
        } else {
            Some(self.missing(recipe, stop, observer)?)
        };
        let file = |split, is_recorded: bool| RecordedFile {
            path: recipe.file(self.folder, split),
            episodes: recipe.episodes_of(split),
            rows: recipe.rows,
            made: !is_recorded,
        };
        Ok(self.recorded([file(Split::Train, train), file(Split::Validation, validation)], packages))
    }

    /// Records what is missing, and returns the versions of the packages used.
    fn missing(
        &self,
        recipe: &play::Recipe,
        stop: &StopFlag,
        observer: &mut dyn FnMut(Event<'_>),
    ) -> Result<String, Error> {
        let python = Python::find(self.python).map_err(env_error)?;
        std::fs::create_dir_all(self.folder).map_err(Error::io(self.folder))?;
        observer(Event::Begun(recipe.to_string()));
        let outcome = Recorder {
            recipe,
            folder: self.folder,
            python: &python,
            workers: self.workers,
            chunk: Recorder::CHUNK,
            limits: Recorder::LIMITS,
            stop: &|| stop.is_set(),
            observer: &mut |event| observer(Event::Play(event)),
        }
        .record();
        match outcome.map_err(record_error)? {
            Outcome::Done { packages } => Ok(packages),
            Outcome::Stopped { episodes, of } => Err(Error::Stopped(format!(
                "stopped with {episodes} of {of} episodes kept in {}; the same command resumes",
                recipe.work_folder(self.folder).display()
            ))),
        }
    }
}

fn env_error(error: EnvError) -> Error {
    record_error(error.into())
}

fn record_error(error: RecordError) -> Error {
    match error.is_io() {
        true => Error::Tool(error.to_string()),
        false => Error::Load(error.to_string()),
    }
}
