//! Numerical checks of every statement of the theory.
//!
//! Each file covers one statement: its instances, what is measured on them, and the bound that the
//! measurement must satisfy. Where the statement says that its conclusion fails without a hypothesis,
//! instances that violate the hypothesis are tried too. Tests plant errors in `y_K`, in a family's sign and
//! in the power of gamma, and expect the checks to fail.

mod boundedness;
mod exactness;
mod penalty;
mod redundancy;
pub mod sandwich;
pub mod speedup;
mod stationarity;
mod stop_gradient;

use crate::{Mdp, TabularError};
use serde::Serialize;

/// One check: statement, measurement, bound, verdict.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// The group of this check.
    pub name: Group,
    /// What must hold, and on which instances.
    pub statement: String,
    /// The measured value.
    pub measured: f64,
    /// The bound on the measurement, e.g. `<= 1e-9`.
    pub bound: String,
    /// Whether the bound is satisfied.
    pub passed: bool,
}

/// A group of checks: one statement of the paper with its corollaries and remarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// The program has the Bellman-optimal pair as its minimiser.
    Exactness,
    /// Rollout rows are implied by one-step rows.
    Redundancy,
    /// Recorded returns <= in-sample optimum <= optimum of the world.
    Sandwich,
    /// Large enough penalties do not move the minimiser.
    Penalty,
    /// Rollouts speed up the iteration and the gradient descent.
    Speedup,
    /// When updates stay bounded.
    Boundedness,
    /// When the optimum is a stationary point of the detached update.
    Stationarity,
    /// What detaching `y_K` changes in a step.
    StopGradient,
}

impl Group {
    /// All groups, in the order of the paper.
    pub const ALL: [Group; 8] = [
        Group::Exactness,
        Group::Redundancy,
        Group::Sandwich,
        Group::Penalty,
        Group::Speedup,
        Group::Boundedness,
        Group::Stationarity,
        Group::StopGradient,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Group::Exactness => "exactness",
            Group::Redundancy => "redundancy",
            Group::Sandwich => "sandwich",
            Group::Penalty => "penalty",
            Group::Speedup => "speedup",
            Group::Boundedness => "boundedness",
            Group::Stationarity => "stationarity",
            Group::StopGradient => "stop-gradient",
        }
    }

    /// Runs the checks of the group.
    pub fn verify(self, effort: &Effort<'_>) -> Result<Verified, TabularError> {
        let checks = match self {
            Group::Exactness => exactness::check(effort),
            Group::Redundancy => redundancy::check(effort),
            Group::Sandwich => return sandwich::check(effort),
            Group::Penalty => penalty::check(effort),
            Group::Speedup => return speedup::check(effort),
            Group::Boundedness => boundedness::check(effort),
            Group::Stationarity => stationarity::check(effort),
            Group::StopGradient => stop_gradient::check(effort),
        };
        Ok(Verified { checks: checks?, evidence: Evidence::None })
    }
}

/// The extent of the checks, and a progress callback.
pub struct Effort<'a> {
    /// MudWorld seeds `0..seeds`.
    pub seeds: usize,
    /// Side length of the MudWorlds in cells; the paper's is [`MudWorld::SIZE`](crate::MudWorld::SIZE).
    pub size: usize,
    /// Random instances of the exactness check; the other groups use a fraction of it.
    pub instances: usize,
    /// Called with the current task and the completed fraction of the group (0 to 1).
    pub progress: &'a dyn Fn(&str, f64),
}

impl std::fmt::Debug for Effort<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Effort")
            .field("seeds", &self.seeds)
            .field("size", &self.size)
            .field("instances", &self.instances)
            .finish_non_exhaustive()
    }
}

impl Effort<'_> {
    /// Reports that `done` of `total` parts are complete.
    fn tell(&self, what: &str, done: usize, total: usize) {
        (self.progress)(what, done as f64 / total.max(1) as f64);
    }
}

/// The checks of a group, and the data behind them for figures.
#[derive(Debug)]
pub struct Verified {
    /// The checks.
    pub checks: Vec<Check>,
    /// The data for figures.
    pub evidence: Evidence,
}

/// Data behind a group of checks.
#[derive(Debug)]
pub enum Evidence {
    /// No figure.
    None,
    /// The three values at every pair, seed by seed.
    Sandwich(Vec<sandwich::Sandwich>),
    /// Error curves and speed-up factors of seed 0.
    Speedup(speedup::Curves, speedup::Factors),
}

/// The larger one; NaN counts as worst, so that it never passes for a small number.
fn worse(a: f64, b: f64) -> f64 {
    if b > a || b.is_nan() { b } else { a }
}

/// `y_K` from its definition, `E[sum_(t<K) gamma^t R + gamma^K V(s_K)]`, as a sum over all paths: an
/// independent reference for [`Rollout`](crate::Rollout), exponential in K.
pub(crate) fn path_sum(mdp: &Mdp, policy: &[f64], first: usize, k: usize, v: &[f64]) -> f64 {
    // Open paths: the next pair, its time, and the probability of the path.
    let mut open = vec![(first, 0, 1.0)];
    let mut sum = 0.0;
    while let Some((pair, t, probability)) = open.pop() {
        sum += probability * mdp.gamma().powi(t as i32) * mdp.reward()[pair];
        for (next, p) in mdp.kernel().row(pair).filter(|x| x.0 < mdp.decision_states()) {
            if t + 1 == k {
                sum += probability * p * mdp.gamma().powi(k as i32) * v[next];
            } else {
                open.extend(mdp.pairs_of(next).map(|a| (a, t + 1, probability * p * policy[a])));
            }
        }
    }
    sum
}

/// Collects the checks of one group.
struct Lines {
    name: Group,
    checks: Vec<Check>,
}

impl Lines {
    fn new(name: Group) -> Self {
        Lines { name, checks: Vec::new() }
    }

    fn push(&mut self, statement: impl Into<String>, measured: f64, bound: String, passed: bool) {
        self.checks.push(Check { name: self.name, statement: statement.into(), measured, bound, passed });
    }

    /// The measurement must not exceed `limit`. NaN fails.
    fn at_most(&mut self, statement: impl Into<String>, measured: f64, limit: f64) {
        self.push(statement, measured, format!("<= {limit:e}"), measured <= limit);
    }

    /// The measurement must reach `limit`.
    fn at_least(&mut self, statement: impl Into<String>, measured: f64, limit: f64) {
        self.push(statement, measured, format!(">= {limit}"), measured >= limit);
    }

    /// The measurement is a count that must have exactly this value.
    fn exactly(&mut self, statement: impl Into<String>, measured: usize, expected: usize) {
        self.push(statement, measured as f64, format!("= {expected}"), measured == expected);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutation::{self, Mutation};

    const EFFORT: Effort<'static> = Effort { seeds: 2, size: 40, instances: 24, progress: &|_, _| {} };

    /// `album verify` runs the full extent; the tests run every group on smaller worlds.
    fn run(group: Group) {
        let checks = group.verify(&EFFORT).unwrap().checks;
        assert!(checks.len() >= 3, "{} has {} lines", group.name(), checks.len());
        for check in &checks {
            assert_eq!(check.name, group);
            assert!(check.passed, "{}: measured {}, bound {}", check.statement, check.measured, check.bound);
        }
    }

    #[test]
    fn exactness() {
        run(Group::Exactness);
    }

    #[test]
    fn redundancy() {
        run(Group::Redundancy);
    }

    #[test]
    fn sandwich() {
        run(Group::Sandwich);
    }

    #[test]
    fn penalty() {
        run(Group::Penalty);
    }

    #[test]
    fn speedup() {
        run(Group::Speedup);
    }

    #[test]
    fn boundedness() {
        run(Group::Boundedness);
    }

    #[test]
    fn stationarity() {
        run(Group::Stationarity);
    }

    #[test]
    fn stop_gradient() {
        run(Group::StopGradient);
    }

    #[test]
    fn planted_errors_fail() {
        let small = Effort { seeds: 1, size: 12, instances: 4, ..EFFORT };
        for (planted, group) in [
            (Mutation::SignOfE, Group::Exactness),
            (Mutation::SignOfKv, Group::Exactness),
            (Mutation::SignOfKv, Group::Redundancy),
            (Mutation::TargetTooLow, Group::Redundancy),
            (Mutation::PowerOfGamma, Group::Redundancy),
            (Mutation::PowerOfGamma, Group::StopGradient),
        ] {
            // A solver that fails on the damaged program has noticed the error, too.
            let noticed = mutation::with(planted, || match group.verify(&small) {
                Ok(verified) => verified.checks.iter().any(|check| !check.passed),
                Err(_) => true,
            });
            assert!(noticed, "{planted:?} passes {}", group.name());
        }
    }

    #[test]
    fn a_measurement_that_is_not_a_number_never_passes() {
        let mut lines = Lines::new(Group::Exactness);
        lines.at_most("x", f64::NAN, 1.0);
        lines.at_least("x", f64::NAN, 1.0);
        assert!(lines.checks.iter().all(|check| !check.passed));
    }
}
