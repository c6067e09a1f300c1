//! Operations on batch-sized matrices: values and derivatives.
//!
//! These act on the outputs of networks, a few columns wide, so they are plain loops.

mod backward;

use crate::recording::Origin;
use crate::tape::{Inner, Node};

/// How a node was computed; operands are indices of earlier nodes.
#[derive(Clone, Copy, Default)]
pub(crate) enum Op {
    /// Given from outside, or detached from its operands.
    #[default]
    Leaf,
    Unary(Unary, usize),
    Binary(Binary, usize, usize),
    Reduce(Reduce, usize),
    /// Operands are `parts[first..first + count]`.
    Concat {
        first: usize,
        count: usize,
        by_cols: bool,
    },
    /// The part of the operand starting at this row and column.
    Slice {
        x: usize,
        row: usize,
        col: usize,
    },
    /// Each row of the operand, normalised to mean 0 and variance 1.
    NormalizeRows {
        x: usize,
        epsilon: f32,
    },
    LogSoftmaxCols(usize),
    /// Each row of the operand repeated this many times.
    RepeatRows {
        x: usize,
        times: usize,
    },
    /// The same entries in another shape.
    Reshape(usize),
    /// The entry of each row of `x` in the column given by `columns`.
    PickCols {
        x: usize,
        columns: usize,
    },
    /// A trained matrix; handled by the tape.
    Parameter {
        net: u64,
    },
    /// A network; handled by the tape.
    Apply {
        x: usize,
        application: usize,
        collect: bool,
    },
}

/// An elementwise function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unary {
    /// Multiplication by a constant.
    Scale(f32),
    /// Addition of a constant.
    Shift(f32),
    /// A constant divided by the entry.
    Reciprocal(f32),
    /// `max(x, 0)`.
    Relu,
    /// `|x|`.
    Abs,
    /// `x^2`.
    Square,
    /// `sqrt(x)`.
    Sqrt,
    /// `e^x`.
    Exp,
    /// The natural logarithm.
    Ln,
    /// The hyperbolic tangent.
    Tanh,
    /// `1 / (1 + e^-x)`.
    Sigmoid,
    /// `ln(1 + e^x)`.
    Softplus,
    /// `x * tanh(ln(1 + e^x))`.
    Mish,
    /// The sine.
    Sin,
    /// The cosine.
    Cos,
    /// Clipping to a range.
    Clip(f32, f32),
}

impl Unary {
    fn value(self, x: f32) -> f32 {
        match self {
            Unary::Scale(c) => c * x,
            Unary::Shift(c) => x + c,
            Unary::Reciprocal(c) => c / x,
            // Written so that NaN propagates.
            Unary::Relu => {
                if x < 0.0 {
                    0.0
                } else {
                    x
                }
            }
            Unary::Abs => x.abs(),
            Unary::Square => x * x,
            Unary::Sqrt => x.sqrt(),
            Unary::Exp => x.exp(),
            Unary::Ln => x.ln(),
            Unary::Tanh => x.tanh(),
            Unary::Sigmoid => sigmoid(x),
            // NaN, which `max` would hide, propagates through the second term.
            Unary::Softplus => x.max(0.0) + (-x.abs()).exp().ln_1p(),
            Unary::Mish => x * tanh_softplus(x).0,
            Unary::Sin => x.sin(),
            Unary::Cos => x.cos(),
            Unary::Clip(low, high) => x.clamp(low, high),
        }
    }

    /// The derivative at `x`, where the value is `y`. NaN if `x` is NaN: a corrupted row must not pass for
    /// one without gradient.
    fn slope(self, x: f32, y: f32) -> f32 {
        if x.is_nan() {
            return x;
        }
        match self {
            Unary::Scale(c) => c,
            Unary::Shift(_) => 1.0,
            Unary::Reciprocal(_) => -y / x,
            Unary::Relu => f32::from(x > 0.0),
            Unary::Abs => {
                if x == 0.0 {
                    0.0
                } else {
                    x.signum()
                }
            }
            Unary::Square => 2.0 * x,
            Unary::Sqrt => 0.5 / y,
            Unary::Exp => y,
            Unary::Ln => 1.0 / x,
            Unary::Tanh => 1.0 - y * y,
            Unary::Sigmoid => y * (1.0 - y),
            Unary::Softplus => sigmoid(x),
            Unary::Mish => {
                let (t, rest) = tanh_softplus(x);
                t + x * rest * (1.0 + t) * sigmoid(x)
            }
            Unary::Sin => x.cos(),
            Unary::Cos => -x.sin(),
            Unary::Clip(low, high) => f32::from(low <= x && x <= high),
        }
    }
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// `t = tanh(ln(1 + e^x))` and `1 - t`, without cancellation or overflow.
fn tanh_softplus(x: f32) -> (f32, f32) {
    // With u = e^x, t = (u^2 + 2u) / (u^2 + 2u + 2); for positive x both sides are divided by u^2.
    let e = (-x.abs()).exp();
    let (above, rest) = if x > 0.0 { (1.0 + 2.0 * e, 2.0 * e * e) } else { (e * (e + 2.0), 2.0) };
    (above / (above + rest), rest / (above + rest))
}

/// An elementwise function of two operands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Binary {
    /// The sum.
    Add,
    /// The difference.
    Sub,
    /// The product.
    Mul,
    /// The quotient.
    Div,
    /// The minimum.
    Min,
    /// The maximum.
    Max,
}

impl Binary {
    fn value(self, a: f32, b: f32) -> f32 {
        match self {
            Binary::Add => a + b,
            Binary::Sub => a - b,
            Binary::Mul => a * b,
            Binary::Div => a / b,
            // NaN in either operand must propagate.
            Binary::Min => {
                if a < b || a.is_nan() {
                    a
                } else {
                    b
                }
            }
            Binary::Max => {
                if a > b || a.is_nan() {
                    a
                } else {
                    b
                }
            }
        }
    }

    /// The derivatives with respect to `a` and `b`. In a tie for the minimum or maximum, each gets half.
    fn slopes(self, a: f32, b: f32) -> (f32, f32) {
        match self {
            Binary::Min | Binary::Max if a.is_nan() || b.is_nan() => (f32::NAN, f32::NAN),
            Binary::Add => (1.0, 1.0),
            Binary::Sub => (1.0, -1.0),
            Binary::Mul => (b, a),
            Binary::Div => (1.0 / b, -a / (b * b)),
            Binary::Min | Binary::Max if a == b => (0.5, 0.5),
            Binary::Min => (f32::from(a < b), f32::from(b < a)),
            Binary::Max => (f32::from(a > b), f32::from(b > a)),
        }
    }
}

/// A reduction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reduce {
    /// The sum of all entries.
    Sum,
    /// The mean of all entries.
    Mean,
    /// The sum of each row.
    SumCols,
    /// The mean of each row.
    MeanCols,
    /// The minimum of each row.
    MinCols,
    /// The maximum of each row.
    MaxCols,
}

/// Bins of equal width for discretised normal distributions
/// ([`Var::normal_masses`](crate::Var::normal_masses)).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NormalBins {
    /// Lower end of the first bin.
    pub low: f64,
    /// Upper end of the last bin.
    pub high: f64,
    /// Number of bins.
    pub count: usize,
    /// The standard deviation.
    pub sigma: f64,
}

impl NormalBins {
    /// The lower edge of bin `i`.
    pub fn edge(&self, i: usize) -> f64 {
        self.low + i as f64 * ((self.high - self.low) / self.count as f64)
    }

    /// The bin masses of the distribution around `x`, which is first clipped to the range; they sum to 1.
    fn masses(&self, x: f32, masses: &mut [f32]) {
        let x = f64::from(x).clamp(self.low, self.high);
        let below = |i: usize| 0.5 * libm::erfc((x - self.edge(i)) / (self.sigma * std::f64::consts::SQRT_2));
        let whole = below(self.count) - below(0);
        for (i, mass) in masses.iter_mut().enumerate() {
            *mass = ((below(i + 1) - below(i)) / whole) as f32;
        }
    }
}

/// Index of entry `(row, col)` in an operand whose single row or column is broadcast.
fn broadcast(node: &Node, row: usize, col: usize) -> usize {
    let row = if node.rows == 1 { 0 } else { row };
    let col = if node.cols == 1 { 0 } else { col };
    row * node.cols + col
}

impl Inner {
    pub(crate) fn unary(&mut self, op: Unary, x: usize) {
        let Node { rows, cols, needs_grad, .. } = self.nodes[x];
        let Some((nodes, node)) = self.derive(rows, cols, Op::Unary(op, x), needs_grad, &[x]) else { return };
        for (y, &x) in node.value.iter_mut().zip(nodes[x].value.iter()) {
            *y = op.value(x);
        }
    }

    pub(crate) fn detach(&mut self, x: usize) {
        let Node { rows, cols, .. } = self.nodes[x];
        if let Some((nodes, node)) = self.derive(rows, cols, Op::Leaf, false, &[x]) {
            node.value.copy_from_slice(&nodes[x].value);
        }
        self.note(|| Origin::Detached(x));
    }

    pub(crate) fn ge(&mut self, x: usize, threshold: f32) {
        let Node { rows, cols, .. } = self.nodes[x];
        if let Some((nodes, node)) = self.derive(rows, cols, Op::Leaf, false, &[x]) {
            for (y, &x) in node.value.iter_mut().zip(nodes[x].value.iter()) {
                *y = f32::from(x >= threshold);
            }
        }
        self.note(|| Origin::Ge(x, threshold));
    }

    /// The index of the largest entry of each row, the first of equals.
    #[track_caller]
    pub(crate) fn argmax_cols(&mut self, x: usize) {
        let Node { rows, cols, .. } = self.nodes[x];
        assert!(cols > 0, "a row without entries has no largest one");
        if let Some((nodes, node)) = self.derive(rows, 1, Op::Leaf, false, &[x]) {
            for (y, row) in node.value.iter_mut().zip(rows_of(&nodes[x].value, cols)) {
                let largest = (0..cols).max_by(|&i, &j| row[i].total_cmp(&row[j]).then(j.cmp(&i)));
                *y = largest.unwrap_or(0) as f32;
            }
        }
        self.note(|| Origin::ArgmaxCols(x));
    }

    /// The bin masses of normal distributions around the entries of a column.
    #[track_caller]
    pub(crate) fn normal_masses(&mut self, x: usize, bins: NormalBins) {
        let Node { rows, cols, .. } = self.nodes[x];
        assert!(cols == 1, "a distribution around each entry of a column, not of {rows} x {cols}");
        if let Some((nodes, node)) = self.derive(rows, bins.count, Op::Leaf, false, &[x]) {
            for (&x, masses) in nodes[x].value.iter().zip(rows_of_mut(&mut node.value, bins.count)) {
                bins.masses(x, masses);
            }
        }
        self.note(|| Origin::NormalMasses(x, bins));
    }

    #[track_caller]
    pub(crate) fn pick_cols(&mut self, x: usize, columns: usize) {
        let Node { rows, cols, needs_grad, .. } = self.nodes[x];
        let index = &self.nodes[columns];
        assert!(
            (index.rows, index.cols) == (rows, 1),
            "a column for each of {rows} rows, not {} x {}",
            index.rows,
            index.cols
        );
        let op = Op::PickCols { x, columns };
        let Some((nodes, node)) = self.derive(rows, 1, op, needs_grad, &[x, columns]) else { return };
        for (row, (y, &column)) in node.value.iter_mut().zip(nodes[columns].value.iter()).enumerate() {
            assert!((0.0..cols as f32).contains(&column), "there is no column {column} of {cols}");
            *y = nodes[x].value[row * cols + column as usize];
        }
    }

    /// Expectile weights `tau` of the residuals `x`; they carry no gradient.
    pub(crate) fn expectile_weights(&mut self, x: usize, tau: f32) {
        let Node { rows, cols, .. } = self.nodes[x];
        if let Some((nodes, node)) = self.derive(rows, cols, Op::Leaf, false, &[x]) {
            for (w, &x) in node.value.iter_mut().zip(nodes[x].value.iter()) {
                *w = if x < 0.0 { 1.0 - tau } else { tau };
            }
        }
        self.note(|| Origin::ExpectileWeights(x, tau));
    }

    #[track_caller]
    pub(crate) fn binary(&mut self, op: Binary, a: usize, b: usize) {
        let (left, right) = (&self.nodes[a], &self.nodes[b]);
        let fit = |x, y| x == y || x == 1 || y == 1;
        assert!(
            fit(left.rows, right.rows) && fit(left.cols, right.cols),
            "cannot combine {} x {} with {} x {}",
            left.rows,
            left.cols,
            right.rows,
            right.cols
        );
        // Not `max`: one row broadcast against zero rows gives zero rows.
        let wider = |x, y| if x == 1 { y } else { x };
        let (rows, cols) = (wider(left.rows, right.rows), wider(left.cols, right.cols));
        let needs_grad = left.needs_grad || right.needs_grad;
        let derived = self.derive(rows, cols, Op::Binary(op, a, b), needs_grad, &[a, b]);
        let Some((nodes, node)) = derived else { return };
        let (a, b) = (&nodes[a], &nodes[b]);
        for row in 0..rows {
            for col in 0..cols {
                node.value[row * cols + col] =
                    op.value(a.value[broadcast(a, row, col)], b.value[broadcast(b, row, col)]);
            }
        }
    }

    #[track_caller]
    pub(crate) fn reduce(&mut self, op: Reduce, x: usize) {
        let Node { rows, cols, needs_grad, .. } = self.nodes[x];
        let whole = matches!(op, Reduce::Sum | Reduce::Mean);
        assert!(rows * cols > 0 || op == Reduce::Sum, "an empty {rows} x {cols} matrix has no {}", op.name());
        let height = if whole { 1 } else { rows };
        let Some((nodes, node)) = self.derive(height, 1, Op::Reduce(op, x), needs_grad, &[x]) else { return };
        let x = &nodes[x].value;
        // Sums in f64: the order hardly matters, and large batches lose no precision.
        let sum = |x: &[f32]| x.iter().map(|&x| f64::from(x)).sum::<f64>();
        let mean = |x: &[f32]| sum(x) / x.len() as f64;
        let out = &mut node.value;
        match op {
            Reduce::Sum => out[0] = sum(x) as f32,
            Reduce::Mean => out[0] = mean(x) as f32,
            Reduce::SumCols => each_row(x, cols, out, |row| sum(row) as f32),
            Reduce::MeanCols => each_row(x, cols, out, |row| mean(row) as f32),
            Reduce::MinCols => each_row(x, cols, out, |row| fold(row, Binary::Min)),
            Reduce::MaxCols => each_row(x, cols, out, |row| fold(row, Binary::Max)),
        }
    }

    #[track_caller]
    pub(crate) fn slice(&mut self, x: usize, from: (usize, usize), to: (usize, usize)) {
        let Node { rows: height, cols: width, needs_grad, .. } = self.nodes[x];
        assert!(
            from.0 <= to.0 && to.0 <= height && from.1 <= to.1 && to.1 <= width,
            "rows {}..{} and columns {}..{} are not inside {height} x {width}",
            from.0,
            to.0,
            from.1,
            to.1
        );
        let (rows, cols) = (to.0 - from.0, to.1 - from.1);
        let op = Op::Slice { x, row: from.0, col: from.1 };
        let Some((nodes, node)) = self.derive(rows, cols, op, needs_grad, &[x]) else { return };
        for row in 0..rows {
            let source = &nodes[x].value[(from.0 + row) * width + from.1..][..cols];
            node.value[row * cols..][..cols].copy_from_slice(source);
        }
    }

    pub(crate) fn normalize_rows(&mut self, x: usize, epsilon: f32) {
        let Node { rows, cols, needs_grad, .. } = self.nodes[x];
        let op = Op::NormalizeRows { x, epsilon };
        let Some((nodes, node)) = self.derive(rows, cols, op, needs_grad, &[x]) else { return };
        for (y, x) in rows_of_mut(&mut node.value, cols).zip(rows_of(&nodes[x].value, cols)) {
            let (mean, inverse) = mean_and_inverse_deviation(x, epsilon);
            y.iter_mut().zip(x).for_each(|(y, &x)| *y = ((f64::from(x) - mean) * inverse) as f32);
        }
    }

    pub(crate) fn log_softmax_cols(&mut self, x: usize) {
        let Node { rows, cols, needs_grad, .. } = self.nodes[x];
        let Some((nodes, node)) = self.derive(rows, cols, Op::LogSoftmaxCols(x), needs_grad, &[x]) else {
            return;
        };
        for (y, x) in rows_of_mut(&mut node.value, cols).zip(rows_of(&nodes[x].value, cols)) {
            // Relative to the largest, so that no exponential overflows.
            let largest = f64::from(fold(x, Binary::Max));
            let log_sum = x.iter().map(|&x| (f64::from(x) - largest).exp()).sum::<f64>().ln();
            y.iter_mut().zip(x).for_each(|(y, &x)| *y = (f64::from(x) - largest - log_sum) as f32);
        }
    }

    pub(crate) fn repeat_rows(&mut self, x: usize, times: usize) {
        let Node { rows, cols, needs_grad, .. } = self.nodes[x];
        let op = Op::RepeatRows { x, times };
        let Some((nodes, node)) = self.derive(rows * times, cols, op, needs_grad, &[x]) else { return };
        for (row, copy) in rows_of_mut(&mut node.value, cols).enumerate() {
            copy.copy_from_slice(&nodes[x].value[row / times * cols..][..cols]);
        }
    }

    #[track_caller]
    pub(crate) fn reshape(&mut self, x: usize, rows: usize, cols: usize) {
        let Node { rows: height, cols: width, needs_grad, .. } = self.nodes[x];
        assert_eq!(rows * cols, height * width, "{height} x {width} entries cannot fill {rows} x {cols}");
        let Some((nodes, node)) = self.derive(rows, cols, Op::Reshape(x), needs_grad, &[x]) else { return };
        node.value.copy_from_slice(&nodes[x].value);
    }

    /// Joins the nodes in `parts[first..]`.
    #[track_caller]
    pub(crate) fn concat(&mut self, first: usize, by_cols: bool) {
        let count = self.parts.len() - first;
        assert!(count > 0, "nothing to concatenate");
        let (mut rows, mut cols, mut needs_grad, mut known) = (0, 0, false, true);
        for (i, &part) in self.parts[first..].iter().enumerate() {
            let node = &self.nodes[part as usize];
            needs_grad |= node.needs_grad;
            known &= node.known;
            if by_cols {
                assert!(i == 0 || node.rows == rows, "cannot put {} rows beside {rows}", node.rows);
                (rows, cols) = (node.rows, cols + node.cols);
            } else {
                assert!(i == 0 || node.cols == cols, "cannot put {} columns below {cols}", node.cols);
                (rows, cols) = (rows + node.rows, node.cols);
            }
        }
        let op = Op::Concat { first, count, by_cols };
        if !known {
            return self.push_unknown(rows, cols, op, needs_grad);
        }
        let parts = std::mem::take(&mut self.parts);
        let (nodes, node) = self.push(rows, cols, op, needs_grad);
        let mut at = 0;
        for &part in &parts[first..] {
            let part = &nodes[part as usize];
            let pitch = if by_cols { cols } else { part.cols };
            for row in 0..part.rows {
                let source = &part.value[row * part.cols..][..part.cols];
                node.value[at + row * pitch..][..part.cols].copy_from_slice(source);
            }
            at += if by_cols { part.cols } else { part.value.len() };
        }
        self.parts = parts;
    }
}

impl Reduce {
    fn name(self) -> &'static str {
        match self {
            Reduce::Sum | Reduce::SumCols => "sum",
            Reduce::Mean | Reduce::MeanCols => "mean",
            Reduce::MinCols => "minimum",
            Reduce::MaxCols => "maximum",
        }
    }
}

fn each_row(x: &[f32], cols: usize, out: &mut [f32], f: impl Fn(&[f32]) -> f32) {
    for (row, out) in x.chunks_exact(cols).zip(out) {
        *out = f(row);
    }
}

fn fold(row: &[f32], op: Binary) -> f32 {
    row[1..].iter().fold(row[0], |best, &x| op.value(best, x))
}

/// The rows of a matrix; none if there are no columns.
fn rows_of(x: &[f32], cols: usize) -> impl Iterator<Item = &[f32]> {
    x.chunks_exact(cols.max(1))
}

fn rows_of_mut(x: &mut [f32], cols: usize) -> impl Iterator<Item = &mut [f32]> {
    x.chunks_exact_mut(cols.max(1))
}

fn mean_of(x: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = x.len() as f64;
    x.sum::<f64>() / count
}

/// The mean of a row and `1 / sqrt(variance + epsilon)`, with the population variance.
fn mean_and_inverse_deviation(row: &[f32], epsilon: f32) -> (f64, f64) {
    let mean = mean_of(row.iter().map(|&x| f64::from(x)));
    let variance = mean_of(row.iter().map(|&x| (f64::from(x) - mean).powi(2)));
    (mean, 1.0 / (variance + f64::from(epsilon)).sqrt())
}
