//! Policies of an MDP: their values, and policy iteration.

use crate::linear::{DiscountedSystem, components};
use crate::sparse::{Csr, RowBuilder};
use crate::{Mdp, TabularError};

/// `(Q^pi, V^pi)` of a stochastic policy, given as one probability per pair (for example
/// [`EmpiricalMdp::behaviour`](crate::EmpiricalMdp::behaviour)).
pub fn policy_value(mdp: &Mdp, policy: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let t = discounted_kernel(mdp, policy);
    let reward: Vec<f64> = (0..mdp.decision_states())
        .map(|s| mdp.pairs_of(s).map(|pair| policy[pair] * mdp.reward()[pair]).sum())
        .collect();
    let v = DiscountedSystem::new(&t).solve(&reward);
    let q = (0..mdp.pairs()).map(|pair| mdp.y_1(pair, &v)).collect();
    (q, v)
}

/// `gamma P_pi` over the decision states.
pub(crate) fn discounted_kernel(mdp: &Mdp, policy: &[f64]) -> Csr {
    let n = mdp.decision_states();
    let mut t = Csr::new(n);
    let mut row = RowBuilder::new(n);
    for s in 0..n {
        for pair in mdp.pairs_of(s).filter(|&pair| policy[pair] > 0.0) {
            for (next, p) in mdp.onward(pair) {
                row.add(next, mdp.gamma() * policy[pair] * p);
            }
        }
        row.finish(&mut t);
    }
    t
}

/// The result of policy iteration.
pub(crate) struct Optimum {
    pub q: Vec<f64>,
    pub v: Vec<f64>,
    /// The pair that the optimal policy takes at each decision state.
    pub choice: Vec<usize>,
    /// Policies evaluated.
    pub iterations: usize,
}

/// Policy iteration, started from a few value-iteration sweeps.
///
/// The sweeps run backwards in time (successors first), so on acyclic data the first sweep is exact and one
/// evaluation confirms it.
pub(crate) fn policy_iteration(mdp: &Mdp) -> Result<Optimum, TabularError> {
    const SWEEPS: usize = 50;
    const MOST: usize = 10_000;
    let n = mdp.decision_states();
    let mut v = vec![mdp.underestimate(); n];
    let order = backward_order(mdp);
    for sweep in 0..SWEEPS {
        let mut change = 0.0f64;
        let mut update = |s: usize| {
            let best = mdp.pairs_of(s).map(|pair| mdp.y_1(pair, &v)).fold(f64::NEG_INFINITY, f64::max);
            change = change.max((best - v[s]).abs());
            v[s] = best;
        };
        // Every other sweep runs forwards, for the cycles.
        if sweep % 2 == 0 {
            order.iter().for_each(|&s| update(s as usize));
        } else {
            order.iter().rev().for_each(|&s| update(s as usize));
        }
        if change == 0.0 {
            break;
        }
    }
    let mut choice: Vec<usize> = (0..n).map(|s| greedy(mdp, s, &v).0).collect();
    for iterations in 1..=MOST {
        v = evaluate(mdp, &choice);
        let mut stable = true;
        for s in 0..n {
            let (best, value) = greedy(mdp, s, &v);
            // Switch only for a real gain, so that rounding cannot alternate between two equal actions.
            if value > v[s] + 1e-12 * (1.0 + v[s].abs()) {
                choice[s] = best;
                stable = false;
            }
        }
        if stable {
            let q: Vec<f64> = (0..mdp.pairs()).map(|pair| mdp.y_1(pair, &v)).collect();
            let v = mdp.max_over_actions(&q);
            return Ok(Optimum { q, v, choice, iterations });
        }
    }
    Err(TabularError::PolicyIteration { policies: MOST })
}

fn greedy(mdp: &Mdp, s: usize, v: &[f64]) -> (usize, f64) {
    mdp.pairs_of(s)
        .map(|pair| (pair, mdp.y_1(pair, v)))
        .fold((usize::MAX, f64::NEG_INFINITY), |best, x| if x.1 > best.1 { x } else { best })
}

/// `gamma P` restricted to the chosen pair of each decision state.
pub(crate) fn chosen_kernel(mdp: &Mdp, choice: &[usize]) -> Csr {
    let n = choice.len();
    let mut t = Csr::with_capacity(n, n, n);
    for &pair in choice {
        for (next, p) in mdp.onward(pair) {
            t.push(next, mdp.gamma() * p);
        }
        t.end_row();
    }
    t
}

fn evaluate(mdp: &Mdp, choice: &[usize]) -> Vec<f64> {
    let t = chosen_kernel(mdp, choice);
    let reward: Vec<f64> = choice.iter().map(|&pair| mdp.reward()[pair]).collect();
    DiscountedSystem::new(&t).solve(&reward)
}

/// The decision states, successors first (as far as cycles permit).
fn backward_order(mdp: &Mdp) -> Vec<u32> {
    let n = mdp.decision_states();
    let mut all_actions = Csr::with_capacity(n, n, mdp.kernel().nonzeros());
    for s in 0..n {
        for pair in mdp.pairs_of(s) {
            for (next, p) in mdp.onward(pair) {
                all_actions.push(next, p);
            }
        }
        all_actions.end_row();
    }
    components(&all_actions).0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::random_mdp;
    use crate::{max_difference, value_iteration};

    #[test]
    fn policy_iteration_agrees_with_value_iteration() {
        for seed in 0..60 {
            let gamma = [0.0, 0.3, 0.9, 0.99][seed as usize % 4];
            let mdp = random_mdp(seed, 25, 4, 3, gamma);
            let (q, v) = value_iteration(&mdp, 1e-13);
            let found = policy_iteration(&mdp).unwrap();
            assert!(max_difference(&q, &found.q) < 1e-10, "seed {seed}");
            assert!(max_difference(&v, &found.v) < 1e-10, "seed {seed}");
        }
    }

    #[test]
    fn the_value_of_the_optimal_policy_is_the_optimal_value() {
        let mdp = random_mdp(5, 40, 3, 4, 0.95);
        let found = policy_iteration(&mdp).unwrap();
        let mut policy = vec![0.0; mdp.pairs()];
        found.choice.iter().for_each(|&pair| policy[pair] = 1.0);
        let (q, v) = policy_value(&mdp, &policy);
        assert!(max_difference(&q, &found.q) < 1e-11 && max_difference(&v, &found.v) < 1e-11);
    }
}
