//! Exactness of the LBLP: its minimiser is the Bellman-optimal pair, found by every solver.

use super::{Check, Effort, Group, Lines, worse};
use crate::random::{random_dataset, random_mdp, random_policy};
use crate::{
    Behaviour, EmpiricalMdp, Family, Lblp, MudWorld, PerFamily, Rollout, Solution, Solver, TabularError,
    Weights, max_difference, solve, value_iteration,
};
use album_base::rng;
use rand::RngExt;

/// The largest errors over a set of instances.
#[derive(Default)]
struct Worst {
    distance: f64,
    primal: PerFamily<f64>,
    dual: f64,
    slackness: f64,
    gap: f64,
}

impl Worst {
    fn see(&mut self, lblp: &Lblp<'_>, solver: Solver) -> Result<(), TabularError> {
        let Solution { q, v, certificate, .. } = solve(lblp, solver)?;
        let (exact_q, exact_v) = value_iteration(lblp.mdp(), 1e-12);
        let distance = worse(max_difference(&q, &exact_q), max_difference(&v, &exact_v));
        self.distance = worse(self.distance, distance);
        self.primal = PerFamily::new(|f| worse(self.primal[f], certificate.primal_by_family[f]));
        self.dual = worse(self.dual, certificate.dual);
        self.slackness = worse(self.slackness, certificate.slackness);
        self.gap = worse(self.gap, certificate.gap);
        Ok(())
    }

    fn lines(self, lines: &mut Lines, instances: &str, limit: f64) {
        lines.at_most(format!("{instances}: distance to value iteration"), self.distance, limit);
        for family in Family::ALL {
            let what = format!("{instances}: largest violation of a {family:?} row");
            lines.at_most(what, self.primal[family], limit);
        }
        lines.at_most(format!("{instances}: largest dual residual"), self.dual, limit);
        lines.at_most(format!("{instances}: largest product of dual and slack"), self.slackness, limit);
        lines.at_most(format!("{instances}: duality gap"), self.gap, limit);
    }
}

/// A solver, its name, its required accuracy, and the largest MudWorld that it is given.
const SOLVERS: [(Solver, &str, f64, usize); 3] = [
    (Solver::Bellman, "bellman", 1e-9, usize::MAX),
    (Solver::InteriorPoint, "interior point", 1e-6, 30),
    (Solver::Highs, "highs", 1e-6, usize::MAX),
];

pub(super) fn check(effort: &Effort<'_>) -> Result<Vec<Check>, TabularError> {
    let mut lines = Lines::new(Group::Exactness);
    for (solver, name, limit, largest) in SOLVERS {
        if !solver.is_built() {
            continue;
        }
        // Solvers that assemble the program get one seed and fewer random instances.
        let all = solver == Solver::Bellman;
        let (seeds, instances) =
            if all { (effort.seeds, effort.instances) } else { (1, (effort.instances / 5).max(4)) };
        let size = effort.size.min(largest);
        let mut worst = Worst::default();
        for seed in 0..seeds as u64 {
            for behaviour in [Behaviour::DownRight, Behaviour::EpsGreedy] {
                let data = EmpiricalMdp::new(&MudWorld::new(size, seed).dataset(behaviour, 0.95)?, 0.95)?;
                worst.see(&Lblp::of_data(&data, 0.1, 0.05, 10)?, solver)?;
            }
            effort.tell(&format!("{name} on MudWorld"), seed as usize + 1, seeds);
        }
        worst.lines(
            &mut lines,
            &format!("{name}, {seeds} MudWorld of {size} x {size}, both datasets"),
            limit,
        );

        let mut worst = Worst::default();
        for seed in 0..instances as u64 {
            see_random(seed, solver, &mut worst)?;
            effort.tell(&format!("{name} on random MDPs"), seed as usize + 1, instances);
        }
        worst.lines(&mut lines, &format!("{name}, {instances} random stochastic MDPs"), limit);
    }
    Ok(lines.checks)
}

/// A stochastic MDP with a random objective and a random rollout; every second one is the empirical MDP of a dataset.
fn see_random(seed: u64, solver: Solver, worst: &mut Worst) -> Result<(), TabularError> {
    let mut rng = rng::stream(seed, "exactness");
    let gamma = rng.random_range(0.0..0.99);
    let mdp = random_mdp(seed, rng.random_range(2..40), 4, 4, gamma);
    let k = rng.random_range(2..8);
    if seed.is_multiple_of(2) {
        let data = EmpiricalMdp::new(&random_dataset(seed, &mdp, 40, 20), gamma)?;
        let lblp = Lblp::of_data(&data, rng.random_range(0.01..1.0), rng.random_range(0.01..1.0), k)?;
        return worst.see(&lblp, solver);
    }
    let mut draw = |n: usize| (0..n).map(|_| rng.random_range(0.01..1.0)).collect::<Vec<f64>>();
    let weights = Weights { c_q: draw(mdp.pairs()), c_v: draw(mdp.decision_states()) };
    let rollout = Rollout::expected(&mdp, &random_policy(seed, &mdp), k)?;
    worst.see(&Lblp::new(&mdp, weights, rollout)?, solver)
}
