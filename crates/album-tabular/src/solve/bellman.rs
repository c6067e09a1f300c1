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
use crate::discounted_system::DiscountedSystem;
use crate::policy::{chosen_kernel, policy_iteration};
use crate::{Lblp, Mdp, TabularError};

pub(super) fn solve(mdp: &Mdp, lblp: &Lblp) -> Result<Point, TabularError> {
    let optimum = policy_iteration(mdp)?;
    let (c_q, c_v) = lblp.program().objective.split_at(mdp.pairs());
    let mut inflow = c_v.to_vec();
    for (pair, c) in c_q.iter().enumerate() {
        for (next, p) in mdp.onward(pair) {
            inflow[next] += mdp.gamma() * p * c;
        }
    }
    let t = chosen_kernel(mdp, &optimum.choice);
    let m = DiscountedSystem::new(&t).solve_transposed(&inflow);
    let pairs = mdp.pairs();
    let mut duals = vec![0.0; lblp.constraints()];
    duals[..pairs].copy_from_slice(c_q);
    for (&pair, flow) in optimum.choice.iter().zip(m) {
        duals[pair] += flow;
        duals[pairs + pair] = flow;
    }
    Ok(Point { q: optimum.q, v: optimum.v, duals, iterations: optimum.iterations })
}
