//! Exact solution of small components.

use super::Side;
use crate::sparse::Csr;

/// `x_i = b_i + t_i x_next(i)` around one cycle.
pub(super) fn solve_cycle(t: &Csr, b: &[f64], side: Side) -> Vec<f64> {
    let n = t.rows();
    // The cycle from node 0 along the rows of T.
    let mut path = vec![(0, 0.0)];
    for k in 0..n {
        let from = path[k].0;
        if let Some((to, weight)) = t.row(from).next() {
            path[k].1 = weight;
            path.push((to, 0.0));
        }
    }
    path.truncate(n);
    let mut x = vec![0.0; n];
    match side {
        Side::Plain => {
            // x_0 = (b_0 + t_0 (b_1 + t_1 (...))) / (1 - t_0 t_1 ...), then backwards around the cycle.
            let (sum, product) =
                path.iter().rev().fold((0.0, 1.0), |(sum, product), &(i, w)| (b[i] + w * sum, product * w));
            x[0] = sum / (1.0 - product);
            let mut next = x[0];
            for &(i, w) in path[1..].iter().rev() {
                next = b[i] + w * next;
                x[i] = next;
            }
        }
        Side::Transposed => {
            // The same with the flow: x_next(i) = b_next(i) + t_i x_i.
            let (sum, product) =
                path.iter().fold((0.0, 1.0), |(sum, product), &(i, w)| ((b[i] + sum) * w, product * w));
            // One lap that starts with x_0 = b_0 + s returns with s = sum of the lap + product * s.
            let s = sum / (1.0 - product);
            let mut inflow = s;
            for &(i, w) in &path {
                x[i] = b[i] + inflow;
                inflow = w * x[i];
            }
        }
    }
    x
}

/// Gaussian elimination. `I - T` is diagonally dominant by rows (its transpose by columns), so no pivoting is
/// needed.
pub(super) fn solve_dense(t: &Csr, mut b: Vec<f64>, side: Side) -> Vec<f64> {
    let n = t.rows();
    let mut a = vec![0.0; n * n];
    for i in 0..n {
        a[i * n + i] += 1.0;
        for (j, value) in t.row(i) {
            let (row, column) = if side == Side::Plain { (i, j) } else { (j, i) };
            a[row * n + column] -= value;
        }
    }
    for k in 0..n {
        let (upper, lower) = a.split_at_mut((k + 1) * n);
        let pivot = &upper[k * n..];
        for i in k + 1..n {
            let row = &mut lower[(i - k - 1) * n..(i - k) * n];
            let factor = row[k] / pivot[k];
            if factor != 0.0 {
                for j in k + 1..n {
                    row[j] -= factor * pivot[j];
                }
                b[i] -= factor * b[k];
            }
        }
    }
    for k in (0..n).rev() {
        let sum: f64 = (k + 1..n).map(|j| a[k * n + j] * b[j]).sum();
        b[k] = (b[k] - sum) / a[k * n + k];
    }
    b
}
