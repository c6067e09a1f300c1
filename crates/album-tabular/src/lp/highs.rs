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

/// Presolve rules that find nothing in a Lifted Bellman LP and take 30 % of the time: dominated columns, forcing rows
/// and columns, doubleton and dependent equations, aggregator, parallel rows, sparsification (bits of
/// `presolve_rule_off`).
pub(crate) const LBLP_RULES_OFF: i32 = 32 + 64 + 128 + 512 + 1024 + 2048 + 4096 + 8192 + 16384;

/// Solves the program to a feasibility tolerance (primal and dual), with the given presolve rules left out. The objective is divided by `scale`;
/// the multipliers that come back belong to the objective as it stands.
pub(crate) fn solve(
    program: &LinearProgram,
    scale: f64,
    tolerance: f64,
    rules_off: i32,
) -> Result<Solved, TabularError> {
    let failed = |what: String| TabularError::Solver { solver: "highs", what };
    let mut problem = RowProblem::new();
    let columns: Vec<_> = (0..program.objective.len())
        .map(|j| problem.add_column(program.objective[j] / scale, program.lower[j]..=program.upper[j]))
        .collect();
    for i in 0..program.matrix.rows() {
        let bounds = program.row_lower[i]..=program.row_upper[i];
        problem.add_row(bounds, program.matrix.row(i).map(|(j, value)| (columns[j], value)));
    }
    let mut model = problem.try_optimise(Sense::Minimise).map_err(|e| failed(format!("{e:?}")))?;
    model.make_quiet();
    for option in ["primal_feasibility_tolerance", "dual_feasibility_tolerance"] {
        model.try_set_option(option, tolerance).map_err(|e| failed(format!("{e:?}")))?;
    }
    model.try_set_option("presolve_rule_off", rules_off).map_err(|e| failed(format!("{e:?}")))?;
    let solved = model.try_solve().map_err(|e| failed(format!("{e:?}")))?;
    let solution = solved.get_solution();
    let outcome = match solved.status() {
        HighsModelStatus::Optimal => Outcome::Optimal(solution.columns().to_vec()),
        HighsModelStatus::Infeasible => Outcome::Infeasible,
        HighsModelStatus::Unbounded => Outcome::Unbounded,
        status => return Err(failed(format!("stopped with status {status:?}"))),
    };
    let multipliers = solution.dual_rows().iter().map(|dual| -dual * scale).collect();
    Ok(Solved { outcome, multipliers })
}
