//! Handles to values on a tape, with the operators that make losses read like equations.

use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::matrix::Matrix;
use crate::ops::{Binary, NormalBins, Reduce, Unary};
use crate::tape::{Gradients, Inner, Tape};

/// A matrix on a [`Tape`]: a value, and a place in the computation.
///
/// Operations between two variables work entry by entry; a single row, column or number is broadcast to the
/// size of the other operand. Operations with an `f32` apply it to every entry.
#[derive(Clone, Copy)]
pub struct Var<'t> {
    tape: &'t Tape,
    index: u32,
}

impl std::fmt::Debug for Var<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Var({} x {})", self.rows(), self.cols())
    }
}

impl<'t> Var<'t> {
    pub(crate) fn new(tape: &'t Tape, index: usize) -> Self {
        Self { tape, index: index as u32 }
    }

    pub(crate) fn index(self) -> usize {
        self.index as usize
    }

    /// Its index among the values of the tape, as in a [`Recording`](crate::Recording).
    pub fn place(self) -> usize {
        self.index()
    }

    /// The tape of this variable.
    pub fn tape(self) -> &'t Tape {
        self.tape
    }

    /// Records the node that `push` adds.
    #[track_caller]
    fn record(self, push: impl FnOnce(&mut Inner)) -> Var<'t> {
        let mut inner = self.tape.inner.borrow_mut();
        push(&mut inner);
        Var::new(self.tape, inner.live - 1)
    }

    fn unary(self, op: Unary) -> Var<'t> {
        self.record(|inner| inner.unary(op, self.index()))
    }

    #[track_caller]
    fn reduce(self, op: Reduce) -> Var<'t> {
        self.record(|inner| inner.reduce(op, self.index()))
    }

    #[track_caller]
    fn binary(self, op: Binary, other: Var<'t>) -> Var<'t> {
        let other = self.tape.own(other);
        self.record(|inner| inner.binary(op, self.index(), other))
    }

    /// Number of rows.
    pub fn rows(self) -> usize {
        self.tape.inner.borrow().nodes[self.index()].rows
    }

    /// Number of columns.
    pub fn cols(self) -> usize {
        self.tape.inner.borrow().nodes[self.index()].cols
    }

    /// The value of a 1 x 1 matrix.
    ///
    /// # Panics
    /// If this is a larger matrix.
    #[track_caller]
    pub fn item(self) -> f32 {
        self.with_value(|value| {
            assert_eq!(value.len(), 1, "not a single number");
            value[0]
        })
    }

    /// A copy of the value.
    pub fn to_matrix(self) -> Matrix {
        Matrix::from_vec(self.rows(), self.cols(), self.with_value(<[f32]>::to_vec))
    }

    /// Reads the value, row by row, without copying it. `f` must not use the tape.
    ///
    /// # Panics
    /// If a deferring tape has not computed it.
    #[track_caller]
    pub fn with_value<T>(self, f: impl FnOnce(&[f32]) -> T) -> T {
        let node = &self.tape.inner.borrow().nodes[self.index()];
        assert!(node.known, "this value is computed elsewhere");
        f(&node.value)
    }

    /// The same value with stopped gradients.
    #[must_use]
    pub fn detach(self) -> Var<'t> {
        self.record(|inner| inner.detach(self.index()))
    }

    /// `[x]_+ = max(x, 0)`; the derivative at 0 is 0.
    #[must_use]
    pub fn relu(self) -> Var<'t> {
        self.unary(Unary::Relu)
    }

    /// `|x|`; the derivative at 0 is 0.
    #[must_use]
    pub fn abs(self) -> Var<'t> {
        self.unary(Unary::Abs)
    }

    /// `x^2`.
    #[must_use]
    pub fn square(self) -> Var<'t> {
        self.unary(Unary::Square)
    }

    /// `sqrt(x)`.
    #[must_use]
    pub fn sqrt(self) -> Var<'t> {
        self.unary(Unary::Sqrt)
    }

    /// `e^x`.
    #[must_use]
    pub fn exp(self) -> Var<'t> {
        self.unary(Unary::Exp)
    }

    /// The natural logarithm.
    #[must_use]
    pub fn ln(self) -> Var<'t> {
        self.unary(Unary::Ln)
    }

    /// The hyperbolic tangent.
    #[must_use]
    pub fn tanh(self) -> Var<'t> {
        self.unary(Unary::Tanh)
    }

    /// `1 / (1 + e^-x)`.
    #[must_use]
    pub fn sigmoid(self) -> Var<'t> {
        self.unary(Unary::Sigmoid)
    }

    /// `ln(1 + e^x)`, without overflow.
    #[must_use]
    pub fn softplus(self) -> Var<'t> {
        self.unary(Unary::Softplus)
    }

    /// `x * tanh(ln(1 + e^x))`, without overflow.
    #[must_use]
    pub fn mish(self) -> Var<'t> {
        self.unary(Unary::Mish)
    }

    /// The sine.
    #[must_use]
    pub fn sin(self) -> Var<'t> {
        self.unary(Unary::Sin)
    }

    /// The cosine.
    #[must_use]
    pub fn cos(self) -> Var<'t> {
        self.unary(Unary::Cos)
    }

    /// Clips every entry to `low..=high`; clipped entries pass no gradient.
    ///
    /// # Panics
    /// If `low > high` or either is NaN.
    #[must_use]
    #[track_caller]
    pub fn clip(self, low: f32, high: f32) -> Var<'t> {
        assert!(low <= high, "cannot clip to {low}..={high}");
        self.unary(Unary::Clip(low, high))
    }

    /// The elementwise minimum; ties share the gradient.
    #[must_use]
    #[track_caller]
    pub fn min(self, other: Var<'t>) -> Var<'t> {
        self.binary(Binary::Min, other)
    }

    /// The elementwise maximum; ties share the gradient.
    #[must_use]
    #[track_caller]
    pub fn max(self, other: Var<'t>) -> Var<'t> {
        self.binary(Binary::Max, other)
    }

    /// The sum of all entries.
    #[must_use]
    pub fn sum(self) -> Var<'t> {
        self.reduce(Reduce::Sum)
    }

    /// The mean of all entries.
    #[must_use]
    #[track_caller]
    pub fn mean(self) -> Var<'t> {
        self.reduce(Reduce::Mean)
    }

    /// The sum of each row, as a column.
    #[must_use]
    #[track_caller]
    pub fn sum_cols(self) -> Var<'t> {
        self.reduce(Reduce::SumCols)
    }

    /// The mean of each row, as a column.
    #[must_use]
    #[track_caller]
    pub fn mean_cols(self) -> Var<'t> {
        self.reduce(Reduce::MeanCols)
    }

    /// The minimum of each row, as a column: the pessimistic ensemble member.
    #[must_use]
    #[track_caller]
    pub fn min_cols(self) -> Var<'t> {
        self.reduce(Reduce::MinCols)
    }

    /// The maximum of each row, as a column.
    #[must_use]
    #[track_caller]
    pub fn max_cols(self) -> Var<'t> {
        self.reduce(Reduce::MaxCols)
    }

    /// Rows `from..to`.
    #[must_use]
    #[track_caller]
    pub fn slice_rows(self, from: usize, to: usize) -> Var<'t> {
        let cols = self.cols();
        self.record(|inner| inner.slice(self.index(), (from, 0), (to, cols)))
    }

    /// Columns `from..to`.
    #[must_use]
    #[track_caller]
    pub fn slice_cols(self, from: usize, to: usize) -> Var<'t> {
        let rows = self.rows();
        self.record(|inner| inner.slice(self.index(), (0, from), (rows, to)))
    }

    /// LayerNorm without parameters: `(x - mean) / sqrt(variance + epsilon)` over the columns of each row,
    /// with the population variance.
    #[must_use]
    pub fn normalize_rows(self, epsilon: f32) -> Var<'t> {
        self.record(|inner| inner.normalize_rows(self.index(), epsilon))
    }

    /// The log-probabilities of each row's logits: `x - ln(sum(e^x))`, without overflow.
    #[must_use]
    pub fn log_softmax_cols(self) -> Var<'t> {
        self.record(|inner| inner.log_softmax_cols(self.index()))
    }

    /// Each row repeated `times` times: row `i` becomes rows `i * times..(i + 1) * times`.
    #[must_use]
    pub fn repeat_rows(self, times: usize) -> Var<'t> {
        self.record(|inner| inner.repeat_rows(self.index(), times))
    }

    /// The same entries, row by row, as `rows` rows of `cols` columns.
    ///
    /// # Panics
    /// If the number of entries differs.
    #[must_use]
    #[track_caller]
    pub fn reshape(self, rows: usize, cols: usize) -> Var<'t> {
        self.record(|inner| inner.reshape(self.index(), rows, cols))
    }

    /// 1 where the entry is at least `threshold`, 0 below; no gradient passes.
    #[must_use]
    pub fn ge(self, threshold: f32) -> Var<'t> {
        self.record(|inner| inner.ge(self.index(), threshold))
    }

    /// The index of the largest entry of each row as a column, the first of equals; no gradient passes.
    ///
    /// # Panics
    /// If there are no columns.
    #[must_use]
    #[track_caller]
    pub fn argmax_cols(self) -> Var<'t> {
        self.record(|inner| inner.argmax_cols(self.index()))
    }

    /// The bin masses, summing to 1, of the normal distribution around each entry of this column; the entries
    /// are first clipped to the range of the bins. No gradient passes.
    ///
    /// # Panics
    /// If this is not a column.
    #[must_use]
    #[track_caller]
    pub fn normal_masses(self, bins: NormalBins) -> Var<'t> {
        self.record(|inner| inner.normal_masses(self.index(), bins))
    }

    /// The entry of each row in the column given by `columns` (one index per row), as a column.
    ///
    /// # Panics
    /// If a column does not exist, or the heights differ.
    #[must_use]
    #[track_caller]
    pub fn pick_cols(self, columns: Var<'t>) -> Var<'t> {
        let columns = self.tape.own(columns);
        self.record(|inner| inner.pick_cols(self.index(), columns))
    }

    /// `tau` where the entry is at least 0, `1 - tau` below; no gradient passes.
    #[must_use]
    pub fn expectile_weights(self, tau: f32) -> Var<'t> {
        self.record(|inner| inner.expectile_weights(self.index(), tau))
    }

    /// The asymmetric square `|tau - 1(x < 0)| * x^2`, entry by entry.
    #[must_use]
    pub fn expectile_loss(self, tau: f32) -> Var<'t> {
        self.expectile_weights(tau) * self.square()
    }

    /// The gradient of this scalar with respect to an earlier value, as a constant: for losses that contain
    /// one. Networks in between pass it on but collect no weight gradients.
    ///
    /// # Panics
    /// If this is not a scalar, precedes `x`, or the backward pass of the step has already run.
    #[must_use]
    #[track_caller]
    pub fn gradient_by(self, x: Var<'t>) -> Var<'t> {
        self.tape.gradient_by(self.index(), self.tape.own(x));
        let last = self.tape.inner.borrow().live - 1;
        Var::new(self.tape, last)
    }

    /// Computes the gradients of this scalar. Once per step: losses of several networks must be added first.
    ///
    /// # Panics
    /// If this is not a scalar, or a backward pass has already run since [`Tape::begin`].
    #[track_caller]
    pub fn backward(self) -> Gradients<'t> {
        self.tape.backward(self.index())
    }
}

/// Implements a binary operator for variables and numbers.
macro_rules! operator {
    ($trait:ident, $method:ident, |$x:ident, $c:ident| $right:expr, |$d:ident, $y:ident| $left:expr) => {
        impl<'t> $trait for Var<'t> {
            type Output = Var<'t>;
            #[track_caller]
            fn $method(self, other: Var<'t>) -> Var<'t> {
                self.binary(Binary::$trait, other)
            }
        }
        impl<'t> $trait<f32> for Var<'t> {
            type Output = Var<'t>;
            fn $method(self, $c: f32) -> Var<'t> {
                let $x = self;
                $right
            }
        }
        impl<'t> $trait<Var<'t>> for f32 {
            type Output = Var<'t>;
            fn $method(self, $y: Var<'t>) -> Var<'t> {
                let $d = self;
                $left
            }
        }
    };
}

operator!(Add, add, |x, c| x.unary(Unary::Shift(c)), |c, x| x.unary(Unary::Shift(c)));
operator!(Sub, sub, |x, c| x.unary(Unary::Shift(-c)), |c, x| (-x).unary(Unary::Shift(c)));
operator!(Mul, mul, |x, c| x.unary(Unary::Scale(c)), |c, x| x.unary(Unary::Scale(c)));
operator!(Div, div, |x, c| x.unary(Unary::Scale(1.0 / c)), |c, x| x.unary(Unary::Reciprocal(c)));

impl<'t> Neg for Var<'t> {
    type Output = Var<'t>;
    fn neg(self) -> Var<'t> {
        self.unary(Unary::Scale(-1.0))
    }
}
