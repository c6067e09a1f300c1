//! What follows where the policy leaves the data. No network knows it, so that the interval has room for everything.
//!
//! Walks with the policy, over recorded steps: in a state `s` its action makes a pair, the nearest recorded pair of another
//! episode, `(s_n, a_n, r_n, s_n')`, gives the reward and the step, and the walk goes on from `s_n' + (s - s_n)`. It keeps its
//! distance to the neighbour, so that a policy which drifts away from the data a little at each step is found to leave it. At
//! the time `T` no pair is near. Behind it lies any value that the data's rewards allow, `[least, greatest]`, where the estimate
//! has `V(s_T)`:
//!
//! ```text
//! weight = E[gamma^T],   below = E[gamma^T (V(s_T) - least)],   above = E[gamma^T (greatest - V(s_T))]
//! walked = E[sum of gamma^t r_n over t < T, plus gamma^T V(s_T)]
//! ```
//!
//! `walked` is a second estimate, without a network but for what is behind `T`.

use super::neighbours::Neighbours;
use album_agents::{Moment, Policy};
use album_data::View;
use serde::{Deserialize, Serialize};

/// A pair is near within so many times the distance that 95 % of the recorded ones keep. Once would call a twentieth of
/// the behaviour's own actions unseen at every step.
const NEAR: f64 = 2.0;
/// Walks from initial states, evenly spread, where there are as many.
const WALKS: usize = 200;
/// A walk ends where the discount has come down to this.
const NOTHING: f64 = 0.01;

/// A smaller weight is no reason for a warning.
const WORTH_SAYING: f64 = 0.05;

/// What the estimate rests on that was never recorded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unseen {
    /// The discounted probability of leaving the data: 0 where the policy never does, 1 where its first actions do.
    pub weight: f64,
    /// By how much less a value may be because of it.
    pub below: f64,
    /// And by how much more.
    pub above: f64,
    /// The mean return of walks over recorded steps: another estimate of the policy's value.
    pub walked: f64,
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

/// One walk.
struct Walk {
    episode: usize,
    state: Vec<f32>,
    discount: f64,
    sum: f64,
}

/// `value` is the estimate of a state and the policy's action in it, `range` what the data's rewards allow, `threshold` the
/// distance of the recorded pairs.
pub(crate) fn measure(
    neighbours: &Neighbours<'_>,
    policy: &mut dyn Policy,
    value: &mut dyn FnMut(View<'_>, View<'_>) -> Vec<f64>,
    gamma: f64,
    [least, greatest]: [f64; 2],
    threshold: f64,
) -> Unseen {
    let data = neighbours.data;
    let (dim, width) = (data.observation_dim(), data.action_dim());
    let episodes: Vec<usize> =
        (0..data.episodes().len()).filter(|&episode| data.episodes().length(episode) > 0).collect();
    let mut walking: Vec<Walk> = episodes
        .iter()
        .step_by(episodes.len().div_ceil(WALKS).max(1))
        .map(|&episode| {
            let state = data.observation(data.episodes().start(episode)).to_vec();
            Walk { episode, state, discount: 1.0, sum: 0.0 }
        })
        .collect();
    let walks = walking.len().max(1) as f64;
    let [mut weight, mut below, mut above, mut walked] = [0.0; 4];
    let (mut actions, mut step) = (Vec::new(), 0);
    while !walking.is_empty() {
        let states: Vec<f32> = walking.iter().flat_map(|walk| walk.state.iter().copied()).collect();
        let moments: Vec<Moment> =
            walking.iter().map(|walk| Moment { episode: walk.episode as u64, step }).collect();
        policy.act(&states, &moments, &mut actions);
        data.action_space().from_physical(&mut actions);
        let pairs: Vec<_> = walking
            .iter()
            .zip(actions.chunks_exact(width))
            .map(|(walk, action)| neighbours.pair(walk.episode, &walk.state, action))
            .collect();
        let rows = walking.len();
        let values = value(View::new(&states, rows, dim), View::new(&actions, rows, width));
        let found = neighbours.nearest(&pairs);
        let mut at = 0;
        walking.retain_mut(|walk| {
            let ((distance, place), value) = (found[at], values[at].clamp(least, greatest));
            at += 1;
            let last = walk.discount < NOTHING;
            let left = !(distance.is_finite() && distance <= NEAR * threshold);
            if left || last {
                walked += walk.sum + walk.discount * value;
                if left {
                    weight += walk.discount;
                    below += walk.discount * (value - least);
                    above += walk.discount * (greatest - value);
                }
                return false;
            }
            let transition = neighbours.places()[place].transition;
            walk.sum += walk.discount * f64::from(data.reward(transition));
            walk.discount *= gamma * f64::from(data.mask(transition));
            if walk.discount == 0.0 {
                walked += walk.sum;
                return false;
            }
            let (from, to) = (data.observation(transition), data.next_observation(transition));
            for ((state, from), to) in walk.state.iter_mut().zip(from).zip(to) {
                *state = to + (*state - from);
            }
            true
        });
        step += 1;
    }
    Unseen { weight: weight / walks, below: below / walks, above: above / walks, walked: walked / walks }
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

    /// A choice for each of the three states.
    struct Table([f32; 3]);

    impl Policy for Table {
        fn act(&mut self, observations: &[f32], _: &[Moment], actions: &mut Vec<f32>) {
            *actions = observations.iter().map(|&state| self.0[state as usize]).collect();
        }
    }

    fn unseen(choices: [f32; 3]) -> Unseen {
        let (data, gamma) = (data(), 0.9);
        let range = value_range(&data, gamma);
        assert!(
            (range[0] + 10.0).abs() < 1e-9 && range[1] == 0.5,
            "-1 may go on for ever, 0.5 ends: {range:?}"
        );
        let mut value =
            |s: View<'_>, _: View<'_>| s.data().iter().map(|&s| [-3.0, -2.0, 0.0][s as usize]).collect();
        measure(&Neighbours::of(&data, 2), &mut Table(choices), &mut value, gamma, range, 0.0)
    }

    #[test]
    fn what_follows_an_unseen_choice_may_be_anything() {
        let close = |found: Unseen, expected: [f64; 4]| {
            for (x, y) in [found.weight, found.below, found.above, found.walked].into_iter().zip(expected) {
                assert!((x - y).abs() < 1e-9, "{found:?} {expected:?}");
            }
        };
        // Behind the end of the task nobody acts.
        close(unseen([0.0, 0.0, 1.0]), [0.0, 0.0, 0.0, -1.0 + 0.9 * 0.5]);
        // After one step, where the estimate says -2; at once, where it says -3.
        close(unseen([0.0, 1.0, 0.0]), [0.9, 0.9 * 8.0, 0.9 * 2.5, -1.0 - 0.9 * 2.0]);
        close(unseen([1.0, 0.0, 0.0]), [1.0, 7.0, 3.5, -3.0]);
        assert!(unseen([0.0, 1.0, 0.0]).warning().is_some() && unseen([0.0; 3]).warning().is_none());
    }

    /// Always up.
    struct Up;

    impl Policy for Up {
        fn act(&mut self, observations: &[f32], _: &[Moment], actions: &mut Vec<f32>) {
            *actions = observations.chunks_exact(2).flat_map(|_| [0.0, 1.0]).collect();
        }
    }

    /// Recordings go to the right at several heights, up and down in turns, so that a step up has a near neighbour
    /// everywhere. A policy that goes up at every step leaves them all the same, after a while.
    #[test]
    fn a_slow_drift_leaves_the_data() {
        let (episodes, length) = (20, 40);
        let mut rows = Rows { observation_dim: 2, action_dim: 2, ..Rows::default() };
        for episode in 0..episodes {
            for step in 0..=length {
                let up = (step + episode) % 2 == 0;
                let height = 0.1 * episode as f32 - if up { 1.0 } else { 0.9 };
                rows.observations.extend([step as f32 * 0.1, height]);
                rows.actions.extend([0.0, if up { 1.0 } else { -1.0 }]);
                rows.rewards.push(if up { -1.0 } else { 0.0 });
                rows.masks.push(1.0);
                rows.terminals.push(step == length);
            }
        }
        let space = ActionSpace::Continuous { low: vec![-1.0; 2], high: vec![1.0; 2] };
        let data = Dataset::in_space(rows, space).unwrap();
        let mut value = |s: View<'_>, _: View<'_>| vec![-5.0; s.rows()];
        let (neighbours, range) = (Neighbours::of(&data, 1), value_range(&data, 0.95));
        let found = measure(&neighbours, &mut Up, &mut value, 0.95, range, 0.2);
        assert!(found.weight > 0.2 && found.weight < 0.8 && found.below > 2.0, "{found:?}");
    }
}
