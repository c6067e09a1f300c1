//! Fits the behaviour, whose return is known, once, and then evaluates any number of policies on the same data.

use super::fit::{Fitting, Whose};
use super::importance::{self, Fitted};
use super::interval::{Values, deviation, mean};
use super::neighbours::Neighbours;
use super::policy::PolicyActions;
use super::verdict::Facts;
use super::{
    Behaviour, Diagnostics, Evaluation, Importance, Propensities, Saved, Settings, Subject, TdError,
};
use super::{check_agent, support, unseen};
use crate::error::Error;
use crate::own;
use album_agents::agents::fqe::Config;
use album_agents::value_range;
use album_agents::{Agent, Common, Decay, Learner, NetworkState};
use album_data::{ActionSpace, Dataset, View};
use album_nn::Pool;
use album_train::StopFlag;

/// Minimum number of episodes: with fewer, the spread between episodes cannot be estimated.
const FEWEST: usize = 5;
/// Below this number of episodes a warning says that the interval is rough.
const FEW: usize = 20;
/// Range of the default number of updates per fit. Within it, there are enough regressions for the initial Q to
/// contribute less than 2 %.
const UPDATES: [u64; 2] = [5_000, 50_000];

/// A dataset with the estimated and the observed value of its behaviour; evaluates any number of policies on it.
///
/// ```
/// use album::Dataset;
/// use album::fqe::{Judge, Settings};
/// use album_agents::{Common, Learner};
///
/// fn print_values(data: &Dataset, common: Common, agents: &mut [Learner]) -> Result<(), album::Error> {
///     let mut judge = Judge::new(data, None, &Settings::of(common))?;
///     for agent in agents {
///         println!("{:?}", judge.evaluate(agent)?.policy);
///     }
///     Ok(())
/// }
/// ```
pub struct Judge<'d> {
    data: &'d Dataset,
    settings: Settings,
    updates: u64,
    pool: Pool,
    fitting: Fitting<'d>,
    /// The networks fitted to the behaviour; every policy's fit starts from them.
    start: Vec<NetworkState>,
    /// Episodes that have at least one transition.
    episodes: Vec<usize>,
    values: Values,
    behaviour: Behaviour,
    /// Observed return of every episode, and the mean weight of estimates in it.
    observed: Vec<f64>,
    tail: f64,
    /// Probabilities of the recorded actions, and where they come from.
    propensities: Option<(Propensities, Vec<f64>)>,
}

impl std::fmt::Debug for Judge<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Judge")
            .field("settings", &self.settings)
            .field("behaviour", &self.behaviour)
            .finish_non_exhaustive()
    }
}

impl<'d> Judge<'d> {
    /// Fits the behaviour. `propensities` are the probabilities of the recorded discrete actions, one per transition,
    /// if they are known.
    pub fn new(
        data: &'d Dataset,
        propensities: Option<Vec<f64>>,
        settings: &Settings,
    ) -> Result<Self, Error> {
        Self::fit(data, propensities, settings, &StopFlag::new(), &mut |_, _| {})
    }

    /// Estimates the value of an agent's policy.
    pub fn evaluate(&mut self, agent: &mut Learner) -> Result<Evaluation, Error> {
        Ok(self.judge(agent, &StopFlag::new(), &mut |_, _| {})?.evaluation)
    }

    /// Number of gradient steps per fit.
    pub fn updates(&self) -> u64 {
        self.updates
    }

    pub(super) fn fit(
        data: &'d Dataset,
        propensities: Option<Vec<f64>>,
        settings: &Settings,
        stop: &StopFlag,
        observer: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, Error> {
        let episodes: Vec<usize> =
            (0..data.episodes().len()).filter(|&episode| data.episodes().length(episode) > 0).collect();
        check(episodes.len(), settings)?;
        if let Some(logged) = &propensities {
            importance::check(logged, data.len())?;
        }
        let &Settings { ensemble, seed, threads, ref common, .. } = settings;
        let (gamma, pool) = (common.gamma, Pool::new(threads));
        let config = Config {
            common: Common {
                reward_scale: own::reward_scale(data, gamma).0,
                standardize: true,
                lr_decay: Decay::Cosine,
                ..common.clone()
            },
            ensemble,
            ..Config::default()
        };
        let regressions = 4.0 / (1.0 - gamma);
        let chosen = ((regressions * config.target_every as f64) as u64).clamp(UPDATES[0], UPDATES[1]);
        let updates = settings.updates.unwrap_or(chosen);
        let mut fitting = Fitting::new(config.clone(), data, seed, &pool)?;
        fitting.fit(Whose::Behaviour, updates, stop, &mut |done| observer(done, 2 * updates))?;

        let q = fitting.q_recorded();
        let first = |&episode: &usize| row(&q, data.episodes().start(episode), ensemble);
        let values = Values::new(ensemble, episodes.iter().flat_map(first));
        let value = |transition: usize| mean(&row(&q, transition, ensemble));
        let (observed, tails): (Vec<f64>, Vec<f64>) =
            episodes.iter().map(|&episode| observed(data, gamma, episode, value)).unzip();
        let propensities = match (data.action_space(), propensities) {
            (ActionSpace::Continuous { .. }, _) => None,
            (ActionSpace::Discrete { .. }, Some(logged)) => Some((Propensities::Logged, logged)),
            (ActionSpace::Discrete { .. }, None) => {
                Some((Propensities::Estimated, importance::estimated(data, &config.common, seed, &pool)?))
            }
        };
        Ok(Judge {
            behaviour: Behaviour { estimated: values.estimate(seed), observed: mean(&observed) },
            start: fitting.state(),
            settings: settings.clone(),
            tail: mean(&tails),
            data,
            updates,
            pool,
            fitting,
            episodes,
            values,
            observed,
            propensities,
        })
    }

    pub(super) fn judge(
        &mut self,
        agent: &mut Learner,
        stop: &StopFlag,
        observer: &mut dyn FnMut(u64, u64),
    ) -> Result<Saved, Error> {
        check_agent(agent, self.data)?;
        let (data, updates, threads) = (self.data, self.updates, self.pool.threads());
        let &Settings { ensemble, seed, ref common, .. } = &self.settings;
        let gamma = common.gamma;
        let actions = PolicyActions::of(agent, data, threads);
        self.fitting.load(&self.start)?;
        self.fitting.fit(Whose::Policy(&actions), updates, stop, &mut |done| {
            observer(updates + done, 2 * updates);
        })?;
        let (q, v) = (self.fitting.q_recorded(), self.fitting.v(&actions));
        let first = |&episode: &usize| row(&v, data.episodes().start(episode) + episode, ensemble);
        let values = Values::new(ensemble, self.episodes.iter().flat_map(first));

        let neighbours = Neighbours::of(data, threads);
        let (action_distance, support) = support::measure(&neighbours, &actions);
        let range = value_range(data, gamma);
        let fitting = &mut self.fitting;
        let mut value = |s: View<'_>, a: View<'_>| means(&fitting.q(s, a), ensemble);
        let threshold = support.threshold;
        let mut policy = agent.policy();
        let unseen = unseen::measure(&neighbours, policy.as_mut(), &mut value, gamma, range, threshold);
        let estimate = values.estimate(seed);
        let apart = unseen.walked - estimate.mean;
        let facts = Facts {
            difference: values.minus(&self.values).estimate(seed).widened(apart, &unseen),
            estimated: self.behaviour.estimated,
            observed: self.behaviour.observed,
            deviation: deviation(&self.observed),
            tail: self.tail,
            outside: support.outside,
        };
        let (verdict, reason) = facts.verdict();
        let importance = self.importance(&actions, &q, &v);
        let mut warnings = Vec::new();
        if self.episodes.len() < FEW {
            warnings.push(format!("only {} episodes: intervals are rough below {FEW}", self.episodes.len()));
        }
        warnings.extend(unseen.warning());
        warnings.extend(importance.as_ref().and_then(|found| found.warning(self.episodes.len())));
        let evaluation = Evaluation {
            subject: Subject::default(),
            gamma,
            episodes: self.episodes.len(),
            transitions: data.len(),
            ensemble,
            updates,
            policy: estimate.widened(apart, &unseen).with_gap(facts.gap()),
            behaviour: self.behaviour,
            difference: facts.difference,
            diagnostics: Diagnostics {
                calibration_gap: facts.gap(),
                observed_tail: facts.tail,
                ensemble_deviation: deviation(&values.by_member()),
                td_error: td_error(data, gamma, &self.fitting, &q, &v),
                action_distance,
                support,
                unseen,
                agent_value: agent_value(agent, data, &actions, &self.episodes),
            },
            importance,
            verdict,
            reason,
            warnings,
        };
        let estimated = self.values.by_episode();
        let calibration = self.observed.iter().zip(&estimated).map(|(&x, &y)| [x, y]).collect();
        Ok(Saved { evaluation, calibration })
    }

    fn importance(&self, actions: &PolicyActions, q: &[f32], v: &[f32]) -> Option<Importance> {
        let (whose, mu) = self.propensities.as_ref()?;
        let Settings { common, seed, ensemble, .. } = &self.settings;
        let fitted = Fitted { actions, q: &means(q, *ensemble), v: &means(v, *ensemble) };
        Some(importance::measure(self.data, common.gamma, (*whose, mu), &fitted, *seed))
    }
}

/// Refuses data or settings that cannot give an estimate, before anything is fitted.
fn check(episodes: usize, settings: &Settings) -> Result<(), Error> {
    if episodes < FEWEST {
        return Err(Error::Load(format!(
            "found {episodes} episode(s) to evaluate on; expected at least {FEWEST}: hold out more (--holdout) or pass \
             --data SOURCE"
        )));
    }
    if settings.ensemble < 2 {
        return Err(Error::Config(format!(
            "ensemble = {}; expected at least 2, because their spread is part of the interval",
            settings.ensemble
        )));
    }
    if settings.updates == Some(0) {
        return Err(Error::Config("updates = 0; expected at least 1".into()));
    }
    Ok(())
}

/// Means over the members.
fn means(all: &[f32], members: usize) -> Vec<f64> {
    let member_mean = |members: &[f32]| mean(&members.iter().map(|&x| f64::from(x)).collect::<Vec<_>>());
    all.chunks_exact(members).map(member_mean).collect()
}

/// The values of all members at index `at`.
fn row(all: &[f32], at: usize, members: usize) -> Vec<f64> {
    all[at * members..][..members].iter().map(|&x| f64::from(x)).collect()
}

/// The discounted return of an episode, and the weight of an estimate in it. If the recording was truncated, Q of its
/// last recorded pair stands for the remaining return.
fn observed(data: &Dataset, gamma: f64, episode: usize, q: impl Fn(usize) -> f64) -> (f64, f64) {
    let (rewards, masks) = (data.episode_rewards(episode), data.episode_masks(episode));
    let goal = masks.iter().position(|&mask| mask == 0.0);
    let steps = goal.map_or(rewards.len() - 1, |goal| goal + 1);
    let (mut sum, mut weight) = (0.0, 1.0);
    for &reward in &rewards[..steps] {
        sum += weight * f64::from(reward);
        weight *= gamma;
    }
    match goal {
        Some(_) => (sum, 0.0),
        None => (sum + weight * q(data.episodes().start(episode) + steps), weight),
    }
}

/// TD errors of each member on the episodes outside its bootstrap resample, or on all episodes if there are none.
fn td_error(data: &Dataset, gamma: f64, fitting: &Fitting<'_>, q: &[f32], v: &[f32]) -> TdError {
    let members = fitting.members();
    let collect = |all: bool| {
        let (mut count, mut absolute, mut square) = (0.0, 0.0, 0.0);
        for transition in 0..data.len() {
            let episode = data.episodes().locate(transition).episode;
            let (reward, mask) = (f64::from(data.reward(transition)), f64::from(data.mask(transition)));
            for member in (0..members).filter(|&member| all || !fitting.learned_from(episode, member)) {
                let next = f64::from(v[(transition + episode + 1) * members + member]);
                let error = reward + gamma * mask * next - f64::from(q[transition * members + member]);
                (count, absolute, square) = (count + 1.0, absolute + error.abs(), square + error * error);
            }
        }
        (count > 0.0)
            .then(|| TdError { mean_absolute: absolute / count, root_mean_square: (square / count).sqrt() })
    };
    collect(false)
        .or_else(|| collect(true))
        .unwrap_or(TdError { mean_absolute: f64::NAN, root_mean_square: f64::NAN })
}

/// The agent's own estimate of its policy's value, averaged over initial states.
fn agent_value(
    agent: &mut Learner,
    data: &Dataset,
    actions: &PolicyActions,
    episodes: &[usize],
) -> Option<f64> {
    let (dim, width) = (data.observation_dim(), data.action_dim());
    let (mut seen, mut done) = (Vec::new(), Vec::new());
    for &episode in episodes {
        let transition = data.episodes().start(episode);
        seen.extend_from_slice(data.observation(transition));
        done.extend_from_slice(actions.at(0, transition + episode));
    }
    let states = View::new(&seen, episodes.len(), dim);
    data.action_space().to_physical(&mut done);
    let values = match agent.value(states) {
        Some(values) => values,
        None => agent.q(states, View::new(&done, episodes.len(), width))?,
    };
    Some(mean(&values.into_iter().map(f64::from).collect::<Vec<_>>())).filter(|value| value.is_finite())
}
