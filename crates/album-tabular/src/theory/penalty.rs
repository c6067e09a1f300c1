//! Exactness of the hinge relaxation: penalties above the largest dual variables do not move the minimiser,
//! whatever the rollout penalty and K; below them, where the bound is tight, they do.

use super::{Check, Effort, Group, Lines, worse};
use crate::lp::Outcome;
use crate::random::{random_mdp, random_policy};
use crate::{
    Lblp, Mdp, PerFamily, Relaxation, Rollout, Solution, Solver, TabularError, Weights, max_difference, solve,
};
use album_base::rng;
use rand::RngExt;

pub(super) fn check(effort: &Effort<'_>) -> Result<Vec<Check>, TabularError> {
    let mut lines = Lines::new(Group::Penalty);
    let instances = (effort.instances / 10).max(2);
    let mut worst = 0.0f64;
    let mut below = [(usize::MAX, f64::INFINITY); 2];
    let mut tight = 0;
    for seed in 0..instances as u64 {
        let mdp = random_mdp(2000 + seed, 8, 3, 3, 0.9);
        let mut rng = rng::stream(seed, "penalty");
        let mut draw = |n: usize| (0..n).map(|_| rng.random_range(0.05..1.0)).collect::<Vec<f64>>();
        let weights = Weights { c_q: draw(mdp.pairs()), c_v: draw(mdp.decision_states()) };
        let policy = random_policy(seed, &mdp);
        let rollout = Rollout::expected(&mdp, &policy, 2)?;
        let lblp = Lblp::new(&mdp, weights.clone(), rollout.clone())?;
        let optimum = solve(&lblp, Solver::Bellman)?;
        let (dual_b, dual_e) = optimum.penalty_thresholds();

        for (lambda_k, k) in [(0.0, 2), (1.0, 2), (1.0, 10), (50.0, 5)] {
            let rollout = Rollout::expected(&mdp, &policy, k)?;
            let distance =
                distance(&mdp, &rollout, &weights, (1.01 * dual_b, 1.01 * dual_e, lambda_k), &optimum)?;
            worst = worse(worst, distance);
        }
        // The duals are unique, and so the bound is tight, if every state has a unique best action.
        if action_gap(&mdp, &optimum) > 1e-3 {
            tight += 1;
            for (i, (b, e)) in [(0.99, 1.01), (1.01, 0.99)].into_iter().enumerate() {
                let moved = distance(&mdp, &rollout, &weights, (b * dual_b, e * dual_e, 0.0), &optimum)?;
                below[i] = (i, below[i].1.min(moved));
            }
        }
        effort.tell("relaxed programs", seed as usize + 1, instances);
    }
    lines.at_most(
        format!("1 % above the duals, {instances} MDPs, (lambda_K, K) in {{(0,2), (1,2), (1,10), (50,5)}}: distance of the relaxed minimiser"),
        worst,
        1e-6,
    );
    lines.at_least("instances with a tight bound (unique optimal actions)", tight as f64, 1.0);
    for ((_, moved), name) in below.into_iter().zip(["lambda_B", "lambda_E"]) {
        lines.at_least(
            format!("{name} 1 % below its dual on the tight instances: smallest distance of the minimiser"),
            moved,
            1e-3,
        );
    }
    Ok(lines.checks)
}

/// The distance of the relaxed minimiser from the optimum, found by solving the relaxed program as an LP.
/// Infinite if the relaxation has no minimiser.
fn distance(
    mdp: &Mdp,
    rollout: &Rollout,
    weights: &Weights,
    (lambda_b, lambda_e, lambda_k): (f64, f64, f64),
    optimum: &Solution,
) -> Result<f64, TabularError> {
    let penalties = PerFamily { b: lambda_b, e: lambda_e, kq: lambda_k, kv: lambda_k };
    let relaxation = Relaxation::of_program(mdp, rollout, weights.clone(), penalties);
    Ok(match relaxation.as_program(None)?.solve()? {
        Outcome::Optimal { x, .. } => {
            let (q, v) = (&x[..mdp.pairs()], &x[mdp.pairs()..mdp.pairs() + mdp.decision_states()]);
            max_difference(q, &optimum.q).max(max_difference(v, &optimum.v))
        }
        Outcome::Unbounded => f64::INFINITY,
        Outcome::Infeasible => f64::NAN,
    })
}

/// The smallest advantage of the best action over the second best.
fn action_gap(mdp: &Mdp, optimum: &Solution) -> f64 {
    (0..mdp.decision_states())
        .map(|s| {
            let mut q = optimum.q[mdp.pairs_of(s)].to_vec();
            q.sort_by(|a, b| b.total_cmp(a));
            if q.len() > 1 { q[0] - q[1] } else { f64::INFINITY }
        })
        .fold(f64::INFINITY, f64::min)
}
