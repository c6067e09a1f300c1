//! Installs what cargo cannot: a Python environment for OGBench and gymnasium, tested before it counts as
//! ready.

use crate::error::Error;
use album_base::number::seconds;
use album_data::ogbench::{ENVIRONMENTS, TaskName};
use album_envs::python::{self, REQUIREMENTS};
use album_envs::{
    Answer, EnvError, EnvPool, EnvShape, EnvSpec, Limits, Python, Suite, WorkerError, WorkerPool,
};
use album_report::table::Table;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A working Python environment.
#[derive(Debug, Serialize)]
pub struct Installation {
    /// Its folder.
    pub path: PathBuf,
    /// Its Python.
    pub interpreter: PathBuf,
    /// Versions of its packages.
    pub versions: BTreeMap<String, String>,
    /// The environments that were tried.
    pub environments: Vec<Trial>,
    /// What else is available, and how to use it.
    #[serde(skip)]
    pub advice: String,
}

/// A short trial of an environment.
#[derive(Debug, Serialize)]
pub struct Trial {
    /// Its name.
    pub environment: String,
    /// Dimension of an observation.
    pub observation_dim: usize,
    /// Dimension of an action.
    pub action_dim: usize,
    /// Length of an episode in steps.
    pub horizon: usize,
    /// Time until a worker was ready, with its packages loaded and its environment created.
    pub start_seconds: f64,
    /// Time of the first reset.
    pub reset_seconds: f64,
    /// Mean time of a step.
    pub step_seconds: f64,
}

impl fmt::Display for Installation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table =
            Table::new(["environment", "observation", "action", "horizon", "start", "reset", "step"]);
        for tried in &self.environments {
            let numbers = [tried.observation_dim, tried.action_dim, tried.horizon].map(|n| n.to_string());
            let times = [tried.start_seconds, tried.reset_seconds, tried.step_seconds].map(seconds);
            table = table.row([tried.environment.clone()].into_iter().chain(numbers).chain(times));
        }
        let versions: Vec<String> = self.versions.iter().map(|(name, v)| format!("{name} {v}")).collect();
        let (table, versions) = (table.to_text(), versions.join(", "));
        write!(f, "{table}\n{versions}\nin {}\n{}", self.path.display(), self.advice)
    }
}

/// The fastest task of each family.
const TASKS: [&str; 7] = [
    "pointmaze-medium-navigate-singletask-v0",
    "antmaze-medium-navigate-singletask-v0",
    "humanoidmaze-medium-navigate-singletask-v0",
    "antsoccer-arena-navigate-singletask-v0",
    "cube-single-play-singletask-v0",
    "scene-play-singletask-v0",
    "puzzle-3x3-play-singletask-v0",
];

/// Gymnasium environments without further dependencies: continuous actions, discrete actions, discrete
/// states.
const IDS: [&str; 3] = ["gymnasium:Pendulum-v1", "gymnasium:CartPole-v1", "gymnasium:FrozenLake-v1"];

/// Needed to write Minari files.
const H5PY: &str = "h5py";

const STEPS: usize = 5;

/// Creates an environment with ogbench at `path`, or in the cache; `say` receives progress messages.
pub fn ogbench(path: Option<&Path>, python: &Path, say: &mut dyn FnMut(&str)) -> Result<Installation, Error> {
    let mut trials = Vec::new();
    for task in TASKS {
        let task: TaskName = task.parse().map_err(|e| Error::Config(format!("{e}")))?;
        trials.push((task.environment().name.to_owned(), Suite::ogbench(&task)));
    }
    let others = ENVIRONMENTS.len() - trials.len();
    let advice = format!("one environment of each family works; there are {others} more");
    let (folder, python) = environment(path, python, say)?;
    try_all(folder, &python, trials, advice + &export(path, &python), say)
}

/// Creates the environment of [`ogbench`], which includes gymnasium, or reuses it, and installs further
/// packages. Pinned packages keep their versions.
pub fn gymnasium(
    path: Option<&Path>,
    python: &Path,
    packages: &[String],
    say: &mut dyn FnMut(&str),
) -> Result<Installation, Error> {
    let (folder, python) = environment(path, python, say)?;
    let packages: Vec<String> = [H5PY.to_owned()].into_iter().chain(packages.iter().cloned()).collect();
    python::install(&folder, &packages, REQUIREMENTS, say).map_err(failure)?;
    let mut trials = Vec::new();
    for id in IDS {
        trials.push((id.to_owned(), Suite::gymnasium(&id.parse::<EnvSpec>()?)));
    }
    let advice = "`--env gymnasium:ID` takes any id that is installed".to_owned();
    try_all(folder, &python, trials, advice + &export(path, &python), say)
}

/// An environment outside the cache is found through an environment variable.
fn export(path: Option<&Path>, python: &Python) -> String {
    let line = format!("\nto use it:\n  export {}={}", python::VARIABLE, python.interpreter().display());
    path.map_or_else(String::new, |_| line)
}

fn environment(
    path: Option<&Path>,
    python: &Path,
    say: &mut dyn FnMut(&str),
) -> Result<(PathBuf, Python), Error> {
    let path = match path {
        // Absolute, so that the interpreter is found from any directory.
        Some(path) => std::path::absolute(path).map_err(Error::io(path))?,
        None => python::default_folder().map_err(failure)?,
    };
    let python = python::set_up_from(python, &path, REQUIREMENTS, say).map_err(failure)?;
    Ok((path, python))
}

fn try_all(
    path: PathBuf,
    python: &Python,
    trials: Vec<(String, Suite)>,
    advice: String,
    say: &mut dyn FnMut(&str),
) -> Result<Installation, Error> {
    let (interpreter, mut versions) = (python.interpreter().to_owned(), BTreeMap::new());
    let mut environments = Vec::new();
    for (name, suite) in trials {
        say(&format!("trying {name}"));
        environments.push(try_out(name, suite, python, &mut versions).map_err(failure)?);
    }
    Ok(Installation { path, interpreter, versions, environments, advice })
}

/// Starts an episode and takes a few steps. The worker checks that an OGBench environment has the shapes in
/// album's table.
fn try_out(
    environment: String,
    suite: Suite,
    python: &Python,
    versions: &mut BTreeMap<String, String>,
) -> Result<Trial, EnvError> {
    let start = Instant::now();
    let mut envs = WorkerPool::new(suite, 1, python, Limits::default())?;
    let start_seconds = start.elapsed().as_secs_f64();
    versions.clone_from(envs.versions());
    let start = Instant::now();
    envs.reset(0, 0, false)?;
    answer(&mut envs, &environment)?;
    let reset_seconds = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let EnvShape { observation_dim, actions, horizon } = envs.shape().clone();
    let action_dim = actions.dim();
    let action = vec![0.0; action_dim];
    let mut steps = 0;
    let mut over = false;
    while steps < STEPS && !over {
        envs.step(0, &action)?;
        over = answer(&mut envs, &environment)?;
        steps += 1;
    }
    let step_seconds = start.elapsed().as_secs_f64() / steps as f64;
    Ok(Trial {
        environment,
        observation_dim,
        action_dim,
        horizon,
        start_seconds,
        reset_seconds,
        step_seconds,
    })
}

/// Waits for the answer of slot 0; returns whether the episode has ended.
fn answer(envs: &mut dyn EnvPool, environment: &str) -> Result<bool, EnvError> {
    loop {
        match envs.wait()?.pop() {
            None => {}
            Some((_, Answer::Lost { reason })) => {
                let environment = environment.to_owned();
                return Err(WorkerError::Failed { environment, reason, said: String::new() }.into());
            }
            Some((_, Answer::Stepped(step))) => return Ok(step.terminated || step.truncated),
            Some(_) => return Ok(false),
        }
    }
}

pub(crate) fn failure(error: EnvError) -> Error {
    match &error {
        EnvError::Python(e) if !e.is_io() => Error::Config(error.to_string()),
        _ => Error::Tool(error.to_string()),
    }
}
