//! Linear programs by the interior-point crate `clarabel`: pure Rust, so it is there in every build.
//!
//! A simplex crate (`microlp`) was tried first and gave up on small relaxed programs, which are very degenerate; an
//! interior-point method does not mind.

use super::{LinearProgram, Outcome};
use crate::TabularError;
use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, SolverStatus, SupportedConeT};

impl LinearProgram {
    /// Solves the program with an interior-point method in Rust.
    pub fn solve_by_interior_point(&self) -> Result<Outcome, TabularError> {
        let failed = |what: String| TabularError::Solver { solver: "interior point", what };
        // Clarabel's form is A x + s = b with s = 0 (equations first) or s >= 0.
        let mut rows = Rows::default();
        let row = |i: usize| self.matrix.row(i);
        for i in (0..self.matrix.rows()).filter(|&i| self.row_lower[i] == self.row_upper[i]) {
            rows.push(row(i), 1.0, self.row_upper[i]);
        }
        for j in (0..self.objective.len()).filter(|&j| self.lower[j] == self.upper[j]) {
            rows.push([(j, 1.0)], 1.0, self.upper[j]);
        }
        let equations = rows.b.len();
        for i in (0..self.matrix.rows()).filter(|&i| self.row_lower[i] != self.row_upper[i]) {
            rows.push_bounds(|| row(i), self.row_lower[i], self.row_upper[i]);
        }
        for j in (0..self.objective.len()).filter(|&j| self.lower[j] != self.upper[j]) {
            rows.push_bounds(|| [(j, 1.0)], self.lower[j], self.upper[j]);
        }
        let (m, n) = (rows.b.len(), self.objective.len());
        let a = CscMatrix::new_from_triplets(m, n, rows.row, rows.column, rows.value);
        let cones = [SupportedConeT::ZeroConeT(equations), SupportedConeT::NonnegativeConeT(m - equations)];
        let settings = DefaultSettings {
            verbose: false,
            max_iter: 300,
            tol_gap_abs: 1e-11,
            tol_gap_rel: 1e-11,
            tol_feas: 1e-11,
            ..DefaultSettings::default()
        };
        let mut solver =
            DefaultSolver::new(&CscMatrix::zeros((n, n)), &self.objective, &a, &rows.b, &cones, settings)
                .map_err(|e| failed(e.to_string()))?;
        solver.solve();
        match solver.solution.status {
            SolverStatus::Solved | SolverStatus::AlmostSolved => {
                Ok(Outcome::Optimal(solver.solution.x.clone()))
            }
            SolverStatus::PrimalInfeasible => Ok(Outcome::Infeasible),
            SolverStatus::DualInfeasible => Ok(Outcome::Unbounded),
            status => Err(failed(format!("stopped with status {status:?}"))),
        }
    }
}

#[derive(Default)]
struct Rows {
    row: Vec<usize>,
    column: Vec<usize>,
    value: Vec<f64>,
    b: Vec<f64>,
}

impl Rows {
    fn push(&mut self, entries: impl IntoIterator<Item = (usize, f64)>, sign: f64, bound: f64) {
        for (column, value) in entries {
            self.row.push(self.b.len());
            self.column.push(column);
            self.value.push(sign * value);
        }
        self.b.push(sign * bound);
    }

    fn push_bounds<I: IntoIterator<Item = (usize, f64)>>(
        &mut self,
        entries: impl Fn() -> I,
        lower: f64,
        upper: f64,
    ) {
        if upper.is_finite() {
            self.push(entries(), 1.0, upper);
        }
        if lower.is_finite() {
            self.push(entries(), -1.0, lower);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_outcomes() {
        // max x + 2y with x + y <= 4, 0 <= y <= 3, x >= 0
        let mut program = LinearProgram::new(vec![-1.0, -2.0]);
        program.lower = vec![0.0, 0.0];
        program.upper[1] = 3.0;
        program.push_row(f64::NEG_INFINITY, 4.0, [(0, 1.0), (1, 1.0)]);
        let Outcome::Optimal(x) = program.solve_by_interior_point().unwrap() else {
            panic!("has an optimum")
        };
        assert!((x[0] - 1.0).abs() < 1e-9 && (x[1] - 3.0).abs() < 1e-9, "{x:?}");

        let mut unbounded = program.clone();
        unbounded.row_upper[0] = f64::INFINITY;
        assert_eq!(unbounded.solve_by_interior_point().unwrap(), Outcome::Unbounded);

        program.push_row(9.0, 9.0, [(0, 1.0), (1, 1.0)]);
        assert_eq!(program.solve_by_interior_point().unwrap(), Outcome::Infeasible);
    }
}
