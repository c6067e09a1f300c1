//! The data to learn from, and how a policy is evaluated.

use crate::error::Error;
use crate::mudworld::{self, MudWorldProblem};
use crate::own::Own;
use crate::resources::Resources;
use album_base::cache;
use album_data::ogbench::{MazeSize, RecipeKind, TaskName};
use album_data::{Dataset, Labels, SourceData, load, validation_beside};
use album_envs::navigate::{Recipe, cached};
use album_envs::{EnvPool, Maze, Python, is_native, open_env, open_pool};
use album_train::ValuePoints;
use std::fmt;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Native datasets are recorded with this seed, so that everyone trains on the same data.
const SEED: u64 = 0;

/// A dataset to learn from and, if there is one, an environment to evaluate the policy in.
///
/// The name is parsed once, at the edge of the program; from then on the problem is this type.
///
/// ```
/// use album::Problem;
///
/// let problem: Problem = "cube-single-play-singletask-task2-v0".parse()?;
/// assert_eq!(problem.environment(), "cube-single");
/// assert!(!problem.is_native());
/// # Ok::<(), album::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    /// An OGBench task. PointMaze is native; all others run in the Python package.
    Ogbench(TaskName),
    /// The user's own log.
    Own(Box<Own>),
    /// A gridworld whose exact values are known.
    MudWorld(MudWorldProblem),
}

impl FromStr for Problem {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        if let Some(world) = MudWorldProblem::parse(name) {
            return world.map(Problem::MudWorld);
        }
        name.parse().map(Problem::Ogbench).map_err(|e| Error::Config(format!("{e}")))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Ogbench(task) => task.fmt(f),
            Problem::Own(own) => f.write_str(&own.name),
            Problem::MudWorld(world) => world.fmt(f),
        }
    }
}

impl From<TaskName> for Problem {
    fn from(task: TaskName) -> Self {
        Problem::Ogbench(task)
    }
}

/// The loaded data of a problem.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The training data.
    pub data: Dataset,
    /// Held-out episodes.
    pub held_out: Option<Dataset>,
    /// Arrays and rows of the file that are ignored, with reasons.
    pub warnings: Vec<String>,
}

/// The location of a problem's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// An existing file or folder of columns.
    Found(PathBuf),
    /// Recorded here on first use.
    Recorded(PathBuf, MazeSize),
}

impl Problem {
    /// The default of `album train`, which needs no file and no package: the way to the goal leads around walls.
    pub const DEFAULT: &str = "pointmaze-medium-navigate-singletask-task3-v0";

    /// The name of the environment in presets.
    pub fn environment(&self) -> &'static str {
        match self {
            Problem::Ogbench(task) => task.environment().name,
            Problem::Own(_) => "own",
            Problem::MudWorld(_) => "mudworld",
        }
    }

    /// The OGBench task, if it is one.
    pub fn task(&self) -> Option<&TaskName> {
        match self {
            Problem::Ogbench(task) => Some(task),
            Problem::Own(_) | Problem::MudWorld(_) => None,
        }
    }

    /// The data and discount to choose hyperparameters from, for problems that nobody has tuned for.
    pub(crate) fn untuned(&self) -> Result<Option<(Dataset, Option<f64>)>, Error> {
        Ok(match self {
            Problem::Ogbench(_) => None,
            Problem::Own(own) => Some((own.read()?.dataset.clone(), None)),
            Problem::MudWorld(world) => Some((world.data()?, Some(mudworld::GAMMA))),
        })
    }

    /// Whether the environment needs no external package.
    pub fn is_native(&self) -> bool {
        matches!(self, Problem::MudWorld(_)) || self.task().is_some_and(is_native)
    }

    /// Whether there is an environment to evaluate policies in.
    pub fn has_environment(&self) -> bool {
        match self {
            Problem::Ogbench(_) | Problem::MudWorld(_) => true,
            Problem::Own(own) => own.env.is_some(),
        }
    }

    /// The returns that correspond to scores of 0 and 100, if given.
    pub fn score_range(&self) -> Option<[f64; 2]> {
        match self {
            Problem::Ogbench(_) | Problem::MudWorld(_) => None,
            Problem::Own(own) => own.score_range,
        }
    }

    /// Finds the data, in `file` or in its default place, without recording any.
    pub fn locate(&self, file: Option<&Path>) -> Result<Location, Error> {
        if let Some(path) = file {
            return Ok(Location::Found(path.to_path_buf()));
        }
        let task = match self {
            Problem::Ogbench(task) => task,
            Problem::Own(own) => {
                return Ok(Location::Found(own.source.paths.first().cloned().unwrap_or_default()));
            }
            Problem::MudWorld(_) => return Ok(Location::Found(PathBuf::new())),
        };
        let places =
            [cache::folder()?, cache::ogbench_folder()?].map(|folder| folder.join(task.dataset_file()));
        if let Some(RecipeKind::Navigate(size)) = task.environment().recipe(task.data_kind()) {
            let [path, _] = places;
            let fetched = path.is_file() && was_fetched(&path);
            return Ok(if fetched { Location::Found(path) } else { Location::Recorded(path, size) });
        }
        let found = places.iter().find(|path| path.is_file()).cloned();
        found.map(Location::Found).ok_or_else(|| {
            Error::Config(format!(
                "no data for {task}: looked for {} and {}; get it with `{}`, or give the path of its file (`album train --data FILE`)",
                places[0].display(),
                places[1].display(),
                self.how_to_get()
            ))
        })
    }

    /// Loads the data from `file` or its default place, recording a native environment's data first if
    /// needed. Holds out a fraction of the episodes, or loads the validation file beside the data if there is
    /// one.
    pub fn load(&self, file: Option<&Path>, holdout: f64, seed: u64) -> Result<Loaded, Error> {
        let split = |data: Dataset, warnings: Vec<String>| {
            let (data, held_out) = data.hold_out(holdout, seed).map_err(|e| Error::Config(e.to_string()))?;
            Ok(Loaded { data, held_out: Some(held_out), warnings })
        };
        let whole = |data: Dataset, warnings: Vec<String>| match holdout {
            0.0 => Ok(Loaded { data, held_out: None, warnings }),
            _ => split(data, warnings),
        };
        let task = match self {
            Problem::Ogbench(task) => task,
            Problem::Own(own) => {
                let SourceData { dataset, warnings, .. } = own.read()?.clone();
                let only = dataset.action(0);
                if (1..dataset.len()).all(|t| dataset.action(t) == only) {
                    return Err(Error::Load(format!(
                        "{}: found the same action in all {} transitions, expected at least two to choose between",
                        own.name,
                        dataset.len()
                    )));
                }
                return whole(dataset, warnings);
            }
            Problem::MudWorld(world) => return whole(world.data()?, Vec::new()),
        };
        let path = self.locate(file)?.ready()?;
        let load = |path: &Path| load(path, Labels::Task(task)).map_err(Error::Data);
        let album_data::Loaded { dataset: data, warnings } = load(&path)?;
        if holdout > 0.0 {
            return split(data, warnings);
        }
        let held_out =
            validation_beside(&path).map(|path| load(&path)).transpose()?.map(|loaded| loaded.dataset);
        Ok(Loaded { data, held_out, warnings })
    }

    /// The command that gets the data.
    pub fn how_to_get(&self) -> String {
        let Some(task) = self.task() else { return "album data inspect SOURCE".into() };
        let recorded = task.environment().recipe(task.data_kind()).is_some();
        format!("album data {} {}", if recorded { "generate" } else { "fetch" }, task.dataset_name())
    }

    /// The environments to evaluate policies in: native ones for all episodes at once, or worker processes.
    pub fn environments(&self, episodes: usize, resources: &Resources) -> Result<Box<dyn EnvPool>, Error> {
        let task = match self {
            Problem::Ogbench(task) => task,
            Problem::MudWorld(world) => return Ok(world.environments(episodes)),
            Problem::Own(own) => {
                let Some(env) = &own.env else {
                    return Err(Error::Config(format!(
                        "{self} has no environment to evaluate in; train with --env gymnasium:ID or --env \
                         FILE.py:FUNCTION"
                    )));
                };
                return Ok(open_env(env, resources.workers().min(episodes), resources.python.as_deref())?);
            }
        };
        let count = if self.is_native() { episodes } else { resources.workers().min(episodes) };
        Ok(open_pool(task, count, resources.python.as_deref())?)
    }

    /// Checks that [`Self::environments`] can succeed, without starting anything.
    pub fn check_environments(&self, resources: &Resources) -> Result<(), Error> {
        if self.has_environment() && !self.is_native() {
            Python::find(resources.python.as_deref())?;
        }
        Ok(())
    }

    /// The points at which V is recorded for value maps: a grid over the maze, if observations begin with the
    /// position.
    pub fn value_points(&self, observation_dim: usize) -> Option<ValuePoints> {
        let size = self.task()?.environment().maze()?;
        Some(ValuePoints::positions(&Maze::new(size).sample_grid(4), observation_dim))
    }
}

impl Location {
    /// The path, whether or not it exists yet.
    pub fn path(&self) -> &Path {
        match self {
            Location::Found(path) | Location::Recorded(path, _) => path,
        }
    }

    /// The path of the data, recorded now if needed.
    pub fn ready(self) -> Result<PathBuf, Error> {
        match self {
            Location::Found(path) => Ok(path),
            Location::Recorded(path, size) => {
                if let Some(folder) = path.parent() {
                    std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
                }
                let threads = std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
                cached(&path, &Recipe::train(size, SEED), threads)?;
                Ok(path)
            }
        }
    }
}

/// Whether `album data fetch` downloaded the file, which leaves a record beside it.
fn was_fetched(path: &Path) -> bool {
    let mut note = path.as_os_str().to_owned();
    note.push(".json");
    Path::new(&note).is_file()
}
