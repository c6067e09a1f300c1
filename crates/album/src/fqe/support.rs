//! How far the policy's actions are from the data, and where it leaves its support.

use super::interval::{mean, quantile};
use super::policy::PolicyActions;
use album_data::{ActionSpace, Dataset};
use serde::{Deserialize, Serialize};

/// Transitions that are asked about, evenly spread, where there are as many.
const ASKED: usize = 2000;
/// Transitions among which neighbours are looked for.
const NEIGHBOURS: usize = 5000;
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

/// One transition.
#[derive(Clone, Copy)]
struct Place {
    transition: usize,
    episode: usize,
    state: usize,
}

/// Measures both on so many threads.
pub(crate) fn measure(data: &Dataset, actions: &PolicyActions, threads: usize) -> (ActionDistance, Support) {
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

    let space = Space::of(data, discrete);
    let known: Vec<(usize, Vec<f32>)> = spread(data, NEIGHBOURS)
        .iter()
        .map(|place| {
            (place.episode, space.point(data.observation(place.transition), data.action(place.transition)))
        })
        .collect();
    let nearest = |action: &(dyn Fn(&Place) -> Vec<f32> + Sync)| {
        let mut found = vec![0.0; asked.len()];
        let part = asked.len().div_ceil(threads.max(1)).max(1);
        std::thread::scope(|scope| {
            for (asked, found) in asked.chunks(part).zip(found.chunks_mut(part)) {
                let (known, space) = (&known, &space);
                scope.spawn(move || {
                    for (place, found) in asked.iter().zip(found) {
                        let point = space.point(data.observation(place.transition), &action(place));
                        let others = known.iter().filter(|(episode, _)| *episode != place.episode);
                        *found = others
                            .map(|(_, other)| space.distance(&point, other))
                            .fold(f64::INFINITY, f64::min);
                    }
                });
            }
        });
        sorted(found) // those without a neighbour last
    };
    let recorded = nearest(&|place| data.action(place.transition).to_vec());
    let policy = nearest(&|place| actions.at(0, place.state).to_vec());
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

/// Transitions at even distances.
fn spread(data: &Dataset, most: usize) -> Vec<Place> {
    (0..data.len())
        .step_by(data.len().div_ceil(most).max(1))
        .map(|transition| {
            let episode = data.episodes().locate(transition).episode;
            Place { transition, episode, state: transition + episode }
        })
        .collect()
}

fn root_mean_square(x: &[f32], y: &[f32]) -> f64 {
    let squares = x.iter().zip(y).map(|(x, y)| f64::from(x - y).powi(2)).sum::<f64>();
    (squares / x.len().max(1) as f64).sqrt()
}

fn sorted(mut x: Vec<f64>) -> Vec<f64> {
    x.sort_by(f64::total_cmp);
    x
}

/// Where distances of states and actions count alike: standardised by the data. Choices are near only to themselves.
struct Space {
    /// Mean and weight of every number.
    scales: Vec<(f32, f32)>,
    discrete: bool,
}

impl Space {
    fn of(data: &Dataset, discrete: bool) -> Self {
        let sample = spread(data, NEIGHBOURS);
        let column = |width: usize, number: &dyn Fn(&Place) -> f32| {
            let numbers: Vec<f64> = sample.iter().map(|place| number(place).into()).collect();
            let deviation = super::interval::deviation(&numbers);
            // A column that never changes has no distances.
            let weight = if deviation > 1e-6 { 1.0 / (deviation * (width as f64).sqrt()) } else { 0.0 };
            (mean(&numbers) as f32, weight as f32)
        };
        let (s, a) = (data.observation_dim(), data.action_dim());
        let mut scales: Vec<(f32, f32)> =
            (0..s).map(|j| column(s, &|place| data.observation(place.transition)[j])).collect();
        match discrete {
            true => scales.push((0.0, 1.0)),
            false => scales.extend((0..a).map(|j| column(a, &|place| data.action(place.transition)[j]))),
        }
        Space { scales, discrete }
    }

    fn point(&self, observation: &[f32], action: &[f32]) -> Vec<f32> {
        let numbers = observation.iter().chain(action);
        numbers.zip(&self.scales).map(|(x, (mean, weight))| (x - mean) * weight).collect()
    }

    fn distance(&self, x: &[f32], y: &[f32]) -> f64 {
        if self.discrete && x.last() != y.last() {
            return f64::INFINITY;
        }
        f64::from(x.iter().zip(y).map(|(x, y)| (x - y) * (x - y)).sum::<f32>()).sqrt()
    }
}
