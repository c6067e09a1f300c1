//! The sandwich: recorded returns <= the best values that the data supports <= the optimum of the world.

use super::{Effort, Evidence, Group, Lines, Verified};
use crate::{
    EmpiricalMdp, Lblp, MudWorld, Solver, TabularError, best_dataset_return, policy_value, solve,
    value_iteration,
};

/// How much rounding may violate `lower <= upper`.
pub const TOLERANCE: f64 = 1e-9;

/// Comparisons `lower <= upper` at many points.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Violations {
    /// Number of points compared.
    pub compared: usize,
    /// Number of points where `lower > upper + TOLERANCE`.
    pub count: usize,
    /// The largest `lower - upper`, at least 0.
    pub largest: f64,
}

impl Violations {
    /// Compares one point.
    pub fn see(&mut self, lower: f64, upper: f64) {
        self.compared += 1;
        let excess = lower - upper;
        if !(excess <= TOLERANCE) {
            self.count += 1;
        }
        if !(excess <= self.largest) {
            self.largest = excess;
        }
    }

    /// Compares two vectors.
    pub fn see_all<'a>(
        &mut self,
        lower: impl IntoIterator<Item = &'a f64>,
        upper: impl IntoIterator<Item = &'a f64>,
    ) {
        for (l, u) in lower.into_iter().zip(upper) {
            self.see(*l, *u);
        }
    }
}

/// The outcome of the sandwich comparison for a solution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Comparison {
    /// Some pair has several successors, so a lucky recorded return may exceed every value.
    Stochastic,
    /// No recorded trajectory ends in an absorbing state.
    NoCompleteReturn,
    /// `G_D <= Q*_D`, and `Q*_D <= Q*` if the world is known.
    Compared(Violations),
}

/// Compares `q_d = Q*_D` with the recorded returns and, if known, with the optimum of the world.
pub fn compare(
    data: &EmpiricalMdp,
    q_d: &[f64],
    world: Option<&MudWorld>,
) -> Result<Comparison, TabularError> {
    if !data.mdp.is_deterministic() {
        return Ok(Comparison::Stochastic);
    }
    let mut violations = Violations::default();
    for (g, q) in best_dataset_return(data).into_iter().zip(q_d) {
        if let Some(g) = g {
            violations.see(g, *q);
        }
    }
    if let Some(world) = world {
        violations.see_all(q_d, &world_values(world, data, data.mdp.gamma())?);
    }
    Ok(match violations.compared {
        0 => Comparison::NoCompleteReturn,
        _ => Comparison::Compared(violations),
    })
}

/// The three values of one seed at every pair of the data.
#[derive(Debug)]
pub struct Sandwich {
    /// `G_D(s,a)`; `None` if no recorded trajectory from the pair is complete.
    pub g: Vec<Option<f64>>,
    /// `Q*_D(s,a)`.
    pub q_d: Vec<f64>,
    /// `Q*(s,a)` in the world.
    pub q_star: Vec<f64>,
}

impl Sandwich {
    /// Solves the LBLP of the down-right data of one seed and computes the two bounds.
    pub fn of_mudworld(size: usize, seed: u64, gamma: f64) -> Result<(Self, EmpiricalMdp), TabularError> {
        let world = MudWorld::new(size, seed);
        let data = EmpiricalMdp::new(&world.down_right(2000), gamma)?;
        let q_d = solve(&Lblp::of_data(&data, 0.1, 0.05, 10)?, Solver::Bellman)?.q;
        let q_star = world_values(&world, &data, gamma)?;
        Ok((Sandwich { g: best_dataset_return(&data), q_d, q_star }, data))
    }

    /// Both inequalities at every pair.
    pub fn violations(&self) -> Violations {
        let mut violations = Violations::default();
        for pair in 0..self.q_d.len() {
            if let Some(g) = self.g[pair] {
                violations.see(g, self.q_d[pair]);
            }
            violations.see(self.q_d[pair], self.q_star[pair]);
        }
        violations
    }
}

/// `Q*` of the world at the pairs of the data.
pub fn world_values(world: &MudWorld, data: &EmpiricalMdp, gamma: f64) -> Result<Vec<f64>, TabularError> {
    let mdp = world.mdp(gamma)?;
    let (q, _) = value_iteration(&mdp, 1e-12);
    Ok((0..data.mdp.pairs())
        .map(|pair| {
            q[mdp.pairs_of(data.pair_state_label(pair) as usize).start + data.pair_actions[pair] as usize]
        })
        .collect())
}

pub(super) fn check(effort: &Effort<'_>) -> Result<Verified, TabularError> {
    let gamma = 0.95;
    let mut lines = Lines::new(Group::Sandwich);
    let (mut q, mut v, mut beta, mut covered) =
        (Violations::default(), Violations::default(), Violations::default(), Violations::default());
    let mut worlds = Vec::new();
    for seed in 0..effort.seeds as u64 {
        let (sandwich, data) = Sandwich::of_mudworld(effort.size, seed, gamma)?;
        let found = sandwich.violations();
        q.count += found.count;
        q.compared += found.compared;
        q.largest = q.largest.max(found.largest);

        // The same for V: the best recorded return from a state, V*_D, V*.
        let v_d = data.mdp.max_over_actions(&sandwich.q_d);
        let g: Vec<f64> = sandwich.g.iter().map(|g| g.unwrap_or(f64::NEG_INFINITY)).collect();
        v.see_all(&data.mdp.max_over_actions(&g), &v_d);
        let mdp = MudWorld::new(effort.size, seed).mdp(gamma)?;
        let (_, v_star) = value_iteration(&mdp, 1e-12);
        for (s, v_d) in v_d.iter().enumerate() {
            v.see(*v_d, v_star[data.state_labels[s] as usize]);
        }

        // The empirical behaviour policy stays in the data by construction.
        let (q_beta, v_beta) = policy_value(&data.mdp, &data.behaviour);
        beta.see_all(&q_beta, &sandwich.q_d);
        beta.see_all(&v_beta, &v_d);

        // The true behaviour policy (a fair coin), on a world small enough that the data covers all its
        // actions.
        let found = under_coverage(seed, gamma)?;
        covered.count += found.count;
        covered.compared += found.compared;
        covered.largest = covered.largest.max(found.largest);
        effort.tell("MudWorld seeds", seed as usize + 1, effort.seeds);
        worlds.push(sandwich);
    }
    let seeds = effort.seeds;
    let mut line = |statement: String, found: Violations| {
        let what = format!("{statement}, {seeds} seeds, {} comparisons: violations", found.compared);
        lines.exactly(what, found.count, 0);
    };
    line("G_D <= Q*_D <= Q* at every pair".into(), q);
    line("max_a G_D <= V*_D <= V* at every state".into(), v);
    line("Q^beta <= Q*_D and V^beta <= V*_D, empirical behaviour policy".into(), beta);
    line("Q^beta <= Q*_D <= Q*, same for V, true behaviour policy under full coverage".into(), covered);
    lines.at_most(
        "largest violation of all",
        q.largest.max(v.largest).max(beta.largest).max(covered.largest),
        TOLERANCE,
    );
    Ok(Verified { checks: lines.checks, evidence: Evidence::Sandwich(worlds) })
}

/// The corollary with the true behaviour policy of the down-right data. Its hypothesis, that the data
/// contains every action of that policy in every visited state, is checked and counts as a violation if it
/// fails.
fn under_coverage(seed: u64, gamma: f64) -> Result<Violations, TabularError> {
    let world = MudWorld::new(8, seed);
    let data = EmpiricalMdp::new(&world.down_right(2000), gamma)?;
    let mdp = world.mdp(gamma)?;
    let (down, right) = (1, 3);
    let mut policy = vec![0.0; mdp.pairs()];
    for cell in 0..world.goal() {
        let pairs = mdp.pairs_of(cell);
        let open: Vec<usize> = [down, right].into_iter().filter(|&a| world.next(cell, a) != cell).collect();
        open.iter().for_each(|&a| policy[pairs.start + a] = 1.0 / open.len() as f64);
    }
    policy[mdp.pairs_of(world.goal()).start] = 1.0;
    let (q_beta, v_beta) = policy_value(&mdp, &policy);
    let (q_d, v_d) = value_iteration(&data.mdp, 1e-13);
    let (q_star, v_star) = value_iteration(&mdp, 1e-13);
    let mut violations = Violations::default();
    for s in 0..data.mdp.decision_states() {
        let cell = data.state_labels[s] as usize;
        let actions: Vec<usize> = data.mdp.pairs_of(s).map(|pair| data.pair_actions[pair] as usize).collect();
        for action in [down, right] {
            let needed = policy[mdp.pairs_of(cell).start + action] > 0.0;
            violations.see(f64::from(u8::from(needed && !actions.contains(&action))), 0.0);
        }
        violations.see(v_beta[cell], v_d[s]);
        violations.see(v_d[s], v_star[cell]);
        for pair in data.mdp.pairs_of(s) {
            let full_pair = mdp.pairs_of(cell).start + data.pair_actions[pair] as usize;
            violations.see(q_beta[full_pair], q_d[pair]);
            violations.see(q_d[pair], q_star[full_pair]);
        }
    }
    Ok(violations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violation_is_counted_and_measured() {
        let mut v = Violations::default();
        v.see(1.0, 2.0);
        v.see(2.0 + 0.5 * TOLERANCE, 2.0);
        v.see(2.5, 2.0);
        v.see(f64::NAN, 0.0);
        assert_eq!((v.compared, v.count), (4, 2));
    }

    #[test]
    fn a_wrong_optimum_is_caught() {
        let (mut sandwich, _) = Sandwich::of_mudworld(12, 0, 0.95).unwrap();
        assert_eq!(sandwich.violations().count, 0);
        let pair = (0..sandwich.g.len()).find(|&p| sandwich.g[p] == Some(sandwich.q_d[p])).unwrap();
        sandwich.q_d[pair] -= 1e-6;
        assert_eq!(sandwich.violations().count, 1);
    }
}
