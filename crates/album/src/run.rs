//! Training runs: from a configuration to a directory with a trained agent, and back to its policy.

mod text;
mod trained;

pub use trained::Trained;
pub(crate) use trained::action_space_of;
use trained::{agent_of, of_checkpoint};

use crate::config::{self, RunConfig, Sampling, TrainConfig};
use crate::differences::Differences;
use crate::error::Error;
use crate::exact::Exact;
use crate::names::{self, Names};
use crate::own;
use crate::problem::{Loaded, Problem};
use crate::report;
use crate::resources::{Resources, processors};
use album_agents::{Agent, Learner, Metrics};
use album_base::atomic::AtomicFolder;
use album_base::files::{self, Links};
use album_base::number::grouped;
use album_data::{Dataset, Segments};
use album_envs::EnvPool;
use album_nn::Pool;
use album_tabular::JoinedStates;
use album_train::checkpoint::{self, Checkpoint, Progress};
use album_train::{
    Evaluator, Event, Identity, Probe, Records, RunDir, RunResult, Schedule, StopFlag, TrainError, Trainer,
};
use album_xla::Group;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Locked by the process that works on a run; not part of the run itself.
const LOCK: &str = "run.lock";
/// Number of evaluation paths that the report shows for native environments.
const PATHS: usize = 10;

/// A run that is ready to start or resume; everything that can be checked has been checked.
pub struct Run {
    config: RunConfig,
    loaded: Loaded,
    agent: Learner,
    evaluator: Option<Evaluator>,
    directory: RunDir,
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run")
            .field("path", &self.path())
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl Run {
    /// Starts a run in a new directory. On an error, no directory is left behind.
    ///
    /// Values diverge to minus infinity if the boundedness condition is violated; that is refused unless
    /// `allow_unbounded`.
    pub fn begin(
        config: RunConfig,
        directory: &Path,
        allow_unbounded: bool,
        resources: &Resources,
    ) -> Result<Self, Error> {
        Self::begin_like(config, directory, allow_unbounded, resources, None)
    }

    /// The same beside a run of another seed, whose data it shares.
    pub(crate) fn begin_like(
        config: RunConfig,
        directory: &Path,
        allow_unbounded: bool,
        resources: &Resources,
        other: Option<&Run>,
    ) -> Result<Self, Error> {
        schedule(&config).check()?;
        if !allow_unbounded && let Some(sides) = config.violated_boundedness()? {
            return Err(Error::Config(format!(
                "the boundedness condition is violated, values would fall without bound: {sides}; raise lambda_k or \
                 lambda_b, or pass --allow-unbounded"
            )));
        }
        let loaded = match other {
            // Which episodes are held out is drawn by the seed.
            Some(other) if config.train.holdout == 0.0 => other.loaded.clone(),
            _ => load(&config)?,
        };
        let data = &loaded.data;
        let agent = match &config.from {
            Some(from) => agent_of(from, &config, data, resources)?,
            None => new_agent(&config, data, resources)?,
        };
        Segments::new(agent.segments()).and_then(|segments| segments.fits(data)).map_err(TrainError::from)?;
        let evaluator = evaluator(&config, data, resources)?;
        let directory = RunDir::create(directory, &config.to_toml()?)?;
        let run = Run { config, loaded, agent, evaluator, directory };
        run.complete_beginning()?;
        Ok(run)
    }

    /// Writes what a run has before its first step, unless it is there: a run that was killed in its first moment gets it
    /// when it is resumed.
    fn complete_beginning(&self) -> Result<(), Error> {
        if let Problem::Own(own) = &self.config.problem
            && !names::are_there(self.path())
        {
            names::write(self.path(), &own.read()?.description)?;
        }
        let checkpoints = self.directory.checkpoints();
        if self.config.from.is_some() && checkpoint::list(&checkpoints)?.is_empty() {
            // From here on, the run directory is self-contained.
            checkpoint::save(&checkpoints, &self.identity()?, &Progress::default(), &self.agent.state())?;
        }
        Ok(())
    }

    /// Opens a stopped run, to resume exactly where it was; `steps` changes its length. A decaying learning
    /// rate then follows the new length.
    pub fn resume(directory: &Path, steps: Option<u64>, resources: &Resources) -> Result<Self, Error> {
        let mut config = read_config(directory)?;
        let directory = RunDir::open(directory)?;
        let latest = checkpoint::latest(&directory.checkpoints())?.checkpoint;
        if let Some(steps) = steps {
            let done = latest.as_ref().map_or(0, Checkpoint::step);
            if steps < done.max(1) {
                return Err(Error::Config(format!(
                    "--steps {steps}: the run has done {done} steps already; expected at least as many"
                )));
            }
            config.train.steps = steps;
        }
        schedule(&config).check()?;
        refuse_moved_log(&config)?;
        let loaded = load(&config)?;
        let agent = match (&config.from, latest) {
            (Some(_), Some(checkpoint)) => of_checkpoint(&checkpoint, &config, resources)?,
            // Killed before its first checkpoint, which would have held the other run's agent.
            (Some(from), None) => agent_of(from, &config, &loaded.data, resources)?,
            (None, _) => new_agent(&config, &loaded.data, resources)?,
        };
        let evaluator = evaluator(&config, &loaded.data, resources)?;
        if steps.is_some() {
            directory.write("config.toml", config.to_toml()?.as_bytes())?;
        }
        let run = Run { config, loaded, agent, evaluator, directory };
        run.complete_beginning()?;
        Ok(run)
    }

    /// The same run, evaluated in environments that the caller provides.
    pub fn judged_in(mut self, envs: Box<dyn EnvPool>) -> Result<Self, Error> {
        let data = &self.loaded.data;
        envs.shape().check_data("the environment", data.observation_dim(), data.action_space())?;
        let (episodes, score_range) = (self.config.train.eval_episodes, self.config.problem.score_range());
        let evaluator = Evaluator { envs, episodes, paths: 0, background: false, score_range };
        self.evaluator = (episodes > 0).then_some(evaluator);
        Ok(self)
    }

    /// The same run, trained on the device of a group together with its other runs; with its data there, too, if asked for.
    pub(crate) fn on(mut self, group: &Arc<Group>, with_data: bool) -> Result<Self, Error> {
        self.agent.join(group)?;
        if with_data {
            self.agent.lend(&self.loaded.data)?;
        }
        Ok(self)
    }

    fn identity(&self) -> Result<Identity, Error> {
        let Loaded { data, held_out, .. } = &self.loaded;
        identity(&self.config, data.content_hash(), held_out.as_ref().map(Dataset::content_hash))
    }

    /// The configuration of the run.
    pub fn config(&self) -> &RunConfig {
        &self.config
    }

    /// Approximate memory in bytes that training needs besides the data.
    pub fn memory(&self) -> u64 {
        self.agent.memory()
    }

    /// The training data.
    pub fn data(&self) -> &Dataset {
        &self.loaded.data
    }

    /// The held-out episodes.
    pub fn held_out(&self) -> Option<&Dataset> {
        self.loaded.held_out.as_ref()
    }

    /// What is ignored in the data file, and why.
    pub fn warnings(&self) -> &[String] {
        &self.loaded.warnings
    }

    /// The run directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Trains to the end or until the flag is raised, and writes the report.
    pub fn train(mut self, stop: StopFlag, observer: &mut dyn FnMut(&Event<'_>)) -> Result<Finished, Error> {
        let identity = self.identity()?;
        let untuned = !matches!(self.config.problem, Problem::Ogbench(_));
        let gamma = self.config.setup()?.common().gamma;
        let exact = if untuned { Exact::of(&self.loaded.data, gamma)? } else { None };
        let probe = exact.as_ref().map(|exact| {
            Box::new(|agent: &mut dyn Agent, metrics: &mut Metrics| exact.measure(agent, metrics))
                as Box<Probe<'_>>
        });
        let result = Trainer {
            agent: &mut self.agent,
            dataset: &self.loaded.data,
            groups: groups(self.config.train.sampling, &self.loaded.data),
            held_out: self.loaded.held_out.as_ref(),
            run: &self.directory,
            identity: &identity,
            schedule: schedule(&self.config),
            evaluator: self.evaluator,
            value_points: self.config.problem.value_points(self.loaded.data.observation_dim()),
            watch: untuned,
            probe,
            stop,
            observer,
        }
        .train()?;
        if untuned {
            let names = match &self.config.problem {
                Problem::Own(own) => Names::of(&own.read()?.description),
                _ => Names::default(),
            };
            let (data, held_out) = match &self.loaded.held_out {
                Some(held_out) => (held_out, true),
                None => (&self.loaded.data, false),
            };
            let mut differences = Differences::of(&mut self.agent, data, held_out, &names);
            differences.exact = exact.as_ref().map(|exact| exact.compare(&mut self.agent));
            differences.write(self.directory.path())?;
        }
        let page = report::write(self.directory.path())?;
        Ok(Finished { run: self.directory.path().to_path_buf(), result, page })
    }
}

/// The outcome of [`Run::train`].
#[derive(Debug)]
pub struct Finished {
    /// The run's directory.
    pub run: PathBuf,
    /// The contents of `result.json`. A stopped run is not marked as finished.
    pub result: RunResult,
    /// The report.
    pub page: PathBuf,
}

/// Reads the configuration of a run that another process may be working on.
pub fn read_config(run: &Path) -> Result<RunConfig, Error> {
    let text = RunDir::config_of(run)?;
    config::read(&text, &run.join("config.toml").display().to_string())
}

/// The result of a finished run.
///
/// Its last checkpoint must match the configuration beside it: a setting edited since training is an error.
pub fn finished(run: &Path) -> Result<Option<Finished>, Error> {
    let config = read_config(run)?;
    let Some(result) = Records::result_of(run)?.filter(|result| result.finished) else { return Ok(None) };
    let checkpoint = checkpoint::require_latest(&RunDir::checkpoints_of(run))?;
    check_configuration(&checkpoint, &config)?;
    // The page is written last: if it does not name these weights, the run was killed after writing its
    // result.
    let page = run.join(report::PAGE);
    let told = files::read_text(&page, Links::Refuse, files::LONGEST_TEXT)
        .is_ok_and(|text| text.contains(&result.weights_sha256));
    // If the last checkpoint is damaged, the run resumes from the one before it.
    let complete = told && checkpoint.step() == result.steps;
    Ok(complete.then(|| Finished { run: run.to_path_buf(), result, page }))
}

/// Refuses a checkpoint of another configuration. The data is not checked.
fn check_configuration(checkpoint: &Checkpoint, config: &RunConfig) -> Result<(), Error> {
    let Identity { dataset, held_out, .. } = checkpoint.manifest.identity.clone();
    Ok(checkpoint.check(&identity(config, dataset, held_out)?)?)
}

/// `runs/PROBLEM/AGENT-seedN`, with a number appended if that exists.
pub fn default_directory(config: &RunConfig) -> PathBuf {
    let base = PathBuf::from("runs").join(config.problem.to_string());
    let name = format!("{}-seed{}", config.agent, config.seed);
    let numbered = (2..).map(|number| base.join(format!("{name}-{number}")));
    std::iter::once(base.join(&name)).chain(numbered).find(|path| !path.exists()).unwrap_or(base)
}

/// Copies a run to a new place, completely or not at all.
pub fn copy(run: &Path, to: &Path) -> Result<(), Error> {
    read_config(run)?; // fails if it is not a run
    refuse_content(to)?;
    let folder = AtomicFolder::create(to).map_err(Error::io(to))?;
    copy_inside(run, folder.path()).map_err(Error::io(to))?;
    folder.commit().map_err(Error::io(to))
}

/// Refuses a place where there is something.
fn refuse_content(path: &Path) -> Result<(), Error> {
    if let Some(found) = path.read_dir().ok().and_then(|mut inside| inside.next()) {
        let found = found.map_err(Error::io(path))?.file_name().to_string_lossy().into_owned();
        return Err(TrainError::NotEmpty { path: path.to_path_buf(), found }.into());
    }
    Ok(())
}

fn copy_inside(from: &Path, to: &Path) -> std::io::Result<()> {
    for entry in from.read_dir()? {
        let entry = entry?;
        if entry.file_name() == LOCK {
            continue; // belongs to the original
        }
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            std::fs::create_dir(&target)?;
            copy_inside(&entry.path(), &target)?;
        } else {
            let mut copy = std::fs::File::create_new(&target)?;
            std::io::copy(&mut files::open(&entry.path(), Links::Refuse)?, &mut copy)?;
            copy.sync_all()?;
        }
    }
    Ok(())
}

fn pool(config: &RunConfig, resources: &Resources) -> Pool {
    Pool::new(resources.threads).with_precision(config.train.precision.into())
}

fn new_agent(config: &RunConfig, data: &Dataset, resources: &Resources) -> Result<Learner, Error> {
    let pool = pool(config, resources);
    Ok(Learner::new(config.setup()?.as_ref(), data, config.train.steps, config.seed, &pool)?)
}

/// Without the location of the data and the length of the run, which `resume` may change.
fn of_any_length(config: RunConfig) -> RunConfig {
    RunConfig { data: None, train: TrainConfig { steps: 0, ..config.train }, ..config }
}

/// What a checkpoint must match.
fn identity(config: &RunConfig, dataset: String, held_out: Option<String>) -> Result<Identity, Error> {
    Ok(Identity {
        task: config.problem.to_string(),
        agent: config.agent.clone(),
        seed: config.seed,
        dataset,
        held_out,
        config: of_any_length(config.clone()).to_toml()?,
        defaults: of_any_length(config.with_defaults()?).to_toml()?,
    })
}

/// Names the key to change if the log of a run is no longer where it was.
fn refuse_moved_log(config: &RunConfig) -> Result<(), Error> {
    let Problem::Own(own) = &config.problem else { return Ok(()) };
    match own.source.paths.iter().find(|path| path.is_absolute() && !path.exists()) {
        Some(path) => Err(Error::io(path)(std::io::Error::new(
            std::io::ErrorKind::NotFound,
            "the run's log is not there; if it has moved, write its new place into `source.paths` in config.toml",
        ))),
        None => Ok(()),
    }
}

fn load(config: &RunConfig) -> Result<Loaded, Error> {
    let mut loaded = config.problem.load(config.data.as_deref(), config.train.holdout, config.seed)?;
    if let Some(needed) = config.unsettled()? {
        loaded.warnings.push(format!(
            "{} steps are few for {}: through its target network, values take about {} to settle (docs/tuning.md, \
             \"How many steps?\")",
            grouped(config.train.steps as i64),
            config.agent,
            grouped(needed as i64)
        ));
    }
    if let Problem::Own(_) = config.problem {
        loaded.warnings.extend(own::constant_rewards(&loaded.data));
        // Agents with hinges on recorded outcomes have this key.
        if config.settings.contains_key("lambda_k") {
            loaded.warnings.extend(own::chance(&loaded.data));
        }
    }
    Ok(loaded)
}

/// What updates see equally often, where it is not every transition.
fn groups(sampling: Sampling, data: &Dataset) -> Option<Vec<u32>> {
    match sampling {
        Sampling::Transitions => None,
        Sampling::Pairs => Some(JoinedStates::new(data).pairs),
    }
}

/// When to log, evaluate and save. Even a short run gets at least twenty points per curve.
fn schedule(config: &RunConfig) -> Schedule {
    let train = &config.train;
    Schedule {
        log_every: train.log_every.min((train.steps / 20).max(1)),
        eval_every: train.eval_every,
        save_every: train.save_every,
        keep: train.keep,
        keep_best: train.keep_best,
        patience: train.patience,
        ..Schedule::new(train.steps)
    }
}

/// How a run is evaluated: in parallel with training if there are enough processors.
fn evaluator(config: &RunConfig, data: &Dataset, resources: &Resources) -> Result<Option<Evaluator>, Error> {
    let episodes = config.train.eval_episodes;
    if episodes == 0 || !config.problem.has_environment() {
        return Ok(None);
    }
    let envs = config.problem.environments(episodes, resources)?;
    if let Problem::Own(own) = &config.problem
        && let Some(env) = &own.env
    {
        envs.shape().check_data(&env.to_string(), data.observation_dim(), data.action_space())?;
    }
    let native = config.problem.is_native();
    let background = !native && resources.threads() + envs.workers() <= processors();
    let paths = if native { PATHS } else { 0 };
    Ok(Some(Evaluator { envs, episodes, paths, background, score_range: config.problem.score_range() }))
}
