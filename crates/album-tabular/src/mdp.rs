//! A finite discounted MDP `(S, A, P, R, gamma)` whose states may offer different actions.

use crate::TabularError;
use crate::sparse::Csr;
use std::ops::Range;

/// One action of a state: its expected reward and its successors with their probabilities.
pub type Action = (f64, Vec<(usize, f64)>);

/// A finite MDP, pair by pair. A *pair* is a state with one of its actions; the pairs of a state are contiguous.
///
/// A state without pairs is absorbing and has value 0. Such states come last, so the states
/// `0..decision_states()` are exactly the ones with a decision (and a variable of the linear program).
#[derive(Clone, Debug)]
pub struct Mdp {
    gamma: f64,
    states: usize,
    first_pair: Vec<usize>,
    state_of: Vec<u32>,
    reward: Vec<f64>,
    kernel: Csr,
}

impl Mdp {
    /// Builds an MDP from the pairs of each decision state: `pairs[s]` lists `(R(s,a), P(.|s,a))`.
    /// States from `pairs.len()` to `states` are absorbing.
    ///
    /// ```
    /// use album_tabular::Mdp;
    /// // One decision: stop now for 1, or wait for 0.1 and decide again. State 1 is absorbing.
    /// let mdp = Mdp::new(0.5, 2, &[vec![(1.0, vec![(1, 1.0)]), (0.1, vec![(0, 1.0)])]])?;
    /// let (q, v) = album_tabular::value_iteration(&mdp, 1e-12);
    /// assert_eq!(v[0], 1.0);
    /// assert_eq!(q, vec![1.0, 0.6]);
    /// # Ok::<(), album_tabular::TabularError>(())
    /// ```
    pub fn new(gamma: f64, states: usize, pairs: &[Vec<Action>]) -> Result<Self, TabularError> {
        let mut first_pair = vec![0];
        let mut reward = Vec::new();
        let mut kernel = Csr::new(states);
        for (s, actions) in pairs.iter().enumerate() {
            if actions.is_empty() {
                return Err(TabularError::NoAction { state: s });
            }
            for (a, (r, successors)) in actions.iter().enumerate() {
                let total: f64 = successors.iter().map(|x| x.1).sum();
                if !r.is_finite() || (total - 1.0).abs() > 1e-9 || successors.iter().any(|x| !(x.1 > 0.0)) {
                    return Err(TabularError::Distribution { state: s, action: a, reward: *r, total });
                }
                if let Some(&(next, _)) = successors.iter().find(|x| x.0 >= states) {
                    return Err(TabularError::NoSuchState { state: s, action: a, next, states });
                }
                reward.push(*r);
                for &(next, p) in successors {
                    kernel.push(next, p);
                }
                kernel.end_row();
            }
            first_pair.push(reward.len());
        }
        if pairs.len() > states {
            return Err(TabularError::TooFewStates { found: pairs.len(), states });
        }
        Self::from_parts(gamma, states, first_pair, reward, kernel)
    }

    /// Assembles an MDP from consistent parts; checks only gamma.
    pub(crate) fn from_parts(
        gamma: f64,
        states: usize,
        first_pair: Vec<usize>,
        reward: Vec<f64>,
        kernel: Csr,
    ) -> Result<Self, TabularError> {
        check_gamma(gamma)?;
        let mut state_of = vec![0; reward.len()];
        for s in 0..first_pair.len() - 1 {
            state_of[first_pair[s]..first_pair[s + 1]].fill(s as u32);
        }
        Ok(Mdp { gamma, states, first_pair, state_of, reward, kernel })
    }

    /// The discount factor.
    pub fn gamma(&self) -> f64 {
        self.gamma
    }

    /// All states, absorbing ones included.
    pub fn states(&self) -> usize {
        self.states
    }

    /// The states with at least one action; they are the states `0..decision_states()`.
    pub fn decision_states(&self) -> usize {
        self.first_pair.len() - 1
    }

    /// Number of (state, action) pairs.
    pub fn pairs(&self) -> usize {
        self.reward.len()
    }

    /// The pairs of decision state `s`.
    pub fn pairs_of(&self, s: usize) -> Range<usize> {
        self.first_pair[s]..self.first_pair[s + 1]
    }

    /// The state of a pair.
    pub fn state_of(&self, pair: usize) -> usize {
        self.state_of[pair] as usize
    }

    /// `R(s,a)` of every pair.
    pub fn reward(&self) -> &[f64] {
        &self.reward
    }

    /// `P(.|s,a)`: one row per pair, one column per state.
    pub fn kernel(&self) -> &Csr {
        &self.kernel
    }

    /// The successors of a pair that are decision states, with their probabilities; absorbing ones are left
    /// out.
    pub fn onward(&self, pair: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        self.kernel.row(pair).filter(|x| x.0 < self.decision_states())
    }

    /// Whether every pair has exactly one successor.
    pub fn is_deterministic(&self) -> bool {
        self.first_stochastic().is_none()
    }

    /// The first pair with several successors.
    pub fn first_stochastic(&self) -> Option<usize> {
        (0..self.pairs()).find(|&pair| self.kernel.row(pair).len() != 1)
    }

    /// The unique successor of a pair of a deterministic MDP (the first one otherwise).
    pub fn successor(&self, pair: usize) -> usize {
        self.kernel.row(pair).next().map_or(0, |(s, _)| s)
    }

    /// `R(s,a) + gamma (P V)(s,a)`: the one-step target y_1. `v` has one value per decision state; absorbing
    /// states count as 0.
    pub fn y_1(&self, pair: usize, v: &[f64]) -> f64 {
        let next: f64 = self.onward(pair).map(|(s, p)| p * v[s]).sum();
        self.reward[pair] + self.gamma * next
    }

    /// `max_a Q(s,a)` for every decision state.
    pub fn max_over_actions(&self, q: &[f64]) -> Vec<f64> {
        (0..self.decision_states())
            .map(|s| q[self.pairs_of(s)].iter().copied().fold(f64::NEG_INFINITY, f64::max))
            .collect()
    }

    /// The smallest and largest reward.
    pub fn reward_range(&self) -> (f64, f64) {
        self.reward.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), &r| (lo.min(r), hi.max(r)))
    }

    /// A lower bound on every value: `r_min / (1 - gamma)`, or 0 if rewards are positive and episodes may
    /// end.
    pub fn underestimate(&self) -> f64 {
        self.reward_range().0.min(0.0) / (1.0 - self.gamma)
    }
}

/// Refuses a discount factor outside `[0, 1)`.
pub fn check_gamma(gamma: f64) -> Result<(), TabularError> {
    if (0.0..1.0).contains(&gamma) { Ok(()) } else { Err(TabularError::Gamma(gamma)) }
}

/// The largest absolute difference of two vectors.
pub fn max_difference(a: &[f64], b: &[f64]) -> f64 {
    debug_assert_eq!(a.len(), b.len());
    a.iter().zip(b).fold(0.0, |worst, (x, y)| {
        let d = (x - y).abs();
        if d > worst || d.is_nan() { d } else { worst }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_parts_are_named() {
        let message = |r: Result<Mdp, TabularError>| r.unwrap_err().to_string();
        assert!(message(Mdp::new(1.0, 1, &[vec![(0.0, vec![(0, 1.0)])]])).contains("gamma is 1"));
        assert!(message(Mdp::new(0.9, 1, &[vec![(0.0, vec![(0, 0.5)])]])).contains("add up to 0.5"));
        assert!(message(Mdp::new(0.9, 1, &[vec![(0.0, vec![(3, 1.0)])]])).contains("successor 3"));
        assert!(
            message(Mdp::new(0.9, 2, &[vec![], vec![(0.0, vec![(0, 1.0)])]]))
                .contains("state 0 has no action")
        );
        assert!(message(Mdp::new(0.9, 1, &[vec![(f64::NAN, vec![(0, 1.0)])]])).contains("NaN"));
    }

    #[test]
    fn max_difference_reports_nan() {
        assert!(max_difference(&[0.0, f64::NAN], &[0.0, 0.0]).is_nan());
    }
}
