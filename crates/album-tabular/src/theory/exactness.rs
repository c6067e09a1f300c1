//! Exactness of the LBLP: its minimiser is the Bellman-optimal pair, found by every solver.

use super::{Check, Effort, Lines};
use crate::random::{random_dataset, random_mdp, random_policy};
use crate::{
    Behaviour, EmpiricalMdp, Lblp, Mdp, MudWorld, Rollout, Solution, Solver, TabularError, Weights,
    max_difference, solve, value_iteration,
};
use album_base::rng;
use rand::RngExt;

/// The worst numbers seen over a set of instances.
#[derive(Default)]
struct Worst {
    distance: f64,
    gap: f64,
}

impl Worst {
    fn see(&mut self, mdp: &Mdp, solution: &Solution) {
        let (q, v) = value_iteration(mdp, 1e-12);
        let distance = max_difference(&solution.q, &q).max(max_difference(&solution.v, &v));
        self.distance = self.distance.max(distance);
        let c = &solution.certificate;
        self.gap = self.gap.max(c.gap);
    }
}

pub(super) fn check(effort: &Effort<'_>) -> Result<Vec<Check>, TabularError> {
    let mut lines = Lines::new("exactness");
    let mut solvers = vec![(Solver::Bellman, "bellman", 1e-9)];
    if cfg!(feature = "highs") {
        solvers.push((Solver::Highs, "highs", 1e-7));
    }
    let parts = solvers.len() * (2 * effort.seeds + effort.instances);
    let mut done = 0;
    for (solver, name, limit) in solvers {
        let mut worst = Worst::default();
        for seed in 0..effort.seeds as u64 {
            for behaviour in [Behaviour::DownRight, Behaviour::EpsGreedy] {
                let data =
                    EmpiricalMdp::new(&MudWorld::new(effort.size, seed).dataset(behaviour, 0.95)?, 0.95)?;
                let lblp = Lblp::of_data(&data, 0.1, 0.05, 10)?;
                worst.see(&data.mdp, &solve(&data.mdp, &lblp, solver)?);
                done += 1;
                effort.tell(&format!("{name} on MudWorld"), done, parts);
            }
        }
        let both = format!("{name}, {} MudWorld seeds, both datasets", effort.seeds);
        lines.at_most(format!("{both}: distance to value iteration"), worst.distance, limit);
        lines.at_most(format!("{both}: duality gap of the certificate"), worst.gap, 1e-9);

        let mut worst = Worst::default();
        for seed in 0..effort.instances as u64 {
            let (mdp, lblp) = random_program(seed)?;
            worst.see(&mdp, &solve(&mdp, &lblp, solver)?);
            done += 1;
            effort.tell(&format!("{name} on random MDPs"), done, parts);
        }
        let random = format!("{name}, {} random stochastic MDPs", effort.instances);
        lines.at_most(format!("{random}: distance to value iteration"), worst.distance, limit);
        lines.at_most(format!("{random}: duality gap of the certificate"), worst.gap, 1e-9);
    }
    Ok(lines.checks)
}

/// A stochastic MDP with a random objective and a random rollout; every other one is the empirical MDP of data.
fn random_program(seed: u64) -> Result<(Mdp, Lblp), TabularError> {
    let mut rng = rng::stream(seed, "exactness");
    let gamma = rng.random_range(0.0..0.99);
    let mdp = random_mdp(seed, rng.random_range(2..40), 4, 4, gamma);
    let k = rng.random_range(2..8);
    if seed.is_multiple_of(2) {
        let data = EmpiricalMdp::new(&random_dataset(seed, &mdp, 40, 20), gamma)?;
        let lblp = Lblp::of_data(&data, rng.random_range(0.01..1.0), rng.random_range(0.01..1.0), k)?;
        return Ok((data.mdp, lblp));
    }
    let mut draw = |n: usize| (0..n).map(|_| rng.random_range(0.01..1.0)).collect::<Vec<f64>>();
    let weights = Weights { c_q: draw(mdp.pairs()), c_v: draw(mdp.decision_states()) };
    let lblp = Lblp::new(&mdp, &weights, &Rollout::expected(&mdp, &random_policy(seed, &mdp), k)?)?;
    Ok((mdp, lblp))
}
