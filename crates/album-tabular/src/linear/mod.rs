//! Linear systems `(I - T) x = b` and `(I - T)' x = b` where `T = gamma P_pi` is a discounted transition matrix.
//!
//! The first is policy evaluation, the second the discounted occupancy of a policy. Both are solved component
//! by component along the strongly connected components of `T`: in data most states are transient, so most
//! components are single states and the solve is one pass over the nonzeros. A component that is a plain
//! cycle is solved in closed form, a small one by Gaussian elimination, a large one by BiCGSTAB with a
//! contraction as its safety net.

mod components;
mod direct;
mod iterative;

pub(crate) use components::components;

use crate::sparse::Csr;
use direct::{solve_cycle, solve_dense};
use iterative::solve_iteratively;

/// Components up to this size are eliminated densely: 2/3 * 128^3 operations take about a millisecond.
const DENSE: usize = 128;

/// `T` with its components in an order in which each depends only on earlier ones.
#[derive(Debug)]
pub struct DiscountedSystem<'a> {
    t: &'a Csr,
    /// States grouped by component, sinks first.
    order: Vec<u32>,
    /// The start of each component in `order`.
    starts: Vec<usize>,
    component: Vec<u32>,
    /// The position of each state in `order`.
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
            // The contribution of components that are already solved.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::max_difference;
    use rand::RngExt;

    /// A random discounted matrix with `fan` successors per state, drawn from all states or only from later
    /// ones.
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
            check(&random(300, 3, gamma, true, 2)); // acyclic except for self-loops
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
        // A random walk on a long line: BiCGSTAB alone struggles with gamma near 1.
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
