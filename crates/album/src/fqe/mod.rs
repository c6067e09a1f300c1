//! Is a policy any good? Fitted Q evaluation on episodes that training did not see, beside the same estimate of what is
//! known: the return of the behaviour.
//!
//! ```text
//! policy     the policy's actions in all states of the data
//! fit        the ensemble, for the behaviour and then for the policy
//! judge      the behaviour, once, and then any number of policies
//! interval   means with their intervals
//! verdict    the rule
//! importance importance sampling, where actions are choices
//! neighbours the nearest recorded pairs
//! support    distances from the data
//! unseen     walks over recorded steps, and what the interval must allow for behind them
//! page       the part of a run's report
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
/// How a policy is evaluated.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Members of the ensemble, at least 2.
    pub ensemble: usize,
    /// Gradient steps for the behaviour, and as many for the policy; chosen from the discount where there is none.
    pub updates: Option<u64>,
    /// The agent's networks, batches and discount. The scale of rewards is chosen from the data, observations are
    /// standardised, and the learning rate falls along a cosine.
    pub common: Common,
    /// The master seed.
    pub seed: u64,
    /// Worker threads; no result depends on them. 0 means all processors.
    pub threads: usize,
}

impl Settings {
    /// Those that suit an agent with these hyperparameters.
    pub fn of(common: Common) -> Self {
        Settings { ensemble: 5, updates: None, common, seed: 0, threads: 0 }
    }
}

/// What to evaluate of a run, and on which data.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Other data than the run's held-out episodes.
    pub data: Option<Source>,
    /// The checkpoint of this step; the one that `album eval` takes where there is none.
    pub step: Option<u64>,
    /// The column with the probabilities of recorded choices.
    pub propensity: Option<String>,
    /// Members of the ensemble; 5 where there is none.
    pub ensemble: Option<usize>,
    /// Gradient steps of each fit.
    pub updates: Option<u64>,
    /// The master seed.
    pub seed: u64,
}

/// What a policy is worth, as far as data can tell. Values are discounted sums of rewards from initial states, in units of
/// the data's rewards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// The problem, the agent and the checkpoint.
    #[serde(flatten)]
    pub subject: Subject,
    /// The discount of all values, the observed return included.
    pub gamma: f64,
    /// Episodes that were used.
    pub episodes: usize,
    /// Their transitions.
    pub transitions: usize,
    /// Members of the ensemble.
    pub ensemble: usize,
    /// Gradient steps of each fit.
    pub updates: u64,
    /// The value of the policy.
    pub policy: Estimate,
    /// The calibration row.
    pub behaviour: Behaviour,
    /// Policy minus behaviour by the same ensemble.
    pub difference: Estimate,
    /// What helps to read the numbers, and is no estimate of the value.
    pub diagnostics: Diagnostics,
    /// Importance sampling, where actions are choices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub importance: Option<Importance>,
    /// What follows.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
    /// What the reader should know.
    pub warnings: Vec<String>,
}

/// What was evaluated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// The problem.
    pub task: String,
    /// The agent.
    pub agent: String,
    /// The step of the checkpoint.
    pub step: u64,
    /// Whose episodes: `held-out`, or the files that were given.
    pub data: String,
}

/// The same estimator on what is known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Behaviour {
    /// Its value by the ensemble.
    pub estimated: Estimate,
    /// The mean discounted return of the same episodes. Behind the end of a recording that was cut stands the ensemble's
    /// own estimate, with the weight [`Diagnostics::observed_tail`].
    pub observed: f64,
}

/// What helps to read the numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Diagnostics {
    /// Estimated minus observed return of the behaviour, as far as it was observed.
    pub calibration_gap: f64,
    /// The weight of estimates in the observed return.
    pub observed_tail: f64,
    /// The standard deviation of the members' values of the policy.
    pub ensemble_deviation: f64,
    /// Temporal differences of the policy's Q on episodes that a member did not learn from.
    pub td_error: TdError,
    /// The policy's actions beside the recorded ones.
    pub action_distance: ActionDistance,
    /// Where the policy leaves the data.
    pub support: Support,
    /// What the intervals of the policy and of the difference have room for because of it.
    pub unseen: Unseen,
    /// The agent's own value of its policy at initial states (V, else Q), where it has one; beside `policy.mean`.
    pub agent_value: Option<f64>,
}

/// Temporal differences.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TdError {
    /// The mean absolute one.
    pub mean_absolute: f64,
    /// The root of the mean square.
    pub root_mean_square: f64,
}

/// An evaluation with what only its page shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Saved {
    #[serde(flatten)]
    evaluation: Evaluation,
    /// Observed and estimated return of episodes.
    calibration: Vec<[f64; 2]>,
}

/// Evaluates the policy of a run, and writes the answer and the run's report.
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

/// [`evaluate_run`] on data in memory, for whoever has it; nothing is written. `propensities` are the probabilities of the
/// recorded choices, transition by transition, where they are known.
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

/// The episodes, and the logged probabilities of their choices.
fn data_of(run: &Path, trained: &Trained, request: &Request) -> Result<(Dataset, Option<Vec<f64>>), Error> {
    let config = &trained.config;
    let space = trained.agent.blueprint().action_space();
    let column = |source: &Source, name: &String| -> Result<Dataset, Error> {
        // The column is read as if it were the reward, and so has a number for each transition.
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
            // Another week of the same log is read like the first one.
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

/// Refuses data that the policy was not made for.
fn check_shape(data: &Dataset, observation_dim: usize, space: &ActionSpace) -> Result<(), Error> {
    if data.observation_dim() != observation_dim {
        return Err(Error::Load(format!(
            "found observations of {} numbers; expected {observation_dim} as in the run's data",
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

/// Refuses agents that cannot be judged, before anything is fitted.
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

    /// That of a run, where there is one.
    pub fn read(run: &Path) -> Result<Option<Self>, Error> {
        record_file::read(&run.join(FILE))
    }
}
