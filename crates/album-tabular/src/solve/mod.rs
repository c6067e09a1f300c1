//! Solvers of the Lifted Bellman LP with a common result type, and the certificate that checks them.

mod bellman;
mod certificate;
mod program;

pub use certificate::{Certificate, certify};

use crate::{EmpiricalMdp, Lblp, PerFamily, TabularError};
use album_data::{DataError, NpzWriter};
use std::path::Path;
use std::time::{Duration, Instant};

/// The choice of solver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Solver {
    /// Policy iteration on the MDP, dual variables from the discounted occupancy flow. Assembles no matrix.
    Bellman,
    /// The assembled program, solved by the built-in interior-point method.
    InteriorPoint,
    /// The assembled program, solved by HiGHS (Cargo feature `highs`).
    Highs,
}

impl Solver {
    /// The name that `--solver` takes.
    pub fn name(self) -> &'static str {
        match self {
            Solver::Bellman => "bellman",
            Solver::InteriorPoint => "interior-point",
            Solver::Highs => "highs",
        }
    }

    /// Whether this build includes it.
    pub fn is_built(self) -> bool {
        self != Solver::Highs || cfg!(feature = "highs")
    }
}

/// An optimal point of the program with its dual variables.
#[derive(Clone, Debug)]
pub struct Solution {
    /// One value per pair.
    pub q: Vec<f64>,
    /// One value per decision state.
    pub v: Vec<f64>,
    /// Dual variables, one per pair for each family.
    pub duals: PerFamily<Vec<f64>>,
    /// `F(Q,V)`.
    pub objective: f64,
    /// Policies evaluated (`bellman`); 0 for the other solvers.
    pub iterations: usize,
    /// The result of an independent check.
    pub certificate: Certificate,
    /// Time of the solver.
    pub solve_time: Duration,
    /// Time of the certificate.
    pub certificate_time: Duration,
}

impl Solution {
    /// The exact-penalty thresholds: penalties above the largest duals of `B` and `E` make the hinge relaxation exact.
    pub fn penalty_thresholds(&self) -> (f64, f64) {
        let largest = |x: &[f64]| x.iter().copied().fold(0.0, f64::max);
        (largest(&self.duals.b), largest(&self.duals.e))
    }

    /// Writes the arrays `states`, `v`, `pair_states`, `pair_actions`, `q`, `dual_b` and `dual_e`, in the ids
    /// of the data. The file exists once the writer is finished.
    pub fn write_npz(&self, path: &Path, data: &EmpiricalMdp) -> Result<NpzWriter, DataError> {
        let (states, pairs) = (self.v.len(), self.q.len());
        let mut npz = NpzWriter::create(path)?;
        npz.array_i64("states", &[states], &data.state_labels[..states])?;
        npz.array_f64("v", &[states], &self.v)?;
        let pair_states: Vec<i64> = (0..pairs).map(|pair| data.pair_state_label(pair)).collect();
        npz.array_i64("pair_states", &[pairs], &pair_states)?;
        npz.array_i64("pair_actions", &[pairs], &data.pair_actions)?;
        npz.array_f64("q", &[pairs], &self.q)?;
        npz.array_f64("dual_b", &[pairs], &self.duals.b)?;
        npz.array_f64("dual_e", &[pairs], &self.duals.e)?;
        Ok(npz)
    }
}

/// The result of a solver before it is checked.
struct Point {
    q: Vec<f64>,
    v: Vec<f64>,
    duals: PerFamily<Vec<f64>>,
    iterations: usize,
}

/// Solves the program and certifies the result.
///
/// ```
/// use album_tabular::{EmpiricalMdp, Lblp, MudWorld, Solver, solve};
/// let data = EmpiricalMdp::new(&MudWorld::new(10, 0).down_right(50), 0.95)?;
/// let lblp = Lblp::of_data(&data, 0.1, 0.05, 5)?;
/// let solution = solve(&lblp, Solver::Bellman)?;
/// assert!(solution.certificate.gap < 1e-12);
/// # Ok::<(), album_tabular::TabularError>(())
/// ```
pub fn solve(lblp: &Lblp<'_>, solver: Solver) -> Result<Solution, TabularError> {
    let start = Instant::now();
    let point = match solver {
        Solver::Bellman => bellman::solve(lblp)?,
        Solver::InteriorPoint => program::by_interior_point(lblp)?,
        #[cfg(feature = "highs")]
        Solver::Highs => program::by_highs(lblp)?,
        #[cfg(not(feature = "highs"))]
        Solver::Highs => return Err(TabularError::NoHighs),
    };
    let solve_time = start.elapsed();
    let start = Instant::now();
    let certificate = certify(lblp, &point.q, &point.v, &point.duals);
    let objective = lblp.objective(&point.q, &point.v);
    check_finite(&point, objective, &certificate)?;
    Ok(Solution {
        objective,
        q: point.q,
        v: point.v,
        duals: point.duals,
        iterations: point.iterations,
        certificate,
        solve_time,
        certificate_time: start.elapsed(),
    })
}

/// Refuses a solution with NaN or infinity, whatever the rest says.
fn check_finite(point: &Point, objective: f64, certificate: &Certificate) -> Result<(), TabularError> {
    let Certificate { primal, dual, slackness, gap, .. } = certificate;
    let numbers: [(&str, &[f64]); 8] = [
        ("V", &point.v),
        ("Q", &point.q),
        ("a dual variable of B", &point.duals.b),
        ("a dual variable of E", &point.duals.e),
        ("the objective", &[objective]),
        ("the certificate's violation of rows", &[*primal, *dual]),
        ("the certificate's slackness", &[*slackness]),
        ("the certificate's gap", &[*gap]),
    ];
    for (what, numbers) in numbers {
        if let Some(found) = numbers.iter().find(|x| !x.is_finite()) {
            return Err(TabularError::Overflow { what, found: *found });
        }
    }
    Ok(())
}
