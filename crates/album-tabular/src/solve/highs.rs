//! The program given to HiGHS as it stands.

use super::Point;
use crate::lp::{Outcome, highs};
use crate::{Lblp, TabularError};

pub(super) fn solve(lblp: &Lblp) -> Result<Point, TabularError> {
    // HiGHS's dual tolerance is absolute and the weights are frequencies, so small that it would stop early:
    // the objective is scaled to weights of at least 1.
    let scale = lblp.program().objective.iter().copied().fold(f64::INFINITY, f64::min);
    // Tight tolerances and few presolve rules first; HiGHS 1.15 stops with an error on some programs at 1e-9. The
    // certificate tells how good the point is in the end.
    let attempts = [(1e-9, highs::LBLP_RULES_OFF), (1e-8, 0), (1e-7, 0)];
    let mut solved = Err(TabularError::Solver { solver: "highs", what: "not tried".into() });
    for (tolerance, rules_off) in attempts {
        solved = highs::solve(lblp.program(), scale, tolerance, rules_off);
        if solved.is_ok() {
            break;
        }
    }
    let solved = solved?;
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
