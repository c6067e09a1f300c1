//! The OGBench datasets: what they are, how to get them, and which are on this machine.

use crate::error::Error;
use album_base::cache;
use album_base::number::bytes;
use album_data::ogbench::{Environment, RecipeKind, Recording, TaskName};
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// All datasets.
#[derive(Debug, Serialize)]
pub struct Catalogue {
    /// Folders that are searched for the files.
    pub folders: Vec<PathBuf>,
    /// Datasets, by group.
    pub datasets: Vec<Listed>,
}

/// One dataset.
#[derive(Debug, Serialize)]
pub struct Listed {
    /// The name that `album data fetch` takes.
    pub name: String,
    /// The group it is listed in.
    pub group: Group,
    /// The environment it was recorded in.
    pub environment: &'static str,
    /// How it was recorded: `navigate`, `play`, ...
    pub kind: &'static str,
    /// Dimension of an observation.
    pub observation_dim: usize,
    /// Dimension of an action.
    pub action_dim: usize,
    /// Length of an episode in steps.
    pub horizon: usize,
    /// Number of tasks of the environment.
    pub tasks: usize,
    /// The number of the default task.
    pub default_task: usize,
    /// The name of the default task.
    pub task: String,
    /// The paper's behaviour-cloning coefficient, for its ten datasets.
    pub alpha_bc: Option<f64>,
    /// How to get it, quickest first.
    pub get: Vec<Way>,
    /// The file, if it is on this machine.
    pub file: Option<PathBuf>,
    /// Size of the file.
    pub bytes: Option<u64>,
    /// Number of episodes in the file, and whether they are all.
    pub recording: Option<Recording>,
    /// The file of held-out episodes, if it is on this machine.
    pub validation_file: Option<PathBuf>,
}

/// The group a dataset is listed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// The ten datasets of the paper.
    Paper,
    /// PointMaze, the native environment.
    PointMaze,
    /// All others.
    Other,
}

/// A way to get a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Recorded by `album train` on first use.
    FirstUse,
    /// `album data generate`.
    Generate,
    /// `album data fetch`.
    Fetch,
}

impl Way {
    /// The word shown in tables.
    pub fn name(self) -> &'static str {
        match self {
            Way::FirstUse => "first use",
            Way::Generate => "generate",
            Way::Fetch => "fetch",
        }
    }
}

/// Lists all datasets and looks for their files.
pub fn catalogue() -> Result<Catalogue, Error> {
    let folders = vec![cache::folder()?, cache::ogbench_folder()?];
    let mut datasets: Vec<Listed> =
        TaskName::all().filter(TaskName::is_default).map(|task| dataset(&task, &folders)).collect();
    datasets.sort_by_key(|dataset| dataset.group as u8); // stable: keeps the order of families
    Ok(Catalogue { folders, datasets })
}

fn dataset(task: &TaskName, folders: &[PathBuf]) -> Listed {
    let environment = task.environment();
    let kind = task.data_kind();
    let find = |name: String| folders.iter().map(|folder| folder.join(&name)).find(|path| path.is_file());
    let file = find(task.dataset_file());
    // The paper's datasets are `navigate` and `play`, the first kind of each environment.
    let published = album_agents::agents::album::KIND
        .preset_file()
        .ok()
        .and_then(|file| file.paper.get(environment.name));
    let alpha_bc = published.and_then(|section| section.values.get("alpha_bc")?.as_float());
    let alpha_bc = alpha_bc.filter(|_| kind == environment.data_kinds[0]);
    Listed {
        name: task.dataset_name(),
        group: match alpha_bc {
            Some(_) => Group::Paper,
            None if environment.point_maze().is_some() => Group::PointMaze,
            None => Group::Other,
        },
        environment: environment.name,
        kind,
        observation_dim: environment.observation_dim,
        action_dim: environment.action_dim,
        horizon: environment.horizon,
        tasks: Environment::TASKS,
        default_task: environment.default_task,
        task: task.to_string(),
        alpha_bc,
        get: match environment.recipe(kind) {
            Some(RecipeKind::Navigate(_)) => vec![Way::FirstUse, Way::Generate, Way::Fetch],
            Some(RecipeKind::Play | RecipeKind::Walk) => vec![Way::Generate, Way::Fetch],
            None => vec![Way::Fetch],
        },
        recording: file.as_ref().and_then(|path| Recording::read(path, task).ok()),
        bytes: file.as_ref().and_then(|path| path.metadata().ok()).map(|metadata| metadata.len()),
        validation_file: find(task.validation_file()),
        file,
    }
}

impl fmt::Display for Catalogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Fixed widths, so that the groups are aligned and 80 columns are enough.
        let line = |cells: [&str; 8]| {
            let [name, obs, act, steps, task, here, episodes, get] = cells;
            format!("  {name:<31} {obs:>3} {act:>3} {steps:>5} {task:>4} {here:>7} {episodes:>8}  {get}")
        };
        for (group, title) in
            [(Group::Paper, "The paper's ten"), (Group::PointMaze, "PointMaze"), (Group::Other, "Others")]
        {
            writeln!(f, "{title}")?;
            writeln!(f, "{}", line(["", "obs", "act", "steps", "task", "here", "episodes", "get by"]))?;
            for listed in self.datasets.iter().filter(|listed| listed.group == group) {
                let row = line([
                    &listed.name,
                    &listed.observation_dim.to_string(),
                    &listed.action_dim.to_string(),
                    &listed.horizon.to_string(),
                    &listed.default_task.to_string(),
                    &listed.bytes.map(bytes).unwrap_or_else(|| "-".into()),
                    &listed.recording.as_ref().map(episodes).unwrap_or_default(),
                    listed.get[0].name(),
                ]);
                writeln!(f, "{row}")?;
            }
            writeln!(f)?;
        }
        writeln!(f, "  obs, act  dimensions of an observation and of an action")?;
        writeln!(f, "     steps  length of an episode")?;
        writeln!(f, "      task  the default of the five tasks")?;
        writeln!(f, "  episodes  in the file; 50/1000 is a partial recording of a dataset of 1000")?;
        writeln!(f, "      here  size of the file on this machine, looked for in")?;
        for folder in &self.folders {
            writeln!(f, "              {}", folder.display())?;
        }
        writeln!(f, "    get by  fetch: `album data fetch NAME`, which works for all")?;
        write!(f, "            generate: `album data generate NAME`; first use: by `album train`")
    }
}

/// `1000`, or `50/1000` for a partial recording.
fn episodes(recording: &Recording) -> String {
    match recording.published_episodes.filter(|_| recording.complete == Some(false)) {
        Some(published) => format!("{}/{published}", recording.episodes),
        None => recording.episodes.to_string(),
    }
}
