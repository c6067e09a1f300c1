//! Agents restored from checkpoints: to act, to be resumed, or to go on with other data.

use super::{check_configuration, identity, load, pool, read_config};
use crate::config::RunConfig;
use crate::error::Error;
use crate::names;
use crate::problem::{Loaded, Problem};
use crate::resources::Resources;
use album_agents::Learner;
use album_data::{ActionSpace, Dataset};
use album_train::RunDir;
use album_train::checkpoint::{self, Checkpoint};
use std::path::Path;

/// An agent restored from a checkpoint. It needs no dataset to act.
pub struct Trained {
    /// The configuration of the run.
    pub config: RunConfig,
    /// The agent.
    pub agent: Learner,
    /// The checkpoint of its weights.
    pub checkpoint: Checkpoint,
}

impl std::fmt::Debug for Trained {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (path, config) = (&self.checkpoint.path, &self.config);
        f.debug_struct("Trained").field("checkpoint", path).field("config", config).finish_non_exhaustive()
    }
}

impl Trained {
    /// Opens the checkpoint of a step, or the latest one.
    pub fn open(run: &Path, step: Option<u64>, resources: &Resources) -> Result<Self, Error> {
        let config = read_config(run)?;
        let checkpoints = RunDir::checkpoints_of(run);
        let checkpoint = match step {
            Some(step) => checkpoint::at(&checkpoints, step)?,
            None => {
                let latest = checkpoint::require_latest(&checkpoints)?;
                match latest.manifest.progress.best.as_ref().filter(|_| config.train.keep_best) {
                    Some(best) if best.step != latest.step() => checkpoint::at(&checkpoints, best.step)?,
                    _ => latest,
                }
            }
        };
        check_configuration(&checkpoint, &config)?;
        let agent = of_checkpoint(&checkpoint, &config, resources)?;
        Ok(Trained { config, agent, checkpoint })
    }

    /// The training data.
    pub fn data(&self) -> Result<Dataset, Error> {
        Ok(self.loaded()?.data)
    }

    /// The held-out episodes, if there are any.
    pub fn held_out(&self) -> Result<Option<Dataset>, Error> {
        Ok(self.loaded()?.held_out)
    }

    fn loaded(&self) -> Result<Loaded, Error> {
        let loaded = load(&self.config)?;
        let hash = |data: &Dataset| data.content_hash();
        let held_out = loaded.held_out.as_ref().map(hash);
        self.checkpoint.check(&identity(&self.config, hash(&loaded.data), held_out)?)?;
        Ok(loaded)
    }
}

/// Restores an agent from a checkpoint, for the configuration of its run or of another one with the same
/// networks.
pub(super) fn of_checkpoint(
    checkpoint: &Checkpoint,
    config: &RunConfig,
    resources: &Resources,
) -> Result<Learner, Error> {
    let (blueprint, pool) = (&checkpoint.state.blueprint, pool(config, resources));
    let setup = config.setup()?;
    let mut agent =
        Learner::from_blueprint(setup.as_ref(), blueprint, config.train.steps, config.seed, &pool)?;
    checkpoint.restore(&mut agent)?;
    Ok(agent)
}

/// The action space of a run, in physical units.
pub(crate) fn action_space_of(run: &Path) -> Result<ActionSpace, Error> {
    let checkpoint = checkpoint::require_latest(&RunDir::checkpoints_of(run))?;
    Ok(checkpoint.state.blueprint.action_space())
}

/// The agent of another run, to continue training on new data.
pub(super) fn agent_of(
    from: &Path,
    config: &RunConfig,
    data: &Dataset,
    resources: &Resources,
) -> Result<Learner, Error> {
    let Trained { config: before, checkpoint, .. } = Trained::open(from, None, resources)?;
    let blueprint = &checkpoint.state.blueprint;
    let refuse = |found: String, expected: String| {
        Err(Error::Config(format!("--from {}: found {found}; expected {expected}", from.display())))
    };
    if before.agent != config.agent {
        return refuse(format!("a run of {}", before.agent), config.agent.clone());
    }
    let expected = blueprint.encoding.observation_dim();
    if data.observation_dim() != expected {
        let written = |n: usize| format!("observations of dimension {n}");
        return refuse(written(expected), format!("{} as in the new data", written(data.observation_dim())));
    }
    if let Problem::Own(own) = &config.problem
        && let Some(before) = names::read(from)?
        && let Some([found, expected]) = before.difference(&own.read()?.description)
    {
        return refuse(found, expected);
    }
    if *data.action_space() != blueprint.action_space() {
        return refuse(
            format!("actions {:?}", blueprint.action_space()),
            format!("{:?} as in the new data", data.action_space()),
        );
    }
    of_checkpoint(&checkpoint, config, resources)
}
