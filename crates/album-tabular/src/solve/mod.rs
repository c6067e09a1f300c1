//! Two solvers of the Lifted Bellman LP with one result type, and the certificate that judges both.

mod bellman;
mod certificate;
#[cfg(feature = "highs")]
mod highs;

pub use certificate::{Certificate, certify};

use crate::{Lblp, Mdp, TabularError};
use std::time::{Duration, Instant};

/// Which solver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Solver {
    /// Policy iteration on the MDP, dual variables from the discounted occupancy flow.
    Bellman,
    /// The program itself, given to HiGHS (Cargo feature `highs`).
    Highs,
}

/// An optimal point of the program with its dual variables.
#[derive(Clone, Debug)]
pub struct Solution {
    /// One value per pair.
    pub q: Vec<f64>,
    /// One value per decision state.
    pub v: Vec<f64>,
    /// Dual variables of all rows: the families B, E, KQ, KV in turn, one per pair each.
    pub duals: Vec<f64>,
    /// `F(Q,V)`.
    pub objective: f64,
    /// Policies evaluated (`bellman`); 0 where the solver does not say.
    pub iterations: usize,
    /// What an independent look at the point says.
    pub certificate: Certificate,
    /// Time of the solver.
    pub solve_time: Duration,
    /// Time of the certificate.
    pub certificate_time: Duration,
}

impl Solution {
    /// Dual variables of `R + gamma P V <= Q`, one per pair.
    pub fn dual_b(&self) -> &[f64] {
        &self.duals[..self.q.len()]
    }

    /// Dual variables of `Q <= V`, one per pair.
    pub fn dual_e(&self) -> &[f64] {
        &self.duals[self.q.len()..2 * self.q.len()]
    }

    /// The exact-penalty thresholds: penalties above `(max dual_b, max dual_e)` make the hinge relaxation exact.
    pub fn penalty_thresholds(&self) -> (f64, f64) {
        let largest = |x: &[f64]| x.iter().copied().fold(0.0, f64::max);
        (largest(self.dual_b()), largest(self.dual_e()))
    }
}

/// The bare result of a solver, before it is judged.
struct Point {
    q: Vec<f64>,
    v: Vec<f64>,
    duals: Vec<f64>,
    iterations: usize,
}

/// Solves the program and certifies the result.
///
/// ```
/// use album_tabular::{EmpiricalMdp, Lblp, MudWorld, Solver, solve};
/// let data = EmpiricalMdp::new(&MudWorld::new(10, 0).down_right(50), 0.95)?;
/// let lblp = Lblp::of_data(&data, 0.1, 0.05, 5)?;
/// let solution = solve(&data.mdp, &lblp, Solver::Bellman)?;
/// assert!(solution.certificate.gap < 1e-12);
/// # Ok::<(), album_tabular::TabularError>(())
/// ```
pub fn solve(mdp: &Mdp, lblp: &Lblp, solver: Solver) -> Result<Solution, TabularError> {
    let start = Instant::now();
    let point = match solver {
        Solver::Bellman => bellman::solve(mdp, lblp)?,
        #[cfg(feature = "highs")]
        Solver::Highs => highs::solve(lblp)?,
        #[cfg(not(feature = "highs"))]
        Solver::Highs => {
            return Err(TabularError::NotBuilt(
                "this build has no HiGHS; build with `cargo build --release --features highs` \
                 (needs cmake, a C++ compiler and libclang)"
                    .into(),
            ));
        }
    };
    let solve_time = start.elapsed();
    let start = Instant::now();
    let certificate = certify(lblp, &point.q, &point.v, &point.duals);
    Ok(Solution {
        objective: lblp.objective(&point.q, &point.v),
        q: point.q,
        v: point.v,
        duals: point.duals,
        iterations: point.iterations,
        certificate,
        solve_time,
        certificate_time: start.elapsed(),
    })
}
