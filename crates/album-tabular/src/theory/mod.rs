//! Every statement of the theory, checked with numbers.
//!
//! Each file holds one statement: the instances on which it is tried, what is measured on them, and the bound that the
//! measurement must keep. Instances that break a hypothesis are tried too, where the statement says that its
//! conclusion then fails.

mod boundedness;
mod exactness;
mod penalty;
mod redundancy;
pub mod sandwich;
pub mod speedup;
mod stationarity;

use crate::TabularError;
use serde::Serialize;

/// One line of the verification: what holds, what was measured, the bound, the verdict.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// The group that this line belongs to, a name in [`NAMES`].
    pub name: &'static str,
    /// What must hold, and on which instances.
    pub statement: String,
    /// What was measured.
    pub measured: f64,
    /// What the measurement must keep, e.g. `<= 1e-9`.
    pub bound: String,
    /// Whether it does.
    pub passed: bool,
}

/// The groups of checks, in the order of the paper.
pub const NAMES: [&str; 7] =
    ["exactness", "redundancy", "sandwich", "penalty", "speedup", "boundedness", "stationarity"];

/// How much to check, and whom to tell about progress.
pub struct Effort<'a> {
    /// MudWorld seeds `0..seeds`.
    pub seeds: usize,
    /// Cells a side of the MudWorlds; the paper's has [`MudWorld::SIZE`](crate::MudWorld::SIZE).
    pub size: usize,
    /// Random instances of the exactness check; the other groups take a share of it.
    pub instances: usize,
    /// Called with what is under way and how much of the group is done (0 to 1).
    pub progress: &'a dyn Fn(&str, f64),
}

impl Effort<'_> {
    /// Reports that `done` of `total` parts are done.
    fn tell(&self, what: &str, done: usize, total: usize) {
        (self.progress)(what, done as f64 / total.max(1) as f64);
    }
}

/// A group of checks, and the numbers behind it that are worth a figure.
pub struct Verified {
    /// One per line.
    pub checks: Vec<Check>,
    /// What can be drawn.
    pub evidence: Evidence,
}

/// Numbers behind a group of checks.
pub enum Evidence {
    /// Nothing to draw.
    None,
    /// The three values at every pair, seed by seed.
    Sandwich(Vec<sandwich::Sandwich>),
    /// Error curves and speed-up factors of seed 0.
    Speedup(speedup::Curves, speedup::Factors),
}

/// Runs one group of checks. `name` must be one of [`NAMES`].
pub fn verify(name: &str, effort: &Effort<'_>) -> Result<Verified, TabularError> {
    let plain =
        |checks: Result<Vec<Check>, TabularError>| Ok(Verified { checks: checks?, evidence: Evidence::None });
    match name {
        "exactness" => plain(exactness::check(effort)),
        "redundancy" => plain(redundancy::check(effort)),
        "sandwich" => sandwich::check(effort),
        "penalty" => plain(penalty::check(effort)),
        "speedup" => speedup::check(effort),
        "boundedness" => plain(boundedness::check(effort)),
        "stationarity" => plain(stationarity::check(effort)),
        _ => Err(TabularError::Mdp(format!("no check `{name}`; there are {}", NAMES.join(", ")))),
    }
}

/// Collects the lines of one group.
struct Lines {
    name: &'static str,
    checks: Vec<Check>,
}

impl Lines {
    fn new(name: &'static str) -> Self {
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

    /// The full effort is the command `album verify`; the tests run every group on smaller worlds.
    fn run(name: &str) {
        let effort = Effort { seeds: 2, size: 40, instances: 24, progress: &|_, _| {} };
        let checks = verify(name, &effort).unwrap().checks;
        assert!(checks.len() >= 3, "{name} has {} lines", checks.len());
        for check in &checks {
            assert_eq!(check.name, name);
            assert!(check.passed, "{}: measured {}, bound {}", check.statement, check.measured, check.bound);
        }
    }

    #[test]
    fn exactness() {
        run("exactness");
    }

    #[test]
    fn redundancy() {
        run("redundancy");
    }

    #[test]
    fn sandwich() {
        run("sandwich");
    }

    #[test]
    fn penalty() {
        run("penalty");
    }

    #[test]
    fn speedup() {
        run("speedup");
    }

    #[test]
    fn boundedness() {
        run("boundedness");
    }

    #[test]
    fn stationarity() {
        run("stationarity");
    }

    #[test]
    fn a_measurement_that_is_not_a_number_never_passes() {
        let mut lines = Lines::new("exactness");
        lines.at_most("x", f64::NAN, 1.0);
        lines.at_least("x", f64::NAN, 1.0);
        assert!(lines.checks.iter().all(|check| !check.passed));
    }
}
