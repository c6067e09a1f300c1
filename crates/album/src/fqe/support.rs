//! How far the policy's actions are from the data, and where it leaves its support.

use super::interval::{mean, quantile};
use super::neighbours::{Neighbours, Pair, Place, spread};
use super::policy::PolicyActions;
use album_data::ActionSpace;
use serde::{Deserialize, Serialize};

/// Transitions that are asked about, evenly spread, where there are as many.
const ASKED: usize = 2000;
/// The quantile of the data's own distances from which on an action is outside.
const LEVEL: f64 = 0.95;

/// Distances between the policy's and the recorded action of the same state: the root mean square over the numbers of an
/// action, in halves of their ranges; 0 or 1 for choices.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActionDistance {
    /// The mean; the share of different choices.
    pub mean: f64,
    /// The 5th percentile.
    pub q05: f64,
    /// The 25th.
    pub q25: f64,
    /// The median.
    pub q50: f64,
    /// The 75th.
    pub q75: f64,
    /// The 95th.
    pub q95: f64,
}

/// Distances of `(state, action)` to the nearest one of another episode.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Support {
    /// The share of states where the policy's action is further away than 95 % of recorded ones are.
    pub outside: f64,
    /// The 95th percentile of recorded actions.
    pub threshold: f64,
    /// The median of recorded actions.
    pub recorded_median: f64,
    /// The median of the policy's actions; `null` where most have no neighbour at all.
    pub policy_median: Option<f64>,
}

/// Measures both.
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
    // Those without a neighbour are last.
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
