//! The rollout rows are implied by the one-step rows, for every K, every rollout policy and every choice of recorded
//! trajectories; the reverse is false.

use super::{Check, Effort, Group, Lines, path_sum, worse};
use crate::lp::Outcome;
use crate::random::{random_dataset, random_mdp, random_policy};
use crate::{
    Behaviour, EmpiricalMdp, Family, Lblp, Mdp, MudWorld, PerFamily, Rollout, TabularError, Weights,
    max_difference, residuals, value_iteration,
};
use album_base::rng;
use rand::RngExt;

const HORIZONS: [usize; 4] = [2, 5, 10, 20];

pub(super) fn check(effort: &Effort<'_>) -> Result<Vec<Check>, TabularError> {
    let mut lines = Lines::new(Group::Redundancy);
    let instances = (effort.instances / 10).max(2);
    targets(&mut lines, instances)?;
    feasible_points(&mut lines, effort, instances)?;
    optima(&mut lines, effort, instances)?;
    on_mudworld(&mut lines, effort)?;
    Ok(lines.checks)
}

/// Checks `y_K` itself: a target that is too low would satisfy every inequality below.
fn targets(lines: &mut Lines, instances: usize) -> Result<(), TabularError> {
    let (mut expected, mut recorded) = (0.0f64, 0.0f64);
    for seed in 0..instances as u64 {
        let mut rng = rng::stream(seed, "targets");
        let mdp = random_mdp(500 + seed, 6, 3, 2, 0.9);
        let policy = random_policy(seed, &mdp);
        let v: Vec<f64> = (0..6).map(|_| rng.random_range(-5.0..5.0)).collect();
        for k in 1..=4 {
            for (pair, y_k) in Rollout::expected(&mdp, &policy, k)?.targets(&v).into_iter().enumerate() {
                expected = worse(expected, (y_k - path_sum(&mdp, &policy, pair, k, &v)).abs());
            }
        }
        // Recorded paths, followed in the data itself; only those that neither end nor are truncated within K
        // steps.
        let mdp = random_mdp(600 + seed, 12, 3, 1, 0.9);
        let log = random_dataset(seed, &mdp, 30, 15);
        let data = EmpiricalMdp::new(&log, 0.9)?;
        let v: Vec<f64> = (0..data.mdp.decision_states()).map(|_| rng.random_range(-5.0..5.0)).collect();
        for k in [2, 5] {
            let places = random_places(&data, &mut rng);
            let found = Rollout::recorded_from(&data, k, &places)?.targets(&v);
            for (row, y_k) in places.into_iter().zip(found) {
                let path = row..row + k;
                if path.end > log.len() || log.trajectory_ends()[row..path.end - 1].contains(&true) {
                    continue;
                }
                let Some(last) = data.state_labels.iter().position(|&s| s == log.next_states[path.end - 1])
                else {
                    continue;
                };
                let rewards: f64 =
                    path.enumerate().map(|(t, row)| 0.9f64.powi(t as i32) * log.rewards[row]).sum();
                let end = v.get(last).copied().unwrap_or(0.0);
                recorded = worse(recorded, (y_k - (rewards + 0.9f64.powi(k as i32) * end)).abs());
            }
        }
    }
    lines.at_most("expected y_K, K in {1, 2, 3, 4}: distance to the sum over all paths", expected, 1e-12);
    lines.at_most("recorded y_K, K in {2, 5}: distance to the rewards in the data", recorded, 1e-12);
    Ok(())
}

/// A random occurrence of every pair.
fn random_places(data: &EmpiricalMdp, rng: &mut impl RngExt) -> Vec<usize> {
    let mut places = vec![0; data.mdp.pairs()];
    let mut seen = vec![0u32; data.mdp.pairs()];
    for (row, &pair) in data.row_pair.iter().enumerate() {
        seen[pair as usize] += 1;
        if rng.random_range(0..seen[pair as usize]) == 0 {
            places[pair as usize] = row;
        }
    }
    places
}

/// The lemma itself: points that satisfy B and E satisfy KQ and KV.
fn feasible_points(lines: &mut Lines, effort: &Effort<'_>, instances: usize) -> Result<(), TabularError> {
    let (mut one_step, mut expected, mut recorded) =
        (f64::NEG_INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY);
    let rollout_rows = |g: &PerFamily<f64>| g.kq.max(g.kv);
    for seed in 0..instances as u64 {
        let mut rng = rng::stream(seed, "feasible");
        let mdp = random_mdp(700 + seed, 12, 3, 3, 0.9);
        let log = random_dataset(seed, &random_mdp(800 + seed, 12, 3, 1, 0.9), 40, 15);
        let data = EmpiricalMdp::new(&log, 0.9)?;
        for k in HORIZONS {
            let (q, v) = random_feasible(&mdp, &mut rng);
            let g = largest(&mdp, &Rollout::expected(&mdp, &random_policy(seed, &mdp), k)?, &q, &v);
            one_step = one_step.max(g.b).max(g.e);
            expected = worse(expected, rollout_rows(&g));
            let (q, v) = random_feasible(&data.mdp, &mut rng);
            let paths = Rollout::recorded_from(&data, k, &random_places(&data, &mut rng))?;
            recorded = worse(recorded, rollout_rows(&largest(&data.mdp, &paths, &q, &v)));
        }
        effort.tell("feasible points", seed as usize + 1, 3 * instances);
    }
    let points = format!("{} random feasible (Q, V)", HORIZONS.len() * instances);
    lines.at_most(format!("{points}: largest g_B, g_E"), one_step, 1e-9);
    lines.at_most("the same, expected rollouts of random policies: largest g_KQ, g_KV", expected, 1e-9);
    lines.at_most(
        format!("{points}, recorded rollouts, any choice of trajectory: largest g_KQ, g_KV"),
        recorded,
        1e-9,
    );
    Ok(())
}

/// A point with `Q = y_1 + slack` and `V = max_a Q + slack`, some of the slacks 0.
fn random_feasible(mdp: &Mdp, rng: &mut impl RngExt) -> (Vec<f64>, Vec<f64>) {
    let mut slacks = |n: usize| -> Vec<f64> {
        (0..n).map(|_| if rng.random_bool(0.5) { 0.0 } else { rng.random_range(0.0..1.0) }).collect()
    };
    let (at_q, at_v) = (slacks(mdp.pairs()), slacks(mdp.decision_states()));
    let (mut q, mut v) = (vec![0.0; at_q.len()], vec![0.0; at_v.len()]);
    loop {
        q = (0..q.len()).map(|pair| mdp.y_1(pair, &v) + at_q[pair]).collect();
        let next: Vec<f64> = mdp.max_over_actions(&q).iter().zip(&at_v).map(|(q, slack)| q + slack).collect();
        let change = max_difference(&next, &v);
        v = next;
        if !(change > 1e-12) {
            return (q, v);
        }
    }
}

/// A general LP solver gets all four families, without a hint which ones matter.
fn optima(lines: &mut Lines, effort: &Effort<'_>, instances: usize) -> Result<(), TabularError> {
    let mut worst = [0.0f64; HORIZONS.len()];
    for seed in 0..instances as u64 {
        let mdp = random_mdp(1000 + seed, 12, 3, 3, 0.9);
        let (q, v) = value_iteration(&mdp, 1e-13);
        for (worst, k) in worst.iter_mut().zip(HORIZONS) {
            let rollout = Rollout::expected(&mdp, &random_policy(seed, &mdp), k)?;
            let lblp = Lblp::new(&mdp, Weights::uniform(&mdp, 1.0, 1.0), rollout)?;
            let distance = match lblp.assemble()?.solve()? {
                Outcome::Optimal { x, .. } => {
                    max_difference(&x[..q.len()], &q).max(max_difference(&x[q.len()..], &v))
                }
                _ => f64::NAN,
            };
            *worst = worse(*worst, distance);
        }
        effort.tell("optimum for several K", instances + seed as usize + 1, 3 * instances);
    }
    for (worst, k) in worst.iter().zip(HORIZONS) {
        let what =
            format!("optimum with K = {k} rows of a random policy, {instances} MDPs: distance to (Q*, V*)");
        lines.at_most(what, *worst, 1e-7);
    }
    Ok(())
}

fn on_mudworld(lines: &mut Lines, effort: &Effort<'_>) -> Result<(), TabularError> {
    // (Q*, V*) satisfies the rollout rows of every K and policy.
    let data = EmpiricalMdp::new(&MudWorld::new(effort.size, 0).dataset(Behaviour::EpsGreedy, 0.95)?, 0.95)?;
    let (q, v) = value_iteration(&data.mdp, 1e-13);
    let mut excess = f64::NEG_INFINITY;
    for (i, k) in HORIZONS.into_iter().enumerate() {
        for policy in [data.behaviour.clone(), random_policy(k as u64, &data.mdp)] {
            let g = largest(&data.mdp, &Rollout::expected(&data.mdp, &policy, k)?, &q, &v);
            excess = worse(excess, g.kq.max(g.kv));
        }
        effort.tell("rollout rows on MudWorld", 2 * HORIZONS.len() + i + 1, 3 * HORIZONS.len());
    }
    lines.at_most(
        "largest g_KQ, g_KV at (Q*, V*) on MudWorld, K in {2, 5, 10, 20}, two policies",
        excess,
        1e-9,
    );

    // The converse fails: the fixed point of V = max_a y_K satisfies all rollout rows and violates one-step
    // rows.
    let rollout = Rollout::expected(&data.mdp, &data.behaviour, 10)?;
    let mut v = vec![0.0; data.mdp.decision_states()];
    let mut q;
    loop {
        q = rollout.targets(&v);
        let next = data.mdp.max_over_actions(&q);
        let change = max_difference(&next, &v);
        v = next;
        if !(change >= 1e-12) {
            break;
        }
    }
    let g = largest(&data.mdp, &rollout, &q, &v);
    lines.at_most("fixed point of max_a y_K (K = 10, MudWorld): largest g_KQ, g_KV", g.kq.max(g.kv), 1e-9);
    lines.at_least("the same point: largest g_B", g.b, 0.01);
    Ok(())
}

/// The largest residual of each family.
fn largest(mdp: &Mdp, rollout: &Rollout, q: &[f64], v: &[f64]) -> PerFamily<f64> {
    let g = residuals(mdp, rollout, q, v);
    PerFamily::new(|family: Family| g[family].iter().copied().fold(f64::NEG_INFINITY, worse))
}
