//! The exact values of recorded data with discrete actions and repeating states, as a reference for learned
//! ones.
//!
//! States with identical observations are one state, as everywhere in this crate. `Q*_D` and `V*_D` are those
//! of the empirical MDP; a policy is evaluated in it by one sparse solve, without sampling.
//!
//! ```
//! use album_data::{ActionSpace, Dataset, Rows};
//! use album_tabular::truth::Truth;
//!
//! // State 1 leads to 2 by action 0 (reward 0); from 2, action 0 pays 1 and action 1 pays 3, and both end.
//! let rows = Rows {
//!     observation_dim: 1,
//!     action_dim: 1,
//!     observations: vec![1.0, 2.0, 9.0, 2.0, 9.0],
//!     actions: vec![0.0, 0.0, 0.0, 1.0, 0.0],
//!     rewards: vec![0.0, 1.0, 0.0, 3.0, 0.0],
//!     masks: vec![1.0, 0.0, 1.0, 0.0, 1.0],
//!     terminals: vec![false, false, true, false, true],
//! };
//! let data = Dataset::in_space(rows, ActionSpace::Discrete { n: 2 })?;
//! let truth = Truth::of(&data, 0.5)?;
//! let (one, two) = (truth.state_of(&[1.0]).unwrap(), truth.state_of(&[2.0]).unwrap());
//! assert_eq!((truth.v(one), truth.q(two, 0), truth.q(one, 1)), (1.5, Some(1.0), None));
//!
//! let coin = truth.value_of_policy(|state| if state == two { vec![0.5, 0.5] } else { vec![1.0, 0.0] })?;
//! assert_eq!(coin.values[one], 1.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::HashMap;

use album_data::{ActionSpace, Dataset};
use serde::Serialize;

use crate::policy::{discounted_kernel, policy_iteration};
use crate::{DiscountedSystem, EmpiricalMdp, JoinedStates, TabularError};

/// `Q*_D` and `V*_D` of a dataset, state by state. States are numbered from 0 in the order in which they are
/// first acted in; states that are only reached have no number and value 0.
#[derive(Debug, Clone)]
pub struct Truth {
    empirical: EmpiricalMdp,
    q: Vec<f64>,
    v: Vec<f64>,
    actions: usize,
    dim: usize,
    observations: Vec<f32>,
    numbers: HashMap<Vec<u32>, u32>,
    state_of_transition: Vec<u32>,
}

/// A state with an action recorded there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// The state's number.
    pub state: usize,
    /// The action.
    pub action: usize,
    /// How often it was recorded.
    pub count: u64,
    /// `Q*_D`.
    pub q: f64,
}

/// The exact value of a policy.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyValue {
    /// Its value at each state.
    pub values: Vec<f64>,
    /// The probability of taking an action never recorded in the state. The data says nothing about what
    /// follows; such actions count as the lowest value that the rewards allow.
    pub unrecorded: Vec<f64>,
}

/// Errors of learned values against exact ones. Means are over the transitions of the data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Errors {
    /// Mean signed error.
    pub bias: f64,
    /// Mean absolute error.
    pub mean: f64,
    /// Root mean square error.
    pub rms: f64,
    /// Largest absolute error.
    pub max: f64,
    /// The index of the pair or state with the largest error.
    pub worst: usize,
}

impl Truth {
    /// Joins equal states and solves the empirical MDP.
    pub fn of(data: &Dataset, gamma: f64) -> Result<Self, TabularError> {
        let &ActionSpace::Discrete { n: actions } = data.action_space() else {
            return Err(TabularError::Continuous);
        };
        let joined = JoinedStates::new(data);
        let tabular = joined.tabular(data, |t, _| data.action(t)[0] as i64);
        let empirical = EmpiricalMdp::new(&tabular, gamma)?;
        let optimum = policy_iteration(&empirical.mdp)?;
        let dim = data.observation_dim();
        let mut observations = vec![0.0; empirical.mdp.decision_states() * dim];
        let mut numbers = HashMap::new();
        let state_of_transition: Vec<u32> =
            empirical.row_pair.iter().map(|&pair| empirical.mdp.state_of(pair as usize) as u32).collect();
        for (t, &state) in state_of_transition.iter().enumerate() {
            numbers.entry(bits(data.observation(t))).or_insert_with(|| {
                observations[state as usize * dim..][..dim].copy_from_slice(data.observation(t));
                state
            });
        }
        let (q, v) = (optimum.q, optimum.v);
        Ok(Self { empirical, q, v, actions, dim, observations, numbers, state_of_transition })
    }

    /// Number of states in which the data acts.
    pub fn states(&self) -> usize {
        self.v.len()
    }

    /// Number of actions, recorded or not.
    pub fn actions(&self) -> usize {
        self.actions
    }

    /// The observation of a state.
    pub fn observation(&self, state: usize) -> &[f32] {
        &self.observations[state * self.dim..][..self.dim]
    }

    /// The state with this observation, if the data acts in it.
    pub fn state_of(&self, observation: &[f32]) -> Option<usize> {
        self.numbers.get(&bits(observation)).map(|&state| state as usize)
    }

    /// The state of each transition of the data.
    pub fn state_of_transition(&self) -> &[u32] {
        &self.state_of_transition
    }

    /// `V*_D` at a state.
    pub fn v(&self, state: usize) -> f64 {
        self.v[state]
    }

    /// `Q*_D` of an action, if it was recorded in the state.
    pub fn q(&self, state: usize, action: usize) -> Option<f64> {
        self.empirical.mdp.pairs_of(state).find(|&pair| self.action(pair) == action).map(|pair| self.q[pair])
    }

    /// The recorded pairs, by state and then by action.
    pub fn pairs(&self) -> impl ExactSizeIterator<Item = Pair> + '_ {
        (0..self.q.len()).map(|pair| Pair {
            state: self.empirical.mdp.state_of(pair),
            action: self.action(pair),
            count: self.empirical.counts[pair],
            q: self.q[pair],
        })
    }

    /// The empirical MDP behind the values.
    pub fn empirical(&self) -> &EmpiricalMdp {
        &self.empirical
    }

    /// The exact value of a policy that gives the probability of every action at a state.
    pub fn value_of_policy(
        &self,
        mut policy: impl FnMut(usize) -> Vec<f64>,
    ) -> Result<PolicyValue, TabularError> {
        let mdp = &self.empirical.mdp;
        let lowest = mdp.underestimate();
        let mut probabilities = vec![0.0; mdp.pairs()];
        let (mut reward, mut unrecorded) = (vec![0.0; self.states()], vec![0.0; self.states()]);
        for state in 0..self.states() {
            let at_state = check_distribution(state, policy(state), self.actions)?;
            let mut recorded = 0.0;
            for pair in mdp.pairs_of(state) {
                let p = at_state[self.action(pair)];
                recorded += p;
                probabilities[pair] = p;
                reward[state] += p * mdp.reward()[pair];
            }
            let left = 1.0 - recorded;
            unrecorded[state] = if left > 1e-12 { left } else { 0.0 };
            reward[state] += unrecorded[state] * lowest;
        }
        let t = discounted_kernel(mdp, &probabilities);
        Ok(PolicyValue { values: DiscountedSystem::new(&t).solve(&reward), unrecorded })
    }

    /// The mean of one value per state over the transitions of the data.
    pub fn mean_over_data(&self, values: &[f64]) -> f64 {
        let sum: f64 = self.state_of_transition.iter().map(|&state| values[state as usize]).sum();
        sum / self.state_of_transition.len() as f64
    }

    /// Errors of a learned Q at every recorded pair.
    pub fn q_errors(&self, mut learned: impl FnMut(usize, usize) -> f64) -> Errors {
        let counts = self.empirical.counts.iter().copied();
        errors(self.pairs().zip(counts).map(|(pair, n)| (learned(pair.state, pair.action), pair.q, n)))
    }

    /// Errors of a learned V at every state.
    pub fn v_errors(&self, mut learned: impl FnMut(usize) -> f64) -> Errors {
        let mdp = &self.empirical.mdp;
        let count = |state| self.empirical.counts[mdp.pairs_of(state)].iter().sum();
        errors((0..self.states()).map(|state| (learned(state), self.v[state], count(state))))
    }

    fn action(&self, pair: usize) -> usize {
        self.empirical.pair_actions[pair] as usize
    }
}

/// Summarises tuples (learned, exact, count).
fn errors(values: impl Iterator<Item = (f64, f64, u64)>) -> Errors {
    let (mut total, mut result) = (0.0, Errors { bias: 0.0, mean: 0.0, rms: 0.0, max: 0.0, worst: 0 });
    for (i, (learned, exact, count)) in values.enumerate() {
        let (difference, count) = (learned - exact, count as f64);
        total += count;
        result.bias += count * difference;
        result.mean += count * difference.abs();
        result.rms += count * difference * difference;
        if !result.max.is_nan() && !(difference.abs() <= result.max) {
            (result.max, result.worst) = (difference.abs(), i);
        }
    }
    result.bias /= total;
    result.mean /= total;
    result.rms = (result.rms / total).sqrt();
    result
}

/// Refuses anything but a distribution over the actions.
pub(crate) fn check_distribution(
    state: usize,
    found: Vec<f64>,
    actions: usize,
) -> Result<Vec<f64>, TabularError> {
    let sum: f64 = found.iter().sum();
    if found.len() == actions && found.iter().all(|&p| p >= 0.0) && (sum - 1.0).abs() < 1e-4 {
        // Network outputs sum to 1 only in single precision.
        return Ok(found.into_iter().map(|p| p / sum).collect());
    }
    Err(TabularError::Policy { state, found, actions })
}

/// Equal numbers have equal bits; 0 equals -0.
fn bits(observation: &[f32]) -> Vec<u32> {
    observation.iter().map(|x| (x + 0.0).to_bits()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Behaviour, Encoding, MudWorld, in_sample_values, policy_value};

    fn truth() -> (Dataset, Truth) {
        let world = MudWorld::new(8, 2);
        let data = world.recorded(Behaviour::EpsGreedy, 0.95, Encoding::Coordinates).unwrap();
        let truth = Truth::of(&data, 0.95).unwrap();
        (data, truth)
    }

    #[test]
    fn values_are_those_of_every_other_command() {
        let (data, truth) = truth();
        let expected = in_sample_values(&data, 0.95).unwrap().values;
        for (t, value) in expected.iter().enumerate() {
            let state = truth.state_of(data.observation(t)).unwrap();
            assert_eq!(truth.state_of_transition()[t] as usize, state);
            assert_eq!(truth.observation(state), data.observation(t));
            assert!((truth.v(state) - value).abs() < 1e-12);
        }
    }

    #[test]
    fn the_behaviour_and_the_best_policy_have_their_values() {
        let (_, truth) = truth();
        let mut behaviour = vec![vec![0.0; 4]; truth.states()];
        truth
            .pairs()
            .zip(&truth.empirical().behaviour)
            .for_each(|(pair, &p)| behaviour[pair.state][pair.action] = p);
        let found = truth.value_of_policy(|state| behaviour[state].clone()).unwrap();
        let (_, expected) = policy_value(&truth.empirical().mdp, &truth.empirical().behaviour);
        assert!(crate::max_difference(&found.values, &expected) < 1e-10);
        assert!(found.unrecorded.iter().all(|&p| p == 0.0));
        let best = truth.value_of_policy(|state| {
            let q = |action: &usize| truth.q(state, *action).unwrap_or(f64::NEG_INFINITY);
            let best = (0..4).max_by(|a, b| q(a).total_cmp(&q(b))).unwrap();
            (0..4).map(|action| f64::from(u8::from(action == best))).collect()
        });
        let best = best.unwrap();
        assert!((0..truth.states()).all(|state| (best.values[state] - truth.v(state)).abs() < 1e-10));
        assert!(truth.mean_over_data(&best.values) > truth.mean_over_data(&found.values));
    }

    #[test]
    fn unrecorded_actions_are_worth_the_least() {
        let (_, truth) = truth();
        let uniform = truth.value_of_policy(|_| vec![0.25; 4]).unwrap();
        let state = uniform.unrecorded.iter().position(|&p| p > 0.0).unwrap();
        assert!(uniform.values[state] < truth.v(state));
        assert!(uniform.values[state] >= truth.empirical().mdp.underestimate());
        assert!(truth.value_of_policy(|_| vec![0.5; 4]).is_err());
    }

    #[test]
    fn errors_are_counted_by_transitions() {
        let (_, truth) = truth();
        let exact = truth.q_errors(|state, action| truth.q(state, action).unwrap());
        assert_eq!((exact.bias, exact.max), (0.0, 0.0));
        let shifted = truth.v_errors(|state| truth.v(state) + 0.5);
        assert!((shifted.bias - 0.5).abs() < 1e-12 && (shifted.rms - 0.5).abs() < 1e-12);
        let broken = truth.v_errors(|state| if state == 3 { f64::NAN } else { truth.v(state) });
        assert!(broken.max.is_nan() && broken.worst >= 3);
    }

    #[test]
    fn continuous_actions_are_refused() {
        let rows = album_data::Rows {
            observation_dim: 1,
            action_dim: 1,
            observations: vec![0.0, 1.0],
            actions: vec![0.0; 2],
            rewards: vec![0.0; 2],
            masks: vec![1.0; 2],
            terminals: vec![false, true],
        };
        let error = Truth::of(&Dataset::from_rows(rows).unwrap(), 0.9).unwrap_err();
        assert!(error.to_string().contains("discrete"));
    }
}
