//! How far the policy's actions are from the recorded ones, and how often it leaves the support of the data.

use super::interval::{mean, quantile};
use super::neighbours::{Neighbours, Pair, Place, spread};
use super::policy::PolicyActions;
use album_data::ActionSpace;
use serde::{Deserialize, Serialize};

/// Maximum number of transitions queried, evenly spread over the data.
const ASKED: usize = 2000;
/// A pair is outside the support if its distance exceeds this quantile of the distances within the data.
const LEVEL: f64 = 0.95;

/// Distances between the policy's and the recorded action in the same state: the root mean square over the action
/// dimensions, in units of half their range; for discrete actions 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActionDistance {
    /// Mean distance; for discrete actions the fraction that differ.
    pub mean: f64,
    /// 5th percentile.
    pub q05: f64,
    /// 25th percentile.
    pub q25: f64,
    /// Median.
    pub q50: f64,
    /// 75th percentile.
    pub q75: f64,
    /// 95th percentile.
    pub q95: f64,
}

/// Distances from `(state, action)` to the nearest recorded pair of another episode.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Support {
    /// Fraction of states where the policy's action is farther from the data than 95 % of the recorded ones.
    pub outside: f64,
    /// 95th percentile of the recorded actions' distances.
    pub threshold: f64,
    /// Median of the recorded actions' distances.
    pub recorded_median: f64,
    /// Median of the policy's actions' distances; `null` if most have no neighbour at all.
    pub policy_median: Option<f64>,
}

/// Measures action distances and support.
pub(crate) fn measure(neighbours: &Neighbours<'_>, actions: &PolicyActions) -> (ActionDistance, Support) {
    let data = neighbours.data;
    let asked = spread(data, ASKED);
    let discrete = matches!(data.action_space(), ActionSpace::Discrete { .. });
    let distances = asked.iter().map(|place| {
        let (policy, recorded) = (actions.at(0, place.state), data.action(place.transition));
        if discrete { f64::from(u8::from(policy != recorded)) } else { root_mean_square(policy, recorded) }
    });
    let distances = sorted(distances.collect());
    let at = |q| quantile(&distances, q);
    let distance = ActionDistance {
        mean: mean(&distances),
        q05: at(0.05),
        q25: at(0.25),
        q50: at(0.5),
        q75: at(0.75),
        q95: at(0.95),
    };

    let pair = |place: &Place, action: &[f32]| {
        neighbours.pair(place.episode, data.observation(place.transition), action)
    };
    // Pairs without a neighbour have infinite distance and sort last.
    let nearest = |pairs: Vec<Pair>| {
        sorted(neighbours.nearest(&pairs).into_iter().map(|(distance, _)| distance).collect())
    };
    let recorded = nearest(asked.iter().map(|place| pair(place, data.action(place.transition))).collect());
    let policy = nearest(asked.iter().map(|place| pair(place, actions.at(0, place.state))).collect());
    let threshold = quantile(&recorded, LEVEL);
    let outside = policy.iter().filter(|distance| **distance > threshold).count();
    let support = Support {
        outside: outside as f64 / policy.len().max(1) as f64,
        threshold,
        recorded_median: quantile(&recorded, 0.5),
        policy_median: Some(quantile(&policy, 0.5)).filter(|median| median.is_finite()),
    };
    (distance, support)
}

fn root_mean_square(x: &[f32], y: &[f32]) -> f64 {
    let squares = x.iter().zip(y).map(|(x, y)| f64::from(x - y).powi(2)).sum::<f64>();
    (squares / x.len().max(1) as f64).sqrt()
}

fn sorted(mut x: Vec<f64>) -> Vec<f64> {
    x.sort_by(f64::total_cmp);
    x
}
