//! The program given to a general LP solver as it stands, assembled and with nothing said about its structure.

use super::Point;
use crate::lp::Outcome;
use crate::{Lblp, PerFamily, TabularError};

pub(super) fn by_interior_point(lblp: &Lblp<'_>) -> Result<Point, TabularError> {
    let mut program = lblp.assemble()?;
    // Weights are frequencies, so small that the tolerances would mean little: they are scaled to at least 1.
    let scale = program.objective.iter().copied().fold(f64::INFINITY, f64::min);
    program.objective.iter_mut().for_each(|c| *c /= scale);
    point(lblp, "interior point", program.solve()?, scale)
}

#[cfg(feature = "highs")]
pub(super) fn by_highs(lblp: &Lblp<'_>) -> Result<Point, TabularError> {
    use crate::lp::highs;
    let program = lblp.assemble()?;
    // HiGHS's dual tolerance is absolute and the weights are frequencies, so small that it would stop early:
    // the objective is scaled to weights of at least 1.
    let scale = program.objective.iter().copied().fold(f64::INFINITY, f64::min);
    // Tight tolerances and few presolve rules first; HiGHS 1.15 stops with an error on some programs at 1e-9. The
    // certificate says how good the point is.
    let mut solved = highs::solve(&program, scale, 1e-9, highs::LBLP_RULES_OFF);
    for tolerance in [1e-8, 1e-7] {
        if solved.is_err() {
            solved = highs::solve(&program, scale, tolerance, 0);
        }
    }
    point(lblp, "highs", solved?, 1.0)
}

/// Splits the variables and multipliers of an optimum; the multipliers belong to an objective divided by `scale`.
fn point(lblp: &Lblp<'_>, solver: &'static str, outcome: Outcome, scale: f64) -> Result<Point, TabularError> {
    let (mut q, multipliers) = match outcome {
        Outcome::Optimal { x, multipliers } => (x, multipliers),
        Outcome::Infeasible => return Err(TabularError::NoOptimum { solver, found: "infeasible" }),
        Outcome::Unbounded => return Err(TabularError::NoOptimum { solver, found: "unbounded" }),
    };
    let v = q.split_off(lblp.pairs());
    let mut rest = multipliers.iter().map(|lambda| lambda * scale);
    let duals = PerFamily::new(|_| rest.by_ref().take(lblp.pairs()).collect());
    Ok(Point { q, v, duals, iterations: 0 })
}
