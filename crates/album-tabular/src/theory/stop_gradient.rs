//! The remark on `stop_gradient`: the effect of one gradient step on a rollout hinge on `V(s)` and `V(s_K)`.

use super::{Check, Effort, Group, Lines};
use crate::random::{random_dataset, random_mdp};
use crate::{EmpiricalMdp, Gradient, PerFamily, Relaxation, Rollout, TabularError, Weights};
use album_base::rng;
use rand::RngExt;

pub(super) fn check(effort: &Effort<'_>) -> Result<Vec<Check>, TabularError> {
    let mut lines = Lines::new(Group::StopGradient);
    let instances = (effort.instances / 10).max(2);
    let (lambda, rate, gamma, k) = (2.5, 0.01, 0.9, 4);
    let (mut own, mut end, mut detached_end, mut gap) = (0.0f64, 0.0f64, 0.0f64, 0.0f64);
    let mut steps = 0;
    for seed in 0..instances as u64 {
        let mdp = random_mdp(6000 + seed, 12, 2, 1, gamma);
        let data = EmpiricalMdp::new(&random_dataset(seed, &mdp, 30, 20), gamma)?;
        let rollout = Rollout::recorded(&data, k)?;
        let ends = rollout.assemble()?.weight;
        let mut rng = rng::stream(seed, "stop-gradient");
        let q = vec![0.0; data.mdp.pairs()];
        let v: Vec<f64> = (0..data.mdp.decision_states()).map(|_| rng.random_range(-9.0..-1.0)).collect();
        let y_k = rollout.targets(&v);
        for pair in 0..q.len() {
            let s = data.mdp.state_of(pair);
            // Active, with room for a step; K full steps that end in a state other than s.
            let Some((last, factor)) = ends.row(pair).next() else { continue };
            if last == s || y_k[pair] - v[s] < 1.0 || (factor - gamma.powi(k as i32)).abs() > 1e-12 {
                continue;
            }
            steps += 1;
            // This hinge alone: no objective, no other family, no other pair.
            let mut relaxation = Relaxation::of_program(
                &data.mdp,
                &rollout,
                Weights::uniform(&data.mdp, 0.0, 0.0),
                PerFamily { kv: lambda, ..PerFamily::default() },
            );
            relaxation.pair_weight = vec![0.0; q.len()];
            relaxation.pair_weight[pair] = 1.0;
            let step = |gradient| {
                let (mut q, mut after) = (q.clone(), v.clone());
                relaxation.descend(&mut q, &mut after, rate, gradient);
                after
            };
            let (plain, detached) = (step(Gradient::Plain), step(Gradient::Detached));
            own = own.max((plain[s] - v[s] - rate * lambda).abs()).max((detached[s] - plain[s]).abs());
            end = end.max((plain[last] - v[last] + rate * lambda * factor).abs());
            detached_end = detached_end.max((detached[last] - v[last]).abs());
            let closed = |after: &[f64]| (y_k[pair] - v[s]) - (rollout.targets(after)[pair] - after[s]);
            let surplus = closed(&plain) - closed(&detached);
            gap = gap.max((surplus - rate * lambda * factor * factor).abs());
        }
        effort.tell("single steps", seed as usize + 1, instances);
    }
    lines.at_least("active hinges y_K - V(s) with s != s_K that were descended alone", steps as f64, 1.0);
    lines.at_most(
        "V(s) rises by eta lambda_K, with and without stop_gradient: largest difference",
        own,
        1e-12,
    );
    lines.at_most("without: V(s_K) falls by eta lambda_K gamma^K: largest difference", end, 1e-12);
    lines.at_most("with: V(s_K) stays: largest move", detached_end, 0.0);
    lines.at_most(
        "without: the hinge closes by eta lambda_K gamma^(2K) more: largest difference",
        gap,
        1e-12,
    );
    Ok(lines.checks)
}
