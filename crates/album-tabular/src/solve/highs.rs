//! The program given to HiGHS as it stands.

use super::Point;
use crate::lp::{Outcome, highs};
use crate::{Lblp, TabularError};

pub(super) fn solve(lblp: &Lblp) -> Result<Point, TabularError> {
    // HiGHS's dual tolerance is absolute and the weights are frequencies, so small that it would stop early:
    // the objective is scaled to weights of at least 1, the duals are scaled back.
    let scale = lblp.program().objective.iter().copied().fold(f64::INFINITY, f64::min);
    let mut program = lblp.program().clone();
    program.objective.iter_mut().for_each(|c| *c /= scale);
    let solved = highs::solve(&program)?;
    match solved.outcome {
        Outcome::Optimal(mut q) => {
            let v = q.split_off(lblp.pairs());
            let duals = solved.multipliers.iter().map(|m| m * scale).collect();
            Ok(Point { q, v, duals, iterations: 0 })
        }
        other => Err(TabularError::Solver {
            solver: "highs",
            what: format!("{other:?}; a Lifted Bellman LP always has an optimum"),
        }),
    }
}
