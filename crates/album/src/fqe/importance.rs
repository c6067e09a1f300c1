//! Importance sampling estimates, for discrete actions.
//!
//! Let `rho_t = pi(a_t|s_t) / mu(a_t|s_t)` and `w_t = rho_0 ... rho_t`. Where a recording was truncated at step `h`,
//! the fitted ensemble's `V(s_h)` stands for the rest; it is 0 where the task ended.
//!
//! ```text
//! G    = sum_(t<h) gamma^t r_t + gamma^h V(s_h)
//! WIS  = sum_e w_(h-1) G / sum_e w_(h-1)
//! PDIS = mean_e [ sum_t gamma^t w_t r_t + gamma^h w_(h-1) V(s_h) ]
//! DR   = mean_e D_0,      D_t = V(s_t) + rho_t ( r_t + gamma D_(t+1) - Q(s_t,a_t) ),      D_h = V(s_h)
//! ESS  = (sum_e w_(h-1))^2 / sum_e w_(h-1)^2
//! ```

use super::interval::{Estimate, bootstrap, mean};
use super::policy::PolicyActions;
use crate::error::Error;
use album_agents::agents::bc;
use album_agents::{Agent, Common, Decay, Learner};
use album_data::{Dataset, Sampler, Segments, View};
use album_nn::Pool;
use serde::{Deserialize, Serialize};

/// Number of gradient steps for cloning the behaviour.
const CLONING: u64 = 3000;
/// The sample counts as collapsed if the effective sample size is below this number of episodes or this fraction of
/// them.
const FEW: (f64, f64) = (10.0, 0.1);
/// Lower bound on estimated propensities, so that ratios stay finite.
const LEAST: f64 = 1e-3;

/// Source of the behaviour's action probabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Propensities {
    /// Read from a column of the log.
    Logged,
    /// Estimated by a behaviour-cloning network.
    Estimated,
}

/// Off-policy estimates by importance sampling.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Importance {
    /// Source of the behaviour's action probabilities.
    pub propensities: Propensities,
    /// Effective sample size (ESS), in episodes.
    pub effective_sample_size: f64,
    /// Weighted importance sampling; `null` if every episode has weight 0.
    pub wis: Option<Estimate>,
    /// Per-decision importance sampling.
    pub pdis: Estimate,
    /// Doubly robust estimate.
    pub dr: Estimate,
}

impl Importance {
    /// A warning if the effective sample size has collapsed.
    pub fn warning(&self, episodes: usize) -> Option<String> {
        let size = self.effective_sample_size;
        (size < FEW.0.max(FEW.1 * episodes as f64)).then(|| {
            format!(
                "the effective sample size is {size:.1} of {episodes} episodes: estimates by importance sampling mean \
                 little, because the policy seldom does what was recorded"
            )
        })
    }
}

/// Values of the fitted ensemble, averaged over its members.
pub(crate) struct Fitted<'a> {
    pub actions: &'a PolicyActions,
    /// Q of every transition.
    pub q: &'a [f64],
    /// V of every state.
    pub v: &'a [f64],
}

/// Refuses propensities that are not one valid probability per transition.
pub(crate) fn check(propensities: &[f64], transitions: usize) -> Result<(), Error> {
    if propensities.len() != transitions {
        return Err(Error::Load(format!(
            "propensities: found {} numbers for {transitions} transitions; expected one for each",
            propensities.len()
        )));
    }
    match propensities.iter().position(|&p| !(p > 0.0 && p <= 1.0)) {
        None => Ok(()),
        Some(transition) => Err(Error::Load(format!(
            "propensities: found {} at transition {transition}; expected the probability of the recorded action, above 0 \
             and at most 1",
            propensities[transition]
        ))),
    }
}

/// Propensities of the recorded actions, estimated by behaviour cloning.
pub(crate) fn estimated(data: &Dataset, common: &Common, seed: u64, pool: &Pool) -> Result<Vec<f64>, Error> {
    let common = Common { lr_decay: Decay::Cosine, ..common.clone() };
    let mut clone = Learner::new(&bc::Config { common, ..bc::Config::default() }, data, CLONING, seed, pool)?;
    let segments = Segments::new(clone.segments()).map_err(|e| Error::Config(e.to_string()))?;
    let sampler = Sampler::new(seed, data.len());
    let mut batch = segments.batch(data, clone.batch_size());
    for step in 0..CLONING {
        sampler.fill(step, batch.indices_mut());
        segments.gather(data, &mut batch);
        clone.update(&batch, step, None);
    }
    let mut probabilities = Vec::with_capacity(data.len());
    for episode in 0..data.episodes().len() {
        let (states, actions) = (data.episode_states(episode), data.episode_actions(episode));
        let rows = actions.rows();
        let acted_in = View::new(&states.data()[..rows * states.cols()], rows, states.cols());
        let all = clone.probabilities("actor", acted_in).unwrap_or_default();
        let choices = all.len() / rows.max(1);
        let probability = |(action, all): (&[f32], &[f32])| f64::from(all[action[0] as usize]).max(LEAST);
        probabilities.extend(actions.iter().zip(all.chunks_exact(choices.max(1))).map(probability));
    }
    Ok(probabilities)
}

/// Computes all estimates.
pub(crate) fn measure(
    data: &Dataset,
    gamma: f64,
    (propensities, mu): (Propensities, &[f64]),
    fitted: &Fitted<'_>,
    seed: u64,
) -> Importance {
    let episodes: Vec<Episode> = (0..data.episodes().len())
        .filter(|&episode| data.episodes().length(episode) > 0)
        .map(|episode| Episode::of(data, gamma, mu, fitted, episode))
        .collect();
    let estimate = |value: fn(&Episode) -> f64| {
        let values: Vec<f64> = episodes.iter().map(value).collect();
        let again = |drawn: &[usize]| drawn.iter().map(|&e| values[e]).sum::<f64>() / drawn.len() as f64;
        let [low, high] = bootstrap(values.len(), seed, again);
        Estimate { mean: mean(&values), low, high }
    };
    let weighted = |drawn: &mut dyn Iterator<Item = usize>| {
        let (mut sum, mut weights) = (0.0, 0.0);
        for episode in drawn {
            let Episode { weight, total, .. } = episodes[episode];
            (sum, weights) = (sum + weight * total, weights + weight);
        }
        (weights > 0.0).then(|| sum / weights)
    };
    let wis = weighted(&mut (0..episodes.len())).map(|mean| {
        // If every weight in a resample is 0, fall back to the mean.
        let again = |drawn: &[usize]| weighted(&mut drawn.iter().copied()).unwrap_or(mean);
        let [low, high] = bootstrap(episodes.len(), seed, again);
        Estimate { mean, low, high }
    });
    let sum = |term: fn(f64) -> f64| episodes.iter().map(|episode| term(episode.weight)).sum::<f64>();
    let (weights, squares) = (sum(|w| w), sum(|w| w * w));
    Importance {
        propensities,
        effective_sample_size: if squares > 0.0 { weights * weights / squares } else { 0.0 },
        wis,
        pdis: estimate(|episode| episode.per_decision),
        dr: estimate(|episode| episode.doubly_robust),
    }
}

/// One episode's contribution to each estimate.
struct Episode {
    weight: f64,
    total: f64,
    per_decision: f64,
    doubly_robust: f64,
}

impl Episode {
    fn of(data: &Dataset, gamma: f64, mu: &[f64], fitted: &Fitted<'_>, episode: usize) -> Self {
        let (first, masks) = (data.episodes().start(episode), data.episode_masks(episode));
        let goal = masks.iter().position(|&mask| mask == 0.0);
        let steps = goal.map_or(masks.len(), |goal| goal + 1);
        let ratio = |t: usize| {
            let probability = fitted.actions.probability(first + t + episode, data.action(first + t)[0]);
            probability / mu[first + t]
        };
        let reward = |t: usize| f64::from(data.reward(first + t));
        let end = if goal.is_some() { 0.0 } else { fitted.v[first + episode + steps] };

        let (mut weight, mut discount, mut total, mut per_decision) = (1.0, 1.0, 0.0, 0.0);
        for t in 0..steps {
            weight *= ratio(t);
            total += discount * reward(t);
            per_decision += discount * weight * reward(t);
            discount *= gamma;
        }
        let doubly_robust = (0..steps).rev().fold(end, |next, t| {
            fitted.v[first + episode + t] + ratio(t) * (reward(t) + gamma * next - fitted.q[first + t])
        });
        Episode {
            weight,
            total: total + discount * end,
            per_decision: per_decision + discount * weight * end,
            doubly_robust,
        }
    }
}
