//! Backward passes of the operations.

use super::{Binary, Op, Reduce, Unary, mean_and_inverse_deviation, mean_of, rows_of, rows_of_mut};
use crate::tape::{Inner, Node, accumulator};

impl Inner {
    /// Propagates the gradient of node `i` to its operands.
    pub(crate) fn backward_op(&mut self, i: usize) {
        let (nodes, rest) = self.nodes.split_at_mut(i);
        let node = &rest[0];
        match node.op {
            Op::Leaf | Op::Apply { .. } | Op::Parameter { .. } => {}
            Op::Unary(op, x) => unary(node, op, &mut nodes[x]),
            Op::Binary(op, a, b) => {
                binary(node, op, nodes, (a, b), true);
                binary(node, op, nodes, (b, a), false);
            }
            Op::Reduce(op, x) => reduce(node, op, &mut nodes[x]),
            Op::Slice { x, row, col } => slice(node, &mut nodes[x], (row, col)),
            Op::NormalizeRows { x, epsilon } => normalize_rows(node, &mut nodes[x], epsilon),
            Op::LogSoftmaxCols(x) => log_softmax_cols(node, &mut nodes[x]),
            Op::RepeatRows { x, times } => repeat_rows(node, &mut nodes[x], times),
            Op::Reshape(x) => add(accumulator(&mut nodes[x]).1, &node.grad),
            Op::PickCols { x, columns } => pick_cols(node, nodes, x, columns),
            Op::Concat { first, count, by_cols } => {
                concat(node, nodes, &self.parts[first..first + count], by_cols);
            }
        }
    }
}

fn add(to: &mut [f32], from: &[f32]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
}

fn unary(node: &Node, op: Unary, x: &mut Node) {
    let (x, grad) = accumulator(x);
    for i in 0..node.grad.len() {
        grad[i] += node.grad[i] * op.slope(x[i], node.value[i]);
    }
}

/// The gradient of the first or second operand.
fn binary(node: &Node, op: Binary, nodes: &mut [Node], (target, other): (usize, usize), first: bool) {
    if !nodes[target].needs_grad {
        return;
    }
    // Taken out while the target is changed; the two may be the same node.
    let other_value = (target != other).then(|| std::mem::take(&mut nodes[other].value));
    let other_shape = (nodes[other].rows, nodes[other].cols);
    let shape = (nodes[target].rows, nodes[target].cols);
    let at = |(rows, cols): (usize, usize), row: usize, col: usize| {
        (if rows == 1 { 0 } else { row }) * cols + if cols == 1 { 0 } else { col }
    };
    let (x, grad) = accumulator(&mut nodes[target]);
    let y = other_value.as_deref().unwrap_or(x);
    for row in 0..node.rows {
        for col in 0..node.cols {
            let (i, j) = (at(shape, row, col), at(other_shape, row, col));
            let slope = if first { op.slopes(x[i], y[j]).0 } else { op.slopes(y[j], x[i]).1 };
            grad[i] += node.grad[row * node.cols + col] * slope;
        }
    }
    if let Some(value) = other_value {
        nodes[other].value = value;
    }
}

fn reduce(node: &Node, op: Reduce, x: &mut Node) {
    let (cols, upstream) = (x.cols, &node.grad[..]);
    let (x, grad) = accumulator(x);
    match op {
        Reduce::Sum => grad.iter_mut().for_each(|g| *g += upstream[0]),
        Reduce::Mean => {
            let share = upstream[0] / x.len() as f32;
            grad.iter_mut().for_each(|g| *g += share);
        }
        Reduce::SumCols | Reduce::MeanCols => {
            let scale = if op == Reduce::SumCols { 1.0 } else { 1.0 / cols as f32 };
            for (grad, up) in grad.chunks_exact_mut(cols).zip(upstream) {
                grad.iter_mut().for_each(|g| *g += up * scale);
            }
        }
        Reduce::MinCols | Reduce::MaxCols => {
            for (row, up) in upstream.iter().enumerate() {
                let best = node.value[row];
                let range = row * cols..(row + 1) * cols;
                let ties = x[range.clone()].iter().filter(|&&x| x == best).count();
                for i in range {
                    if best.is_nan() {
                        grad[i] = f32::NAN;
                    } else if x[i] == best {
                        grad[i] += up / ties as f32;
                    }
                }
            }
        }
    }
}

fn slice(node: &Node, x: &mut Node, (row, col): (usize, usize)) {
    let width = x.cols;
    let (_, grad) = accumulator(x);
    for r in 0..node.rows {
        add(&mut grad[(row + r) * width + col..][..node.cols], &node.grad[r * node.cols..]);
    }
}

fn normalize_rows(node: &Node, x: &mut Node, epsilon: f32) {
    let cols = node.cols;
    let (x, grad) = accumulator(x);
    let normals = rows_of(&node.value, cols).zip(rows_of(&node.grad, cols));
    let operands = rows_of(x, cols).zip(rows_of_mut(grad, cols));
    for ((y, up), (x, grad)) in normals.zip(operands) {
        let (_, inverse) = mean_and_inverse_deviation(x, epsilon);
        let mean = mean_of(up.iter().map(|&up| f64::from(up)));
        let along = mean_of(up.iter().zip(y).map(|(&up, &y)| f64::from(up) * f64::from(y)));
        for (g, (&up, &y)) in grad.iter_mut().zip(up.iter().zip(y)) {
            *g += (inverse * (f64::from(up) - mean - f64::from(y) * along)) as f32;
        }
    }
}

fn log_softmax_cols(node: &Node, x: &mut Node) {
    let cols = node.cols;
    let (_, grad) = accumulator(x);
    let rows = rows_of(&node.value, cols).zip(rows_of(&node.grad, cols));
    for ((y, up), grad) in rows.zip(rows_of_mut(grad, cols)) {
        let total = up.iter().map(|&up| f64::from(up)).sum::<f64>() as f32;
        for (g, (&up, &y)) in grad.iter_mut().zip(up.iter().zip(y)) {
            *g += up - y.exp() * total;
        }
    }
}

fn repeat_rows(node: &Node, x: &mut Node, times: usize) {
    let cols = node.cols;
    let (_, grad) = accumulator(x);
    for (row, up) in rows_of(&node.grad, cols).enumerate() {
        add(&mut grad[row / times * cols..][..cols], up);
    }
}

fn pick_cols(node: &Node, nodes: &mut [Node], x: usize, columns: usize) {
    // Taken out while the operand is changed; the indices carry no gradient.
    let columns_value = std::mem::take(&mut nodes[columns].value);
    let cols = nodes[x].cols;
    let (_, grad) = accumulator(&mut nodes[x]);
    for (row, (up, &column)) in node.grad.iter().zip(columns_value.iter()).enumerate() {
        grad[row * cols + column as usize] += up;
    }
    nodes[columns].value = columns_value;
}

fn concat(node: &Node, nodes: &mut [Node], parts: &[u32], by_cols: bool) {
    let mut at = 0;
    for &part in parts {
        let part = &mut nodes[part as usize];
        let (rows, cols) = (part.rows, part.cols);
        if part.needs_grad {
            let (_, grad) = accumulator(part);
            let pitch = if by_cols { node.cols } else { cols };
            for row in 0..rows {
                add(&mut grad[row * cols..][..cols], &node.grad[at + row * pitch..][..cols]);
            }
        }
        at += if by_cols { cols } else { rows * cols };
    }
}
