//! Is a policy any good? Fitted Q evaluation on episodes that training did not see. The same estimator is applied to
//! the behaviour, whose return is known, as a calibration.
//!
//! ```text
//! policy     the policy's actions in all states of the data
//! fit        fits the ensemble to the behaviour, then to the policy
//! judge      fits the behaviour once, then evaluates any number of policies
//! interval   means with 95 % intervals
//! verdict    the rule that turns the numbers into a verdict
//! importance importance sampling, for discrete actions
//! neighbours nearest recorded state-action pairs
//! support    distances of the policy from the data
//! unseen     walks over recorded steps, and how much they widen the interval
//! page       the section of the run's report
//! ```

mod fit;
mod importance;
mod interval;
mod judge;
mod neighbours;
mod page;
mod policy;
mod support;
mod text;
mod unseen;
mod verdict;

pub use importance::{Importance, Propensities};
pub use interval::Estimate;
pub use judge::Judge;
pub(crate) use page::TITLE;
pub use support::{ActionDistance, Support};
pub use unseen::Unseen;
pub use verdict::Verdict;

use crate::error::Error;
use crate::names;
use crate::problem::Problem;
use crate::record_file;
use crate::report;
use crate::resources::Resources;
use crate::run::Trained;
use album_agents::{Common, Learner};
use album_data::{ActionSpace, ColumnMap, Dataset, Source, SourceData};
use album_train::StopFlag;
use serde::{Deserialize, Serialize};
use std::path::Path;

const FILE: &str = "fqe.json";

/// Settings of an evaluation.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Number of ensemble members, at least 2.
    pub ensemble: usize,
    /// Gradient steps for the behaviour, and again for the policy; derived from the discount if `None`.
    pub updates: Option<u64>,
    /// Network sizes, batch size and discount, as for the agent. The reward scale is derived from the data,
    /// observations are standardised, and the learning rate follows a cosine decay.
    pub common: Common,
    /// The master seed.
    pub seed: u64,
    /// Number of worker threads; 0 means all processors. Results do not depend on it.
    pub threads: usize,
}

impl Settings {
    /// Default settings for an agent with these hyperparameters.
    pub fn of(common: Common) -> Self {
        Settings { ensemble: 5, updates: None, common, seed: 0, threads: 0 }
    }
}

/// Which checkpoint of a run to evaluate, and on which data.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Data to use instead of the run's held-out episodes.
    pub data: Option<Source>,
    /// Step of the checkpoint; by default the one that `album eval` uses.
    pub step: Option<u64>,
    /// Column with the probabilities of the recorded actions.
    pub propensity: Option<String>,
    /// Number of ensemble members; 5 by default.
    pub ensemble: Option<usize>,
    /// Number of gradient steps per fit.
    pub updates: Option<u64>,
    /// The master seed.
    pub seed: u64,
}

/// The evaluation of a policy. Values are discounted sums of rewards from initial states, in units of the data's
/// rewards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Task, agent and checkpoint.
    #[serde(flatten)]
    pub subject: Subject,
    /// Discount of all values, including the observed return.
    pub gamma: f64,
    /// Number of episodes used.
    pub episodes: usize,
    /// Number of transitions in them.
    pub transitions: usize,
    /// Number of ensemble members.
    pub ensemble: usize,
    /// Number of gradient steps per fit.
    pub updates: u64,
    /// Estimated value of the policy.
    pub policy: Estimate,
    /// The behaviour's value, estimated and observed, as a calibration.
    pub behaviour: Behaviour,
    /// Policy minus behaviour, by the same ensemble.
    pub difference: Estimate,
    /// Diagnostics for reading the estimates; not themselves estimates of the value.
    pub diagnostics: Diagnostics,
    /// Importance sampling estimates, for discrete actions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub importance: Option<Importance>,
    /// The verdict.
    pub verdict: Verdict,
    /// The reason for the verdict.
    pub reason: String,
    /// Warnings for the reader.
    pub warnings: Vec<String>,
}

/// What was evaluated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// Name of the task or dataset.
    pub task: String,
    /// Name of the agent.
    pub agent: String,
    /// Step of the checkpoint.
    pub step: u64,
    /// Source of the episodes: `held-out`, or the files that were given.
    pub data: String,
}

/// The value of the behaviour, estimated and observed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Behaviour {
    /// Value estimated by the ensemble.
    pub estimated: Estimate,
    /// Mean discounted return of the same episodes. Where a recording was truncated, the ensemble's own estimate
    /// stands for the rest, with weight [`Diagnostics::observed_tail`].
    pub observed: f64,
}

/// Diagnostics of the estimates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Diagnostics {
    /// Estimated minus observed return of the behaviour, relative to the observed share of that return.
    pub calibration_gap: f64,
    /// Weight of estimates in the observed return.
    pub observed_tail: f64,
    /// Standard deviation of the policy's value across the members.
    pub ensemble_deviation: f64,
    /// TD errors of the policy's Q on episodes outside each member's bootstrap resample.
    pub td_error: TdError,
    /// Distances between the policy's actions and the recorded ones.
    pub action_distance: ActionDistance,
    /// How often the policy leaves the support of the data.
    pub support: Support,
    /// How much the intervals of the policy and of the difference were widened because of it.
    pub unseen: Unseen,
    /// The agent's own value of its policy at initial states (V, else Q), if it has one, for comparison with
    /// `policy.mean`.
    pub agent_value: Option<f64>,
}

/// TD errors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TdError {
    /// Mean absolute TD error.
    pub mean_absolute: f64,
    /// Root mean square TD error.
    pub root_mean_square: f64,
}

/// An evaluation together with the data that only the report shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Saved {
    #[serde(flatten)]
    evaluation: Evaluation,
    /// Observed and estimated return of each episode.
    calibration: Vec<[f64; 2]>,
}

/// Evaluates the policy of a run; writes `fqe.json` and updates the run's report.
pub fn evaluate_run(
    run: &Path,
    request: &Request,
    resources: &Resources,
    stop: &StopFlag,
    observer: &mut dyn FnMut(u64, u64),
) -> Result<Evaluation, Error> {
    let mut trained = Trained::open(run, request.step, resources)?;
    let (data, logged) = data_of(run, &trained, request)?;
    let whose = match &request.data {
        None => "held-out".into(),
        Some(source) => {
            source.paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
        }
    };
    let saved = evaluate_on(&mut trained, &data, logged, whose, request, resources, stop, observer)?;
    saved.write(run)?;
    report::write(run)?;
    Ok(saved.evaluation)
}

/// Like [`evaluate_run`], but on data in memory, and without writing anything. `propensities` are the probabilities
/// of the recorded discrete actions, one per transition, if they are known.
pub fn evaluate_trained(
    trained: &mut Trained,
    data: &Dataset,
    propensities: Option<&[f64]>,
    request: &Request,
    resources: &Resources,
    stop: &StopFlag,
) -> Result<Evaluation, Error> {
    let (whose, logged) = ("in memory".to_owned(), propensities.map(<[f64]>::to_vec));
    let saved = evaluate_on(trained, data, logged, whose, request, resources, stop, &mut |_, _| {})?;
    Ok(saved.evaluation)
}

#[allow(clippy::too_many_arguments, reason = "what the two callers above differ in")]
fn evaluate_on(
    trained: &mut Trained,
    data: &Dataset,
    logged: Option<Vec<f64>>,
    whose: String,
    request: &Request,
    resources: &Resources,
    stop: &StopFlag,
    observer: &mut dyn FnMut(u64, u64),
) -> Result<Saved, Error> {
    let settings = Settings {
        ensemble: request.ensemble.unwrap_or(5),
        updates: request.updates,
        seed: request.seed,
        threads: resources.threads(),
        ..Settings::of(trained.config.setup()?.common().clone())
    };
    check_agent(&trained.agent, data)?;
    let mut judge = Judge::fit(data, logged, &settings, stop, observer)?;
    let mut saved = judge.judge(&mut trained.agent, stop, observer)?;
    saved.evaluation.subject = Subject {
        task: trained.config.problem.to_string(),
        agent: trained.config.agent.clone(),
        step: trained.checkpoint.step(),
        data: whose,
    };
    Ok(saved)
}

/// Loads the episodes and, if a column was named, the logged action probabilities.
fn data_of(run: &Path, trained: &Trained, request: &Request) -> Result<(Dataset, Option<Vec<f64>>), Error> {
    let config = &trained.config;
    let space = trained.agent.blueprint().action_space();
    let column = |source: &Source, name: &String| -> Result<Dataset, Error> {
        // Read the propensity column in place of the reward, which gives one number per transition.
        let columns = ColumnMap { reward: Some(name.clone()), ..source.columns.clone() };
        read(&Source { columns, reward_last: None, ..source.clone() })
            .map_err(|e| Error::Load(format!("--propensity {name}, which is read like a reward: {e}")))
    };
    if request.propensity.is_some() && matches!(space, ActionSpace::Continuous { .. }) {
        return Err(Error::Usage("--propensity needs discrete actions; the run's are continuous".into()));
    }
    let not_logged = || Error::Usage("--propensity names a column of a log; the run's data is none".into());
    let (data, column) = match (&request.data, &config.problem) {
        (Some(source), Problem::Ogbench(_)) if source.says_nothing() => {
            let [path] = &source.paths[..] else {
                return Err(Error::Usage("--data: expected one file of OGBench's format".into()));
            };
            if request.propensity.is_some() {
                return Err(not_logged());
            }
            (config.problem.load(Some(path), 0.0, 0)?.data, None)
        }
        (Some(source), problem) => {
            // Without options of its own, new data is read like the run's log.
            let like = match problem {
                Problem::Own(own) if source.says_nothing() => {
                    Source { paths: source.paths.clone(), ..own.source.clone() }
                }
                _ => source.clone(),
            };
            let source = Source { action_space: Some(space.clone()), ..like };
            let SourceData { dataset: data, description, .. } = source.read()?;
            if let Some(names) = names::read(run)?
                && let Some([before, now]) = names.difference(&description)
            {
                return Err(Error::Load(format!("--data: the run has {before}; found {now}")));
            }
            (data, request.propensity.as_ref().map(|name| column(&source, name)).transpose()?)
        }
        (None, problem) => {
            let held_out = trained.held_out()?.ok_or_else(|| {
                Error::Config(
                    "the run held no episodes out, and no policy is judged on what it was trained on; pass --data SOURCE, \
                     or train with --holdout 0.1"
                        .into(),
                )
            })?;
            let logged = match (&request.propensity, problem) {
                (None, _) => None,
                (Some(name), Problem::Own(own)) => {
                    let split = column(&own.source, name)?.hold_out(config.train.holdout, config.seed);
                    Some(split.map_err(|e| Error::Config(e.to_string()))?.1)
                }
                (Some(_), _) => return Err(not_logged()),
            };
            (held_out, logged)
        }
    };
    check_shape(&data, trained.agent.blueprint().encoding.observation_dim(), &space)?;
    let numbers = |column: Dataset| (0..column.len()).map(|t| f64::from(column.reward(t))).collect();
    Ok((data, column.map(numbers)))
}

fn read(source: &Source) -> Result<Dataset, Error> {
    Ok(source.read()?.dataset)
}

/// Refuses data whose observations or actions do not match the policy's.
fn check_shape(data: &Dataset, observation_dim: usize, space: &ActionSpace) -> Result<(), Error> {
    if data.observation_dim() != observation_dim {
        return Err(Error::Load(format!(
            "found observations of dimension {}; expected {observation_dim} as in the run's data",
            data.observation_dim()
        )));
    }
    let same = match (data.action_space(), space) {
        (ActionSpace::Continuous { low: x, .. }, ActionSpace::Continuous { low: y, .. }) => {
            x.len() == y.len()
        }
        (x, y) => x == y,
    };
    if same {
        Ok(())
    } else {
        let told = |space: &ActionSpace| match space {
            ActionSpace::Discrete { n } => format!("{n} choices"),
            ActionSpace::Continuous { low, .. } => format!("continuous actions of {} number(s)", low.len()),
        };
        let found = told(data.action_space());
        Err(Error::Load(format!("found {found}; expected {} as in the run's data", told(space))))
    }
}

/// Refuses agents that cannot be evaluated, before anything is fitted.
fn check_agent(agent: &Learner, data: &Dataset) -> Result<(), Error> {
    if agent.open_loop() > 1 {
        return Err(Error::Config(format!(
            "the agent commits to {} actions at a time, so what it does depends on more than the state, and fitted Q \
             evaluation cannot judge it; evaluate it in an environment (album eval)",
            agent.open_loop()
        )));
    }
    let blueprint = agent.blueprint();
    check_shape(data, blueprint.encoding.observation_dim(), &blueprint.action_space())
}

impl Saved {
    fn write(&self, run: &Path) -> Result<(), Error> {
        record_file::write(&run.join(FILE), self)
    }

    /// Reads the evaluation of a run, if there is one.
    pub fn read(run: &Path) -> Result<Option<Self>, Error> {
        record_file::read(&run.join(FILE))
    }
}
