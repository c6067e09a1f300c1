//! Linear programs by the interior-point crate `clarabel`: pure Rust, so every build has it.
//!
//! A simplex crate (`microlp`) was tried first and failed on small relaxed programs, which are highly
//! degenerate; an interior-point method copes with them.

use super::{LinearProgram, Outcome};
use crate::TabularError;
use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, SolverStatus, SupportedConeT};

/// Tolerances on gap and feasibility, tried in turn: the tightest one that the solver reaches counts. A
/// program that does not reach the last one does not count as solved.
const TOLERANCES: [f64; 4] = [1e-11, 1e-10, 1e-9, 1e-8];

impl LinearProgram {
    /// Solves the program with an interior-point method in Rust, to within 1e-11 if possible and at least
    /// 1e-8.
    pub fn solve(&self) -> Result<Outcome, TabularError> {
        // Clarabel's form is A x + s = b with s = 0 (equations first) or s >= 0.
        let mut rows = Rows::default();
        for i in (0..self.matrix.rows()).filter(|&i| self.row_lower[i] == self.row_upper[i]) {
            rows.push(Some(i), self.matrix.row(i), 1.0, self.row_upper[i]);
        }
        for j in (0..self.objective.len()).filter(|&j| self.lower[j] == self.upper[j]) {
            rows.push(None, [(j, 1.0)], 1.0, self.upper[j]);
        }
        let equations = rows.b.len();
        for i in (0..self.matrix.rows()).filter(|&i| self.row_lower[i] != self.row_upper[i]) {
            rows.push_bounds(Some(i), || self.matrix.row(i), self.row_lower[i], self.row_upper[i]);
        }
        for j in (0..self.objective.len()).filter(|&j| self.lower[j] != self.upper[j]) {
            rows.push_bounds(None, || [(j, 1.0)], self.lower[j], self.upper[j]);
        }
        let (m, n) = (rows.b.len(), self.objective.len());
        let a = CscMatrix::new_from_triplets(m, n, rows.row, rows.column, rows.value);
        let cones = [SupportedConeT::ZeroConeT(equations), SupportedConeT::NonnegativeConeT(m - equations)];
        let stopped = |status: String| TabularError::Stopped { solver: "interior point", status };
        let mut last = SolverStatus::Unsolved;
        for tolerance in TOLERANCES {
            let settings = DefaultSettings {
                verbose: false,
                max_iter: 300,
                tol_gap_abs: tolerance,
                tol_gap_rel: tolerance,
                tol_feas: tolerance,
                ..DefaultSettings::default()
            };
            let zero = CscMatrix::zeros((n, n));
            let mut solver = DefaultSolver::new(&zero, &self.objective, &a, &rows.b, &cones, settings)
                .map_err(|e| stopped(e.to_string()))?;
            solver.solve();
            last = solver.solution.status;
            if let Some(verdict) = verdict(last) {
                return Ok(match verdict {
                    Verdict::Optimal => {
                        let mut multipliers = vec![0.0; self.matrix.rows()];
                        for ((origin, sign), z) in rows.origin.iter().zip(&solver.solution.z) {
                            if let Some(i) = origin {
                                multipliers[*i] += sign * z;
                            }
                        }
                        Outcome::Optimal { x: solver.solution.x, multipliers }
                    }
                    Verdict::Infeasible => Outcome::Infeasible,
                    Verdict::Unbounded => Outcome::Unbounded,
                });
            }
        }
        Err(stopped(format!("{last:?} at the tolerance {:e}", TOLERANCES[TOLERANCES.len() - 1])))
    }
}

#[derive(Debug, PartialEq)]
enum Verdict {
    Optimal,
    Infeasible,
    Unbounded,
}

/// What a status proves. Clarabel's `Almost...` means that a tolerance at least a thousand times larger was
/// met, or none: that proves nothing.
fn verdict(status: SolverStatus) -> Option<Verdict> {
    match status {
        SolverStatus::Solved => Some(Verdict::Optimal),
        SolverStatus::PrimalInfeasible => Some(Verdict::Infeasible),
        SolverStatus::DualInfeasible => Some(Verdict::Unbounded),
        _ => None,
    }
}

#[derive(Default)]
struct Rows {
    row: Vec<usize>,
    column: Vec<usize>,
    value: Vec<f64>,
    b: Vec<f64>,
    /// The program row that each row comes from, if any, and its sign.
    origin: Vec<(Option<usize>, f64)>,
}

impl Rows {
    fn push(
        &mut self,
        origin: Option<usize>,
        entries: impl IntoIterator<Item = (usize, f64)>,
        sign: f64,
        bound: f64,
    ) {
        for (column, value) in entries {
            self.row.push(self.b.len());
            self.column.push(column);
            self.value.push(sign * value);
        }
        self.b.push(sign * bound);
        self.origin.push((origin, sign));
    }

    fn push_bounds<I: IntoIterator<Item = (usize, f64)>>(
        &mut self,
        origin: Option<usize>,
        entries: impl Fn() -> I,
        lower: f64,
        upper: f64,
    ) {
        if upper.is_finite() {
            self.push(origin, entries(), 1.0, upper);
        }
        if lower.is_finite() {
            self.push(origin, entries(), -1.0, lower);
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
        let Outcome::Optimal { x, multipliers } = program.solve().unwrap() else { panic!("has an optimum") };
        assert!((x[0] - 1.0).abs() < 1e-9 && (x[1] - 3.0).abs() < 1e-9, "{x:?}");
        assert!((multipliers[0] - 1.0).abs() < 1e-9, "{multipliers:?}");

        // The same row as a lower bound of its negative.
        let mut mirrored = program.clone();
        mirrored.matrix = crate::Csr::new(2);
        (mirrored.row_lower, mirrored.row_upper) = (Vec::new(), Vec::new());
        mirrored.push_row(-4.0, f64::INFINITY, [(0, -1.0), (1, -1.0)]);
        let Outcome::Optimal { multipliers, .. } = mirrored.solve().unwrap() else {
            panic!("has an optimum")
        };
        assert!((multipliers[0] + 1.0).abs() < 1e-9, "{multipliers:?}");

        let mut unbounded = program.clone();
        unbounded.row_upper[0] = f64::INFINITY;
        assert_eq!(unbounded.solve().unwrap(), Outcome::Unbounded);

        program.push_row(9.0, 9.0, [(0, 1.0), (1, 1.0)]);
        assert_eq!(program.solve().unwrap(), Outcome::Infeasible);
    }

    #[test]
    fn almost_is_not_enough() {
        use SolverStatus::*;
        for status in [AlmostSolved, AlmostPrimalInfeasible, AlmostDualInfeasible, MaxIterations] {
            assert_eq!(verdict(status), None, "{status:?}");
        }
        assert_eq!(verdict(Solved), Some(Verdict::Optimal));
    }

    #[test]
    fn a_program_that_cannot_be_solved_well_is_an_error() {
        // Coefficients over 40 orders of magnitude: no double-precision point satisfies the rows to 1e-8.
        let mut program = LinearProgram::new(vec![1.0, 1.0]);
        program.push_row(1.0, f64::INFINITY, [(0, 1e-20), (1, 1e20)]);
        program.push_row(1.0, f64::INFINITY, [(0, 1e20), (1, -1e20)]);
        program.push_row(1e15, 1e15, [(0, 1e-15), (1, 1.0)]);
        if let Ok(Outcome::Optimal { x, .. }) = program.solve() {
            let excess = 1e15 - (1e-15 * x[0] + x[1]);
            assert!(excess.abs() <= 1e-6 * 1e15, "{x:?}");
        }
    }
}
