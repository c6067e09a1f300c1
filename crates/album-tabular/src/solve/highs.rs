//! The program given to HiGHS as it stands.

use super::Point;
use crate::lp::{Outcome, highs};
use crate::{Lblp, TabularError};

pub(super) fn solve(lblp: &Lblp) -> Result<Point, TabularError> {
    // HiGHS's dual tolerance is absolute and the weights are frequencies, so small that it would stop early:
    // the objective is scaled to weights of at least 1.
    let scale = lblp.program().objective.iter().copied().fold(f64::INFINITY, f64::min);
    // With rules left out, presolve of HiGHS 1.15 gives up on some programs with an error; then all rules are used.
    let solved = highs::solve(lblp.program(), scale, highs::LBLP_RULES_OFF)
        .or_else(|_| highs::solve(lblp.program(), scale, 0))?;
    match solved.outcome {
        Outcome::Optimal(mut q) => {
            let v = q.split_off(lblp.pairs());
            Ok(Point { q, v, duals: solved.multipliers, iterations: 0 })
        }
        other => Err(TabularError::Solver {
            solver: "highs",
            what: format!("{other:?}; a Lifted Bellman LP always has an optimum"),
        }),
    }
}
