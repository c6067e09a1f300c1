//! What `train`, `resume` and `eval` share: from the configuration of a run to its parts.

use crate::config::{self, RunConfig};
use crate::failure::Failure;
use album_agents::Learner;
use album_data::Dataset;
use album_data::ogbench::TaskName;
pub use album_envs::is_native;
use album_envs::{EnvPool, open_pool};
use album_nn::Pool;
use album_train::{Evaluator, Identity, RunDir};
use std::path::{Path, PathBuf};

/// What a run may use of the machine. Results do not depend on it.
#[derive(clap::Args)]
pub struct Resources {
    /// Threads that train; results do not depend on them (0: all processors)
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// Processes that run episodes of OGBench's environments; results do not depend on them (0: all processors)
    #[arg(long, default_value_t = 0)]
    pub workers: usize,
    /// A Python that has the package ogbench (default: $ALBUM_PYTHON, else that of `album setup ogbench`)
    #[arg(long)]
    pub python: Option<PathBuf>,
}

/// Reads the configuration of a run.
pub fn read_config(run: &Path) -> Result<RunConfig, Failure> {
    let text = RunDir::config_of(run)?;
    config::read(&text, &run.join("config.toml").display().to_string())
}

/// The task of a run.
pub fn task(config: &RunConfig) -> Result<TaskName, Failure> {
    config.task.parse().map_err(|e| Failure::Config(format!("{e}")))
}

/// A fresh agent.
pub fn agent(config: &RunConfig, data: &Dataset, pool: &Pool) -> Result<Learner, Failure> {
    Ok(Learner::new(config.setup()?.as_ref(), data, config.train.steps, config.seed, pool)?)
}

/// What a checkpoint must agree with: all of the configuration but the place of the data.
pub fn identity(config: &RunConfig, data: &Dataset) -> Result<Identity, Failure> {
    let same = RunConfig { data: None, ..config.clone() };
    Ok(Identity::new(config.task.as_str(), &config.agent, config.seed, data, same.to_toml()?))
}

/// The environments of a task: native ones for all episodes at once, or worker processes.
pub fn environments(task: &TaskName, episodes: usize, args: &Resources) -> Result<Box<dyn EnvPool>, Failure> {
    let count = if is_native(task) { episodes } else { processes(args.workers).min(episodes) };
    open_pool(task, count, args.python.as_deref()).map_err(Failure::from)
}

/// This many, or as many as there are processors.
pub fn processes(asked: usize) -> usize {
    match asked {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        n => n,
    }
}

/// How a run is evaluated. Training goes on meanwhile where there are processors for both.
pub fn evaluator(
    config: &RunConfig,
    task: &TaskName,
    args: &Resources,
) -> Result<Option<Evaluator>, Failure> {
    let episodes = config.train.eval_episodes;
    if episodes == 0 {
        return Ok(None);
    }
    let envs = environments(task, episodes, args)?;
    let background = !is_native(task) && processes(args.threads) + envs.workers() <= processes(0);
    Ok(Some(Evaluator { envs, episodes, paths: if is_native(task) { 10 } else { 0 }, background }))
}
