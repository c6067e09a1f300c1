//! Inspection of any data source.

use super::{Inspection, Warning};
use crate::Error;
use crate::problem::Problem;
use album_data::ogbench::{Environment, TaskName, looks_like};
use album_data::{
    DataError, Description, Format, Labels, Source, Unchecked, has_own_rewards, load_unchecked, needs_task,
};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The result of an inspection: the JSON object of `album data inspect`, or text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileInspection {
    /// The first file.
    pub file: PathBuf,
    /// Total size of the files in bytes.
    pub bytes: u64,
    /// The task that defined the rewards.
    pub task: Option<String>,
    /// Whether the rewards are the files' own.
    pub own_rewards: bool,
    /// The inspection of the contents.
    #[serde(flatten)]
    pub found: Inspection,
}

/// The dataset under examination.
struct Patient {
    data: Unchecked,
    description: Description,
    task: Option<TaskName>,
    own_rewards: bool,
    /// Warnings known before the data is examined.
    first_warnings: Vec<Warning>,
}

impl FileInspection {
    /// Examines a source; a task can label a single OGBench recording.
    pub fn new(source: &Source, task: Option<&str>, gamma: f64) -> Result<Self, Error> {
        if !(0.0..1.0).contains(&gamma) {
            return Err(Error::Usage(format!("--gamma is {gamma}; expected at least 0 and less than 1")));
        }
        let source = &by_name(source)?;
        let format = source.format()?;
        let plain = *source == Source { paths: source.paths.clone(), ..Source::default() };
        let recording = match &source.paths[..] {
            [one] if plain && (format == Format::Columns || format == Format::Npz && one.is_file()) => {
                (task.is_some() || needs_task(one)?).then_some(one.as_path())
            }
            _ => None,
        };
        let patient = match recording {
            Some(file) => of_recording(file, format, task)?,
            None if task.is_some() => {
                return Err(Error::Usage(
                    "--task labels one npz file or imported folder without options for its columns".into(),
                ));
            }
            None => {
                let (data, description) = source.read_unchecked()?;
                Patient { data, description, task: None, own_rewards: true, first_warnings: Vec::new() }
            }
        };
        let Patient { data, description, task, own_rewards, first_warnings } = patient;
        let mut found = Inspection::of(&data, description, gamma)?;
        found.format = format;
        let diagnosis = &mut found.diagnosis;
        diagnosis.warnings.splice(0..0, first_warnings);
        if let Some(file) = recording.filter(|_| diagnosis.labels.is_none()) {
            let like = looks_like(file)?;
            diagnosis.warnings.push(Warning { code: "no_labels", message: no_labels(&like) });
        }
        let mut size = 0;
        for file in source.files()? {
            size += bytes(&file).map_err(Error::io(&file))?;
        }
        Ok(Self {
            file: source.paths[0].clone(),
            bytes: size,
            task: task.map(|task| task.to_string()),
            own_rewards,
            found,
        })
    }
}

/// Finds the file of a dataset that is given by its name, e.g. `cube-single-play-v0`, where `album train` looks for it.
fn by_name(source: &Source) -> Result<Source, Error> {
    let named = match &source.paths[..] {
        [one] if !one.exists() => one.to_str().and_then(|name| TaskName::of_dataset(name).ok()),
        _ => None,
    };
    let Some(task) = named else { return Ok(source.clone()) };
    let file = Problem::Ogbench(task).locate(None)?.ready()?;
    Ok(Source { paths: vec![file], ..source.clone() })
}

/// An OGBench recording, whose rewards come from a task.
fn of_recording(file: &Path, format: Format, asked: Option<&str>) -> Result<Patient, Error> {
    let asked = asked.map(|name| task(name, file)).transpose()?;
    let own_rewards = asked.is_none() && has_own_rewards(file)?;
    let named = TaskName::of_file(file);
    let mut task = if own_rewards { None } else { asked.or(named) };
    let labels = match &task {
        Some(task) => Labels::Task(task),
        None if own_rewards => Labels::Own,
        None => Labels::None,
    };
    let mut first_warnings = Vec::new();
    let data = match load_unchecked(file, labels) {
        // A task guessed from the file name is only a hint.
        Err(
            error @ (DataError::OtherEnvironment { .. }
            | DataError::WrongShape { .. }
            | DataError::Missing { .. }),
        ) if asked.is_none() && task.is_some() => {
            task = None;
            let message = format!("the contents are not what the name of the file says: {error}");
            first_warnings.push(Warning { code: "other_environment", message });
            load_unchecked(file, Labels::None)?
        }
        result => result?,
    };
    if let (Some(asked), Some(named)) = (asked, named)
        && asked.environment() != named.environment()
    {
        let message = format!(
            "the file is named after {}, the task is one of {}: its goals may lie elsewhere",
            named.environment().name,
            asked.environment().name
        );
        first_warnings.insert(0, Warning { code: "file_name", message });
    }
    let description = Description::of(&data.dataset, format);
    Ok(Patient { data, description, task, own_rewards, first_warnings })
}

/// The size of a file, or of the files in a folder.
fn bytes(path: &Path) -> std::io::Result<u64> {
    if !path.is_dir() {
        return Ok(path.metadata()?.len());
    }
    let mut sum = 0;
    for entry in std::fs::read_dir(path)? {
        let path = entry?.path();
        sum += bytes(&path)?;
    }
    Ok(sum)
}

/// The task that `--task` refers to for this file.
fn task(name: &str, file: &Path) -> Result<TaskName, Error> {
    let Ok(number) = name.parse::<usize>() else {
        return name.parse().map_err(|e| Error::Config(format!("{e}")));
    };
    if !(1..=Environment::TASKS).contains(&number) {
        return Err(Error::Usage(format!("--task is {number}; expected 1 to {}", Environment::TASKS)));
    }
    let named = TaskName::of_file(file).ok_or_else(|| {
        Error::Usage(format!(
            "--task {number}: the name of {} is not that of a dataset, such as cube-single-play-v0.npz; give the \
             whole name of the task, such as cube-single-play-singletask-task{number}-v0",
            file.display()
        ))
    })?;
    Ok(named.with_number(number))
}

fn no_labels(like: &[&Environment]) -> String {
    let mut message =
        "the file has no rewards, and no task was named with --task: nothing is said about goals and \
                       values"
            .to_owned();
    if let Some(first) = like.first() {
        let names: Vec<&str> = like.iter().map(|environment| environment.name).collect();
        let kind = first.data_kinds[0];
        message += &format!(
            "; it looks like data of {}: try --task {}-{kind}-singletask-v0",
            names.join(", "),
            first.name
        );
    }
    message
}
