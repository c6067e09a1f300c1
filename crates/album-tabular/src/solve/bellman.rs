//! The structural solver: the program's optimum is the Bellman-optimal pair, so policy iteration finds it, and the dual
//! variables are the discounted flow that the optimal policy pi sends through the pairs:
//!
//! ```text
//! at Q(s,a):  c_Q(s,a) - u(s,a) + v(s,a) = 0                                  u: dual of B, v: dual of E
//! at V(s):    c_V(s) + gamma sum_(t,b) P(s|t,b) u(t,b) - sum_a v(s,a) = 0
//! ```
//!
//! With `v(s,a) = 0` off the policy and `m(s) = v(s,pi(s))`, this is `m = c_V + gamma P'c_Q + (gamma P_pi)' m`.
//! The rollout rows are implied and carry no dual.

use super::Point;
use crate::linear::DiscountedSystem;
use crate::policy::{chosen_kernel, policy_iteration};
use crate::{Lblp, PerFamily, TabularError};

pub(super) fn solve(lblp: &Lblp<'_>) -> Result<Point, TabularError> {
    let (mdp, weights) = (lblp.mdp(), lblp.weights());
    let optimum = policy_iteration(mdp)?;
    let mut inflow = weights.c_v.clone();
    for (pair, c) in weights.c_q.iter().enumerate() {
        for (next, p) in mdp.onward(pair) {
            inflow[next] += mdp.gamma() * p * c;
        }
    }
    let t = chosen_kernel(mdp, &optimum.choice);
    let m = DiscountedSystem::new(&t).solve_transposed(&inflow);
    let zeros = vec![0.0; mdp.pairs()];
    let mut duals = PerFamily { b: weights.c_q.clone(), e: zeros.clone(), kq: zeros.clone(), kv: zeros };
    for (&pair, flow) in optimum.choice.iter().zip(m) {
        duals.b[pair] += flow;
        duals.e[pair] = flow;
    }
    Ok(Point { q: optimum.q, v: optimum.v, duals, iterations: optimum.iterations })
}
