//! Linear programs by HiGHS, the solver of the paper (Cargo feature `highs`).

use super::{LinearProgram, Outcome};
use crate::TabularError;
use highs::{HighsModelStatus, RowProblem, Sense};

/// What HiGHS returns: the outcome and, where there is an optimum, the multiplier of each row
/// (positive at an upper bound, negative at a lower one).
pub(crate) struct Solved {
    pub outcome: Outcome,
    pub multipliers: Vec<f64>,
}

/// Solves the program to HiGHS's tightest useful tolerances.
pub(crate) fn solve(program: &LinearProgram) -> Result<Solved, TabularError> {
    let failed = |what: String| TabularError::Solver { solver: "highs", what };
    let mut problem = RowProblem::new();
    let columns: Vec<_> = (0..program.objective.len())
        .map(|j| problem.add_column(program.objective[j], program.lower[j]..=program.upper[j]))
        .collect();
    for i in 0..program.matrix.rows() {
        let bounds = program.row_lower[i]..=program.row_upper[i];
        problem.add_row(bounds, program.matrix.row(i).map(|(j, value)| (columns[j], value)));
    }
    let mut model = problem.try_optimise(Sense::Minimise).map_err(|e| failed(format!("{e:?}")))?;
    model.make_quiet();
    for tolerance in ["primal_feasibility_tolerance", "dual_feasibility_tolerance"] {
        model.try_set_option(tolerance, 1e-9).map_err(|e| failed(format!("{e:?}")))?;
    }
    let solved = model.try_solve().map_err(|e| failed(format!("{e:?}")))?;
    let outcome = match solved.status() {
        HighsModelStatus::Optimal => Outcome::Optimal(solved.get_solution().columns().to_vec()),
        HighsModelStatus::Infeasible => Outcome::Infeasible,
        HighsModelStatus::Unbounded => Outcome::Unbounded,
        status => return Err(failed(format!("stopped with status {status:?}"))),
    };
    let multipliers = solved.get_solution().dual_rows().iter().map(|dual| -dual).collect();
    Ok(Solved { outcome, multipliers })
}
