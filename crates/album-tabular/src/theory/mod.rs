//! Every statement of the theory, checked with numbers.
//!
//! Each file holds one statement: the instances on which it is tried, what is measured on them, and the bound that the
//! measurement must keep. Instances that break a hypothesis are tried too, where the statement says that its
//! conclusion then fails. Tests plant errors in `y_K`, in a family's sign and in the power of gamma, and see them fail.

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

/// One line of the verification: what holds, what was measured, the bound, the verdict.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// The group that this line belongs to.
    pub name: Group,
    /// What must hold, and on which instances.
    pub statement: String,
    /// What was measured.
    pub measured: f64,
    /// What the measurement must keep, e.g. `<= 1e-9`.
    pub bound: String,
    /// Whether it does.
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
    /// Large enough penalties leave the minimiser in place.
    Penalty,
    /// Rollouts speed up the iteration and the descent.
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

    /// Runs its checks.
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

/// How much to check, and a callback for progress.
pub struct Effort<'a> {
    /// MudWorld seeds `0..seeds`.
    pub seeds: usize,
    /// Cells a side of the MudWorlds; the paper's has [`MudWorld::SIZE`](crate::MudWorld::SIZE).
    pub size: usize,
    /// Random instances of the exactness check; the other groups take a share of it.
    pub instances: usize,
    /// Called with the current task and the share of the group that is done (0 to 1).
    pub progress: &'a dyn Fn(&str, f64),
}

impl Effort<'_> {
    /// Reports that `done` of `total` parts are done.
    fn tell(&self, what: &str, done: usize, total: usize) {
        (self.progress)(what, done as f64 / total.max(1) as f64);
    }
}

/// The checks of a group, and the numbers behind them that are worth a figure.
#[derive(Debug)]
pub struct Verified {
    /// One per line.
    pub checks: Vec<Check>,
    /// What can be drawn.
    pub evidence: Evidence,
}

/// Numbers behind a group of checks.
#[derive(Debug)]
pub enum Evidence {
    /// Nothing to draw.
    None,
    /// The three values at every pair, seed by seed.
    Sandwich(Vec<sandwich::Sandwich>),
    /// Error curves and speed-up factors of seed 0.
    Speedup(speedup::Curves, speedup::Factors),
}

/// The larger one; NaN counts as worst, so that it can never pass for a small number.
fn worse(a: f64, b: f64) -> f64 {
    if b > a || b.is_nan() { b } else { a }
}

/// `y_K` from its definition, `E[sum_(t<K) gamma^t R + gamma^K V(s_K)]`, as a sum over all paths: the witness of
/// [`Rollout`](crate::Rollout), and exponential in K.
pub(crate) fn path_sum(mdp: &Mdp, policy: &[f64], first: usize, k: usize, v: &[f64]) -> f64 {
    // Paths so far: the pair to take, its time, and the path's probability.
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

/// Collects the lines of one group.
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

    /// The full effort is the command `album verify`; the tests run every group on smaller worlds.
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
            // A solver that gives up on the damaged program has noticed as well.
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
