//! The rollout rows are implied by the one-step rows, for every K and every rollout policy; the reverse is false.

use super::{Check, Effort, Lines};
use crate::lp::Outcome;
use crate::random::{random_mdp, random_policy};
use crate::{
    Behaviour, EmpiricalMdp, Lblp, Mdp, MudWorld, Relaxation, Rollout, TabularError, Weights, max_difference,
    value_iteration,
};

const HORIZONS: [usize; 4] = [2, 5, 10, 20];

pub(super) fn check(effort: &Effort<'_>) -> Result<Vec<Check>, TabularError> {
    let mut lines = Lines::new("redundancy");
    let instances = (effort.instances / 10).max(2);
    let mut worst = [0.0f64; HORIZONS.len()];
    for seed in 0..instances as u64 {
        let mdp = random_mdp(1000 + seed, 12, 3, 3, 0.9);
        let (q, v) = value_iteration(&mdp, 1e-13);
        for (worst, k) in worst.iter_mut().zip(HORIZONS) {
            let rollout = Rollout::expected(&mdp, &random_policy(seed, &mdp), k)?;
            let lblp = Lblp::new(&mdp, &Weights::uniform(&mdp, 1.0, 1.0), &rollout)?;
            // A general LP solver sees all four families; nothing tells it which ones matter.
            let distance = match lblp.program().solve()? {
                Outcome::Optimal(x) => {
                    max_difference(&x[..q.len()], &q).max(max_difference(&x[q.len()..], &v))
                }
                _ => f64::NAN,
            };
            *worst = if distance > *worst || distance.is_nan() { distance } else { *worst };
        }
        effort.tell("optimum for several K", seed as usize + 1, 2 * instances);
    }
    for (worst, k) in worst.iter().zip(HORIZONS) {
        lines.at_most(
            format!(
                "optimum with K = {k} rows of a random policy, {instances} random MDPs: distance to (Q*, V*)"
            ),
            *worst,
            1e-8,
        );
    }

    // On MudWorld: (Q*, V*) satisfies the rollout rows of every K and policy.
    let data = EmpiricalMdp::new(&MudWorld::new(effort.size, 0).dataset(Behaviour::EpsGreedy, 0.95)?, 0.95)?;
    let (q, v) = value_iteration(&data.mdp, 1e-13);
    let mut excess = f64::NEG_INFINITY;
    for (i, k) in HORIZONS.into_iter().enumerate() {
        for policy in [data.behaviour.clone(), random_policy(k as u64, &data.mdp)] {
            let rollout = Rollout::expected(&data.mdp, &policy, k)?;
            excess = excess.max(
                largest_residual(&data.mdp, &rollout, &q, &v)[2..].iter().copied().fold(excess, f64::max),
            );
        }
        effort.tell("rollout rows on MudWorld", HORIZONS.len() + i + 1, 2 * HORIZONS.len());
    }
    lines.at_most(
        "largest g_KQ, g_KV at (Q*, V*) on MudWorld, K in {2, 5, 10, 20}, two policies",
        excess,
        1e-9,
    );

    // The reverse is false: the fixed point of V = max_a y_K satisfies all rollout rows and breaks one-step rows.
    let k = 10;
    let rollout = Rollout::expected(&data.mdp, &data.behaviour, k)?;
    let mut v = vec![0.0; data.mdp.decision_states()];
    let mut q;
    loop {
        q = (0..data.mdp.pairs()).map(|pair| rollout.y_k(pair, &v)).collect::<Vec<_>>();
        let next = data.mdp.max_over_actions(&q);
        let change = max_difference(&next, &v);
        v = next;
        if change < 1e-12 {
            break;
        }
    }
    let [g_b, _, g_kq, g_kv] = largest_residual(&data.mdp, &rollout, &q, &v);
    lines.at_most("a point between: largest g_KQ, g_KV (K = 10, MudWorld)", g_kq.max(g_kv), 1e-9);
    lines.at_least("the same point: largest g_B", g_b, 0.01);
    Ok(lines.checks)
}

/// The largest residual of each family: B, E, KQ, KV.
fn largest_residual(mdp: &Mdp, rollout: &Rollout, q: &[f64], v: &[f64]) -> [f64; 4] {
    let weights = Weights::uniform(mdp, 1.0, 1.0);
    let relaxation = Relaxation::of_program(mdp, rollout, weights, crate::Coefficients::default());
    (0..mdp.pairs()).fold([f64::NEG_INFINITY; 4], |worst, pair| {
        let g = relaxation.residuals(pair, q, v);
        std::array::from_fn(|i| worst[i].max(g[i]))
    })
}
