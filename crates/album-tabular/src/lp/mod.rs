//! General linear programs: `min c'x` subject to bounds on `x` and on `A x`.
//!
//! [`LinearProgram::solve`] is the same solver in every build; HiGHS has its own method if the Cargo feature
//! `highs` is on.

mod interior;
mod mps;

#[cfg(feature = "highs")]
pub(crate) mod highs;

use crate::sparse::Csr;

/// `min objective' x` with `lower <= x <= upper` and `row_lower <= A x <= row_upper`.
#[derive(Clone, Debug)]
pub struct LinearProgram {
    /// The cost of each variable.
    pub objective: Vec<f64>,
    /// Lower bounds of the variables; `-inf` for none.
    pub lower: Vec<f64>,
    /// Upper bounds of the variables.
    pub upper: Vec<f64>,
    /// The rows.
    pub matrix: Csr,
    /// Lower bounds of the rows.
    pub row_lower: Vec<f64>,
    /// Upper bounds of the rows.
    pub row_upper: Vec<f64>,
}

/// The result of solving a linear program.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// An optimal point.
    Optimal {
        /// One value per variable.
        x: Vec<f64>,
        /// The multiplier of each row: positive at an upper bound, negative at a lower one.
        multipliers: Vec<f64>,
    },
    /// No point satisfies all rows and bounds.
    Infeasible,
    /// The objective has no lower bound.
    Unbounded,
}

impl LinearProgram {
    /// A program over free variables, one for each cost, without rows.
    pub fn new(objective: Vec<f64>) -> Self {
        let n = objective.len();
        LinearProgram {
            objective,
            lower: vec![f64::NEG_INFINITY; n],
            upper: vec![f64::INFINITY; n],
            matrix: Csr::new(n),
            row_lower: Vec::new(),
            row_upper: Vec::new(),
        }
    }

    /// Appends the row `lower <= sum coefficient * x <= upper`.
    pub fn push_row(&mut self, lower: f64, upper: f64, entries: impl IntoIterator<Item = (usize, f64)>) {
        for (column, value) in entries {
            self.matrix.push(column, value);
        }
        self.matrix.end_row();
        self.row_lower.push(lower);
        self.row_upper.push(upper);
    }
}
