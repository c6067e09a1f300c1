//! The configuration of a run: built-in defaults < preset < configuration file < options < `key=value` pairs.
//! Unknown keys are errors that suggest the nearest one.

mod layers;
mod preset;
mod resolve;
#[cfg(test)]
mod tests;
mod train;

pub(crate) use layers::Layers;
pub use resolve::{Overrides, Resolved, resolve};
pub use train::{Precision, Sampling, TrainConfig};

use crate::error::Error;
use crate::own::Own;
use crate::problem::Problem;
pub use album_agents::Preset;
use album_agents::{AgentKind, Setup};
use album_data::Source;
use album_envs::EnvSpec;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A resolved configuration: what `config.toml` in a run directory holds.
#[derive(Clone, Debug, PartialEq)]
pub struct RunConfig {
    /// The data to learn from, and how the policy is evaluated.
    pub problem: Problem,
    /// The algorithm.
    pub agent: String,
    /// The master seed, from which initialisation, sampling and evaluation are derived.
    pub seed: u64,
    /// The dataset file, if it is not the task's default.
    pub data: Option<PathBuf>,
    /// The run whose agent this one starts from.
    pub from: Option<PathBuf>,
    /// The training loop.
    pub train: TrainConfig,
    /// The hyperparameters of the agent, stored in a section of its name.
    pub settings: toml::Table,
}

/// The part of a configuration that all algorithms share.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    task: String,
    agent: String,
    seed: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<Source>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    env: Option<EnvSpec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    score_range: Option<[f64; 2]>,
    train: TrainConfig,
}

impl RunConfig {
    /// The configuration as TOML.
    pub fn to_toml(&self) -> Result<String, Error> {
        toml::to_string(&self.to_table()?).map_err(|e| Error::Config(e.to_string()))
    }

    /// The same run with every setting at its built-in default.
    pub(crate) fn with_defaults(&self) -> Result<Self, Error> {
        let settings = AgentKind::find(&self.agent)?.defaults()?;
        Ok(RunConfig { train: TrainConfig::default(), settings, ..self.clone() })
    }

    /// Checks the hyperparameters.
    pub fn setup(&self) -> Result<Box<dyn Setup>, Error> {
        Ok(AgentKind::find(&self.agent)?.setup(&self.settings)?)
    }

    /// Both sides of the boundedness condition as text, if it is violated.
    pub fn violated_boundedness(&self) -> Result<Option<String>, Error> {
        let setup = self.setup()?;
        let violated = setup.boundedness().filter(|condition| !condition.sides.holds());
        Ok(violated.map(|condition| condition.to_string()))
    }

    /// The number of steps that values need to settle on an OGBench task, if the run has fewer.
    pub fn unsettled(&self) -> Result<Option<u64>, Error> {
        let needed = self.setup()?.settling_steps().map(|steps| steps.ceil() as u64);
        let applies = self.problem.task().is_some() && self.from.is_none();
        Ok(needed.filter(|needed| applies && self.train.steps < *needed))
    }

    fn to_table(&self) -> Result<toml::Table, Error> {
        let RunConfig { problem, agent, seed, data, from, train, settings } = self.clone();
        let task = problem.to_string();
        let (source, env, score_range) = match problem {
            Problem::Ogbench(_) | Problem::MudWorld(_) => (None, None, None),
            Problem::Own(own) => (Some(own.source), own.env, own.score_range),
        };
        let head = Head { task, agent: agent.clone(), seed, data, from, source, env, score_range, train };
        let mut table = toml::Table::try_from(head).map_err(|e| Error::Config(e.to_string()))?;
        table.insert(agent, toml::Value::Table(settings));
        Ok(table)
    }
}

/// Reads the configuration that a run was started with.
pub fn read(text: &str, place: &str) -> Result<RunConfig, Error> {
    from_table(parse(text, place)?)
}

fn from_table(mut table: toml::Table) -> Result<RunConfig, Error> {
    let Some(agent) = table.get("agent").and_then(toml::Value::as_str).map(str::to_owned) else {
        return Err(Error::Config("there is no `agent = \"...\"`".into()));
    };
    let kind = AgentKind::find(&agent)?;
    let Some(toml::Value::Table(given)) = table.remove(&agent) else {
        return Err(Error::Config(format!("there is no section [{agent}] for the agent")));
    };
    album_agents::check_sizes(&table)?;
    let Head { task, agent, seed, data, from, source, env, score_range, train } =
        table.try_into().map_err(|e: toml::de::Error| Error::Config(e.to_string()))?;
    let mut settings = Layers::over(kind.defaults()?);
    settings.merge(given, &format!("[{agent}]"))?;
    let settings = settings.table;
    kind.setup(&settings)?;
    if !(0.0..1.0).contains(&train.holdout) {
        return Err(Error::Config(format!(
            "holdout = {}; expected a fraction of at least 0 and below 1",
            train.holdout
        )));
    }
    let problem = match source {
        Some(source) => Problem::Own(Box::new(Own::new(source, Some(&task))?.judged_in(env, score_range)?)),
        None if env.is_some() => {
            return Err(Error::Config(
                "there is an [env] without a [source]; a task has its own environment".into(),
            ));
        }
        None => task.parse()?,
    };
    Ok(RunConfig { problem, agent, seed, data, from, train, settings })
}

fn parse(text: &str, place: &str) -> Result<toml::Table, Error> {
    text.parse().map_err(|e: toml::de::Error| Error::Config(format!("{place}: {e}")))
}
