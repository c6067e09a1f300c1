//! Linear systems `(I - T) x = b` and `(I - T)' x = b` where `T = gamma P_pi` is a discounted transition matrix.
//!
//! The first is policy evaluation, the second the discounted occupancy of a policy. Both are solved component by
//! component along the strongly connected components of `T`: in data most states are visited on the way somewhere, so
//! most components are single states and the solve is one pass over the nonzeros. A component that is a plain cycle is
//! solved in closed form, a small one by Gaussian elimination, a large one by BiCGSTAB with a contraction as its
//! safety net.

use crate::sparse::Csr;

/// Components up to this size are eliminated densely: 2/3 * 128^3 operations are about a millisecond.
const DENSE: usize = 128;

/// `T` with its components in an order in which each depends only on earlier ones.
pub struct DiscountedSystem<'a> {
    t: &'a Csr,
    /// States grouped by component, sinks first.
    order: Vec<u32>,
    /// Where each component starts in `order`.
    starts: Vec<usize>,
    component: Vec<u32>,
    /// Where each state stands in `order`.
    position: Vec<u32>,
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Plain,
    Transposed,
}

impl<'a> DiscountedSystem<'a> {
    /// Analyses `t`, a square nonnegative matrix whose rows add up to at most gamma < 1.
    pub fn new(t: &'a Csr) -> Self {
        let (order, starts) = components(t);
        let mut component = vec![0; t.rows()];
        let mut position = vec![0; t.rows()];
        for c in 0..starts.len() - 1 {
            for place in starts[c]..starts[c + 1] {
                component[order[place] as usize] = c as u32;
                position[order[place] as usize] = place as u32;
            }
        }
        DiscountedSystem { t, order, starts, component, position }
    }

    /// Solves `(I - T) x = b`.
    pub fn solve(&self, b: &[f64]) -> Vec<f64> {
        let mut x = vec![0.0; b.len()];
        for c in 0..self.starts.len() - 1 {
            let members = &self.order[self.starts[c]..self.starts[c + 1]];
            // What flows in from components that are solved already.
            let rhs: Vec<f64> = members
                .iter()
                .map(|&i| b[i as usize] + self.row_outside(i as usize, c).map(|(j, t)| t * x[j]).sum::<f64>())
                .collect();
            self.solve_component(c, members, rhs, Side::Plain, &mut x);
        }
        x
    }

    /// Solves `(I - T)' x = b`.
    pub fn solve_transposed(&self, b: &[f64]) -> Vec<f64> {
        let mut x = vec![0.0; b.len()];
        let mut inflow = b.to_vec();
        for c in (0..self.starts.len() - 1).rev() {
            let members = &self.order[self.starts[c]..self.starts[c + 1]];
            let rhs = members.iter().map(|&i| inflow[i as usize]).collect();
            self.solve_component(c, members, rhs, Side::Transposed, &mut x);
            for &i in members {
                for (j, t) in self.row_outside(i as usize, c) {
                    inflow[j] += t * x[i as usize];
                }
            }
        }
        x
    }

    /// Entries of row `i` that lead out of component `c`.
    fn row_outside(&self, i: usize, c: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        self.t.row(i).filter(move |&(j, _)| self.component[j] as usize != c)
    }

    fn solve_component(&self, c: usize, members: &[u32], rhs: Vec<f64>, side: Side, x: &mut [f64]) {
        if let [i] = *members {
            let i = i as usize;
            let stay: f64 = self.t.row(i).filter(|&(j, _)| j == i).map(|(_, t)| t).sum();
            x[i] = rhs[0] / (1.0 - stay);
            return;
        }
        let mut local = Csr::new(members.len());
        for &i in members {
            for (j, t) in self.t.row(i as usize).filter(|&(j, _)| self.component[j] as usize == c) {
                local.push(self.position[j] as usize - self.starts[c], t);
            }
            local.end_row();
        }
        let solution = if (0..local.rows()).all(|i| local.row(i).len() == 1) {
            solve_cycle(&local, &rhs, side)
        } else if local.rows() <= DENSE {
            solve_dense(&local, rhs, side)
        } else {
            solve_iteratively(&local, &rhs, side)
        };
        for (&i, value) in members.iter().zip(solution) {
            x[i as usize] = value;
        }
    }
}

/// `x_i = b_i + t_i x_next(i)` around one cycle.
fn solve_cycle(t: &Csr, b: &[f64], side: Side) -> Vec<f64> {
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
            // One lap that starts with x_0 = b_0 + s and comes back with s = sum of the lap + product * s.
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

/// Gaussian elimination. `I - T` is diagonally dominant by rows (its transpose by columns), so pivots need no search.
fn solve_dense(t: &Csr, mut b: Vec<f64>, side: Side) -> Vec<f64> {
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

/// BiCGSTAB restarted on the true residual; where it stalls, the contraction `x <- b + T x` goes on.
fn solve_iteratively(t: &Csr, b: &[f64], side: Side) -> Vec<f64> {
    let product = |x: &[f64]| if side == Side::Plain { t.multiply(x) } else { t.multiply_transposed(x) };
    let residual = |x: &[f64]| -> Vec<f64> {
        let tx = product(x);
        (0..b.len()).map(|i| b[i] - (x[i] - tx[i])).collect()
    };
    let size = |r: &[f64]| r.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    // The residual cannot be computed more exactly than this.
    let enough = |x: &[f64]| 4.0 * f64::EPSILON * (size(b) + 2.0 * size(x));
    let mut x = b.to_vec();
    let mut r = residual(&x);
    for _ in 0..20 {
        let correction = bicgstab(&product, &r);
        let candidate: Vec<f64> = x.iter().zip(&correction).map(|(x, c)| x + c).collect();
        let after = residual(&candidate);
        if !(size(&after) < size(&r)) {
            break;
        }
        (x, r) = (candidate, after);
        if size(&r) <= enough(&x) {
            return x;
        }
    }
    loop {
        let next: Vec<f64> = x.iter().zip(&r).map(|(x, r)| x + r).collect();
        let after = residual(&next);
        if size(&after) <= enough(&next) || !(size(&after) < size(&r)) {
            return next;
        }
        (x, r) = (next, after);
    }
}

/// A few hundred steps of BiCGSTAB on `(I - T) x = b` from 0.
fn bicgstab(product: &dyn Fn(&[f64]) -> Vec<f64>, b: &[f64]) -> Vec<f64> {
    let n = b.len();
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let apply = |x: &[f64]| -> Vec<f64> {
        let tx = product(x);
        (0..n).map(|i| x[i] - tx[i]).collect()
    };
    let mut x = vec![0.0; n];
    let mut r = b.to_vec();
    let shadow = r.clone();
    let mut p = r.clone();
    let mut rho = dot(&shadow, &r);
    let target = 1e-15 * dot(b, b).sqrt();
    for _ in 0..400 {
        let v = apply(&p);
        let alpha = rho / dot(&shadow, &v);
        let s: Vec<f64> = (0..n).map(|i| r[i] - alpha * v[i]).collect();
        let t = apply(&s);
        let omega = dot(&t, &s) / dot(&t, &t);
        if !alpha.is_finite() || !omega.is_finite() {
            break; // Breakdown: keep what there is.
        }
        for i in 0..n {
            x[i] += alpha * p[i] + omega * s[i];
            r[i] = s[i] - omega * t[i];
        }
        let next = dot(&shadow, &r);
        if dot(&r, &r).sqrt() <= target || next == 0.0 {
            break;
        }
        let beta = next / rho * (alpha / omega);
        rho = next;
        for i in 0..n {
            p[i] = r[i] + beta * (p[i] - omega * v[i]);
        }
    }
    x
}

/// Strongly connected components of the pattern of `t` (Tarjan, without recursion): states grouped by component,
/// each component after the ones it leads to.
pub(crate) fn components(t: &Csr) -> (Vec<u32>, Vec<usize>) {
    const NEW: u32 = u32::MAX;
    let n = t.rows();
    let mut index = vec![NEW; n];
    let mut low = vec![0u32; n];
    let mut on_stack = vec![false; n];
    let mut stack: Vec<u32> = Vec::new();
    let mut calls: Vec<(u32, usize)> = Vec::new();
    let mut order = Vec::with_capacity(n);
    let mut starts = vec![0];
    let mut counter = 0;
    for root in 0..n {
        if index[root] != NEW {
            continue;
        }
        calls.push((root as u32, 0));
        while let Some(&(i, edge)) = calls.last() {
            let u = i as usize;
            if edge == 0 {
                index[u] = counter;
                low[u] = counter;
                counter += 1;
                stack.push(i);
                on_stack[u] = true;
            }
            let child = t.row(u).skip(edge).map(|(j, _)| j).enumerate().find(|&(_, j)| {
                if index[j] == NEW {
                    return true;
                }
                if on_stack[j] {
                    low[u] = low[u].min(index[j]);
                }
                false
            });
            if let Some((skipped, j)) = child {
                if let Some(call) = calls.last_mut() {
                    call.1 = edge + skipped + 1;
                }
                calls.push((j as u32, 0));
                continue;
            }
            calls.pop();
            if let Some(&(parent, _)) = calls.last() {
                low[parent as usize] = low[parent as usize].min(low[u]);
            }
            if low[u] == index[u] {
                while let Some(j) = stack.pop() {
                    on_stack[j as usize] = false;
                    order.push(j);
                    if j == i {
                        break;
                    }
                }
                starts.push(order.len());
            }
        }
    }
    (order, starts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::max_difference;
    use rand::RngExt;

    /// A random discounted matrix; `fan` successors per state drawn from the whole or from states after it.
    fn random(n: usize, fan: usize, gamma: f64, forward: bool, seed: u64) -> Csr {
        let mut rng = album_base::rng::stream(seed, "test");
        let mut t = Csr::new(n);
        let mut row = crate::sparse::RowBuilder::new(n);
        for i in 0..n {
            for _ in 0..fan {
                let j = if forward { i + rng.random_range(0..n - i) } else { rng.random_range(0..n) };
                row.add(j, gamma / fan as f64);
            }
            row.finish(&mut t);
        }
        t
    }

    fn check(t: &Csr) {
        let n = t.rows();
        let mut rng = album_base::rng::stream(n as u64, "rhs");
        let b: Vec<f64> = (0..n).map(|_| rng.random_range(-1.0..1.0)).collect();
        let system = DiscountedSystem::new(t);
        let x = system.solve(&b);
        let tx = t.multiply(&x);
        let scale = x.iter().fold(1.0f64, |m, x| m.max(x.abs()));
        let residual: Vec<f64> = (0..n).map(|i| x[i] - tx[i]).collect();
        assert!(max_difference(&residual, &b) <= 1e-13 * scale, "plain {}", max_difference(&residual, &b));
        let x = system.solve_transposed(&b);
        let tx = t.multiply_transposed(&x);
        let scale = x.iter().fold(1.0f64, |m, x| m.max(x.abs()));
        let residual: Vec<f64> = (0..n).map(|i| x[i] - tx[i]).collect();
        assert!(
            max_difference(&residual, &b) <= 1e-13 * scale,
            "transposed {}",
            max_difference(&residual, &b)
        );
    }

    #[test]
    fn residuals_vanish_for_every_kind_of_component() {
        for gamma in [0.0, 0.5, 0.95, 0.995, 0.9999] {
            check(&random(300, 1, gamma, false, 1)); // cycles with trees hanging off them
            check(&random(300, 3, gamma, true, 2)); // acyclic but for self-loops
            check(&random(60, 3, gamma, false, 3)); // one dense component
            check(&random(1000, 3, gamma, false, 4)); // one large component
        }
    }

    #[test]
    fn a_single_cycle_is_solved_in_closed_form() {
        let n = 501;
        let mut t = Csr::new(n);
        for i in 0..n {
            t.push((i + 2) % n, 0.999);
            t.end_row();
        }
        check(&t);
        let (order, starts) = components(&t);
        assert_eq!((order.len(), starts), (n, vec![0, n]));
    }

    #[test]
    fn slowly_mixing_chains_converge_too() {
        // A long line walked left or right: BiCGSTAB alone has a hard time at gamma near 1.
        let n = 2000;
        let mut t = Csr::new(n);
        for i in 0..n {
            t.push(i.saturating_sub(1), 0.4999);
            t.push((i + 1).min(n - 1), 0.4999);
            t.end_row();
        }
        check(&t);
    }

    #[test]
    fn components_come_after_the_ones_they_lead_to() {
        let t = random(500, 2, 0.9, false, 9);
        let (order, starts) = components(&t);
        let mut component = vec![0; 500];
        for c in 0..starts.len() - 1 {
            for &i in &order[starts[c]..starts[c + 1]] {
                component[i as usize] = c;
            }
        }
        for i in 0..500 {
            assert!(t.row(i).all(|(j, _)| component[j] <= component[i]));
        }
        let mut seen = order.clone();
        seen.sort_unstable();
        assert_eq!(seen, (0..500).collect::<Vec<u32>>());
    }
}
