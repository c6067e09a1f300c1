//! What follows where the policy leaves the data. No network knows it, so that the interval has room for everything.
//!
//! From an initial state the policy's action leads to the nearest recorded pair of another episode, that pair to the state
//! which was recorded after it, and so on, until at time `T` no pair is near. Behind it lies any value that the data's rewards
//! allow, `[least, greatest]`, where the estimate has `V(s_T)`:
//!
//! ```text
//! weight = E[gamma^T],   estimated = E[gamma^T V(s_T)],   below = estimated - weight least,   above = weight greatest - estimated
//! ```
//!
//! The two expectations solve linear equations over the recorded pairs, and are found by going over them again and again.

use super::neighbours::Neighbours;
use super::policy::PolicyActions;
use serde::{Deserialize, Serialize};

/// A pair is near within so many times the distance that 95 % of the recorded ones keep. Once would call a twentieth of
/// the behaviour's own actions unseen at every step.
const NEAR: f64 = 2.0;
/// Initial states that are asked about, where there are as many.
const MOST: usize = 2000;
/// A sweep that changes no weight by more is the last one.
const CHANGE: f64 = 1e-5;
/// The last sweep in any case.
const SWEEPS: usize = 20_000;

/// A smaller weight is no reason for a warning.
const WORTH_SAYING: f64 = 0.05;

/// What the estimate rests on that was never recorded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unseen {
    /// The discounted probability of leaving the data: 0 where the policy never does, 1 where its first actions do.
    pub weight: f64,
    /// By how much the interval was widened downwards.
    pub below: f64,
    /// And upwards.
    pub above: f64,
}

impl Unseen {
    /// Says that the interval has room for what was never recorded.
    pub(crate) fn warning(&self) -> Option<String> {
        (self.weight > WORTH_SAYING).then(|| {
            format!(
                "the policy leaves the data (with a discounted probability of {:.0} %), and what follows there was never \
                 recorded: the interval has room for {:.4} less and {:.4} more",
                100.0 * self.weight,
                self.below,
                self.above
            )
        })
    }
}

/// The weight and the estimate's part behind a place.
type Behind = [f64; 2];

/// `v` is the estimate in every state, `range` what the data's rewards allow, `threshold` the distance of the recorded pairs.
pub(crate) fn measure(
    neighbours: &Neighbours<'_>,
    actions: &PolicyActions,
    v: &[f64],
    gamma: f64,
    [least, greatest]: [f64; 2],
    threshold: f64,
) -> Unseen {
    let data = neighbours.data;
    // Where every draw of the policy leads to from a state, if it is near a recorded pair.
    let follow = |states: &[(usize, usize, &[f32])]| -> Vec<Vec<Option<usize>>> {
        let draws = (0..actions.draws()).map(|draw| {
            let pairs: Vec<_> = states
                .iter()
                .map(|&(episode, state, seen)| neighbours.pair(episode, seen, actions.at(draw, state)))
                .collect();
            let near = |(distance, place): (f64, usize)| {
                (distance.is_finite() && distance <= NEAR * threshold).then_some(place)
            };
            neighbours.nearest(&pairs).into_iter().map(near).collect()
        });
        draws.collect()
    };
    let value = |state: usize| v[state].clamp(least, greatest);
    let mean = |behind: &[Behind], next: &[Vec<Option<usize>>], at: usize, state: usize| -> Behind {
        let mut sum = [0.0; 2];
        for draw in next {
            let [weight, estimated] = draw[at].map_or([1.0, value(state)], |place| behind[place]);
            sum = [sum[0] + weight, sum[1] + estimated];
        }
        sum.map(|x| x / next.len() as f64)
    };

    let places = neighbours.places();
    let after: Vec<_> = places
        .iter()
        .map(|place| (place.episode, place.state + 1, data.next_observation(place.transition)))
        .collect();
    let next = follow(&after);
    let mut behind = vec![[0.0; 2]; places.len()];
    for _ in 0..SWEEPS {
        let mut change = 0.0f64;
        for (at, place) in places.iter().enumerate() {
            let discount = gamma * f64::from(data.mask(place.transition));
            let found = mean(&behind, &next, at, place.state + 1).map(|x| discount * x);
            change = change.max((found[0] - behind[at][0]).abs());
            behind[at] = found;
        }
        if change <= CHANGE {
            break;
        }
    }

    let episodes: Vec<usize> =
        (0..data.episodes().len()).filter(|&episode| data.episodes().length(episode) > 0).collect();
    let first: Vec<_> = episodes
        .iter()
        .step_by(episodes.len().div_ceil(MOST).max(1))
        .map(|&episode| {
            let transition = data.episodes().start(episode);
            (episode, transition + episode, data.observation(transition))
        })
        .collect();
    let next = follow(&first);
    let mut total = [0.0; 2];
    for (at, &(_, state, _)) in first.iter().enumerate() {
        let [weight, estimated] = mean(&behind, &next, at, state);
        total = [total[0] + weight, total[1] + estimated];
    }
    let [weight, estimated] = total.map(|x| x / first.len().max(1) as f64);
    Unseen {
        weight,
        below: (estimated - weight * least).max(0.0),
        above: (weight * greatest - estimated).max(0.0),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use album_agents::agents::fqe::value_range;
    use album_data::{ActionSpace, Dataset, Rows};

    /// Three recordings of the same two steps, with choice 0 of two, to the end of the task.
    fn data() -> Dataset {
        let rows = Rows {
            observation_dim: 1,
            action_dim: 1,
            observations: [0.0, 1.0, 2.0].repeat(3),
            actions: vec![0.0; 9],
            rewards: [-1.0, 0.5, 0.0].repeat(3),
            masks: [1.0, 0.0, 1.0].repeat(3),
            terminals: [false, false, true].repeat(3),
        };
        Dataset::in_space(rows, ActionSpace::Discrete { n: 2 }).unwrap()
    }

    fn unseen(choices: [f32; 3]) -> Unseen {
        let (data, gamma) = (data(), 0.9);
        let actions = PolicyActions::given(1, choices.repeat(3));
        let range = value_range(&data, gamma);
        assert!(
            (range[0] + 10.0).abs() < 1e-9 && range[1] == 0.5,
            "-1 may go on for ever, 0.5 ends: {range:?}"
        );
        measure(&Neighbours::of(&data, 2), &actions, &[-3.0, -2.0, 0.0].repeat(3), gamma, range, 0.0)
    }

    #[test]
    fn what_follows_an_unseen_choice_may_be_anything() {
        // Behind the end of the task nobody acts.
        assert_eq!(unseen([0.0, 0.0, 1.0]), Unseen { weight: 0.0, below: 0.0, above: 0.0 });
        let close = |found: Unseen, expected: [f64; 3]| {
            for (x, y) in [found.weight, found.below, found.above].into_iter().zip(expected) {
                assert!((x - y).abs() < 1e-9, "{found:?} {expected:?}");
            }
        };
        // After one step, where the estimate says -2; at once, where it says -3.
        close(unseen([0.0, 1.0, 0.0]), [0.9, 0.9 * 8.0, 0.9 * 2.5]);
        close(unseen([1.0, 0.0, 0.0]), [1.0, 7.0, 3.5]);
        assert!(unseen([0.0, 1.0, 0.0]).warning().is_some() && unseen([0.0; 3]).warning().is_none());
    }
}
