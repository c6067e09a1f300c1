//! Bounds on what happens after the policy leaves the data. No network can know that value, so the interval is
//! widened to include every possible one.
//!
//! The policy is rolled out over recorded steps. In a state `s`, its action forms a pair; the nearest recorded pair
//! of another episode, `(s_n, a_n, r_n, s_n')`, supplies the reward and the step, and the walk continues from `s_n' +
//! (s - s_n)`. The offset from the neighbour is kept, so a policy that drifts away from the data a little at each
//! step is found to leave it. Let `T` be the first time at which no pair is near. From there on the value may be
//! anything that the data's rewards allow, `[least, greatest]`, where the estimate assumes `V(s_T)`:
//!
//! ```text
//! weight = E[gamma^T],   below = E[gamma^T (V(s_T) - least)],   above = E[gamma^T (greatest - V(s_T))]
//! walked = E[sum of gamma^t r_n over t < T, plus gamma^T V(s_T)]
//! ```
//!
//! `walked` is a second estimate of the value; it uses a network only after `T`.

use super::neighbours::Neighbours;
use album_agents::{Moment, Policy};
use album_data::View;
use serde::{Deserialize, Serialize};

/// A pair is near if its distance is at most this multiple of the 95th percentile within the data. With a multiple of
/// 1, a twentieth of the behaviour's own actions would count as unseen at every step.
const NEAR: f64 = 2.0;
/// Maximum number of walks, from evenly spread initial states.
const WALKS: usize = 200;
/// A walk ends when its discount factor has fallen to this value.
const NOTHING: f64 = 0.01;

/// Below this weight no warning is given.
const WORTH_SAYING: f64 = 0.05;

/// How much the estimate depends on behaviour that was never recorded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unseen {
    /// Discounted probability of leaving the data: 0 if the policy never does, 1 if it does with its first action.
    pub weight: f64,
    /// How far the value may lie below the estimate because of it.
    pub below: f64,
    /// How far the value may lie above the estimate because of it.
    pub above: f64,
    /// Mean return of the walks: a second estimate of the policy's value.
    pub walked: f64,
}

impl Unseen {
    /// A warning if the interval was noticeably widened.
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

/// State of one walk.
struct Walk {
    episode: usize,
    state: Vec<f32>,
    discount: f64,
    sum: f64,
}

/// Walks from initial states. `value` estimates a state with the policy's action in it, `range` is what the data's
/// rewards allow, and `threshold` is the 95th percentile of distances between recorded pairs.
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
    use album_agents::value_range;
    use album_data::{ActionSpace, Dataset, Rows};

    /// Three recordings of the same two steps to the end of the task, all with action 0 of two.
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

    /// A policy with one discrete action per state.
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
        // What the policy would do after the task has ended does not matter.
        close(unseen([0.0, 0.0, 1.0]), [0.0, 0.0, 0.0, -1.0 + 0.9 * 0.5]);
        // The policy leaves the data after one step, where the estimate is -2, or at once, where it is -3.
        close(unseen([0.0, 1.0, 0.0]), [0.9, 0.9 * 8.0, 0.9 * 2.5, -1.0 - 0.9 * 2.0]);
        close(unseen([1.0, 0.0, 0.0]), [1.0, 7.0, 3.5, -3.0]);
        assert!(unseen([0.0, 1.0, 0.0]).warning().is_some() && unseen([0.0; 3]).warning().is_none());
    }

    /// A policy that always moves up.
    struct Up;

    impl Policy for Up {
        fn act(&mut self, observations: &[f32], _: &[Moment], actions: &mut Vec<f32>) {
            *actions = observations.chunks_exact(2).flat_map(|_| [0.0, 1.0]).collect();
        }
    }

    /// The recordings move right at several heights, alternating up and down, so every single step up has a near
    /// neighbour. A policy that always moves up must still be found to leave the data eventually.
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
