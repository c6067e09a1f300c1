//! Hands the assembled program to a general LP solver, without exploiting its structure.

use super::Point;
use crate::lp::Outcome;
use crate::{Lblp, PerFamily, TabularError};

pub(super) fn by_interior_point(lblp: &Lblp<'_>) -> Result<Point, TabularError> {
    // The weights are left unscaled: scaled to at least 1, as HiGHS needs them, they leave Clarabel with
    // primal residuals of 1e-8 (`docs/decisions/exact.md`).
    point(lblp, "interior point", lblp.assemble()?.solve()?)
}

#[cfg(feature = "highs")]
pub(super) fn by_highs(lblp: &Lblp<'_>) -> Result<Point, TabularError> {
    use crate::lp::highs;
    let program = lblp.assemble()?;
    // HiGHS's dual tolerance is absolute, and the weights are frequencies so small that it would stop early:
    // the objective is scaled to weights of at least 1.
    let scale = program.objective.iter().copied().fold(f64::INFINITY, f64::min);
    // Tight tolerances and few presolve rules first; HiGHS 1.15 stops with an error on some programs at 1e-9.
    // The certificate measures the quality of the point.
    let mut solved = highs::solve(&program, scale, 1e-9, highs::LBLP_RULES_OFF);
    for tolerance in [1e-8, 1e-7] {
        if solved.is_err() {
            solved = highs::solve(&program, scale, tolerance, 0);
        }
    }
    point(lblp, "highs", solved?)
}

/// Splits the variables and multipliers of an optimum.
fn point(lblp: &Lblp<'_>, solver: &'static str, outcome: Outcome) -> Result<Point, TabularError> {
    let (mut q, multipliers) = match outcome {
        Outcome::Optimal { x, multipliers } => (x, multipliers),
        Outcome::Infeasible => return Err(TabularError::NoOptimum { solver, found: "infeasible" }),
        Outcome::Unbounded => return Err(TabularError::NoOptimum { solver, found: "unbounded" }),
    };
    let v = q.split_off(lblp.pairs());
    let mut rest = multipliers.into_iter();
    let duals = PerFamily::new(|_| rest.by_ref().take(lblp.pairs()).collect());
    Ok(Point { q, v, duals, iterations: 0 })
}
