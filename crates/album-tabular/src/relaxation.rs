//! The hinge relaxation of the program:
//!
//! ```text
//! L(Q,V) = <c_Q,Q> + <c_V,V> + lambda_B |w [g_B]+| + lambda_E |w [g_E]+| + lambda_K (|w [g_KQ]+| + |w [g_KV]+|)
//! ```
//!
//! with norms that add up over pairs. The pair weights `w` are 1 in the relaxed program of the theory, and the sampling
//! frequency `d_D` in ALBUM's critic loss. The *detached* update treats `y_K` as a constant, as ALBUM does.

use crate::lp::LinearProgram;
use crate::{Coefficients, EmpiricalMdp, Mdp, Rollout, Weights};

/// `[x]+` and its derivative, 0 at 0: the one place where a hinge is defined.
#[inline]
pub fn hinge(x: f64) -> (f64, f64) {
    if x > 0.0 { (x, 1.0) } else { (0.0, 0.0) }
}

/// Whether the rollout target carries a gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gradient {
    /// The subgradient of the loss.
    Plain,
    /// `y_K` is a constant in each update.
    Detached,
}

/// The relaxed program over a tabular MDP.
#[derive(Clone, Debug)]
pub struct Relaxation<'a> {
    /// The MDP.
    pub mdp: &'a Mdp,
    /// The target `y_K`.
    pub rollout: &'a Rollout,
    /// The objective.
    pub weights: Weights,
    /// The penalties; the objective weights in here are not used.
    pub penalties: Coefficients,
    /// `w`: the weight of each pair's hinges.
    pub pair_weight: Vec<f64>,
}

impl<'a> Relaxation<'a> {
    /// The relaxed program of the theory: unit pair weights.
    pub fn of_program(mdp: &'a Mdp, rollout: &'a Rollout, weights: Weights, penalties: Coefficients) -> Self {
        Relaxation { mdp, rollout, weights, penalties, pair_weight: vec![1.0; mdp.pairs()] }
    }

    /// ALBUM's critic loss with Q and V as free variables: everything is weighted by the frequency in the data.
    pub fn of_data(data: &'a EmpiricalMdp, rollout: &'a Rollout, c: Coefficients) -> Self {
        let d = data.pair_frequency();
        let weights = Weights {
            c_q: d.iter().map(|d| c.omega_q * d).collect(),
            c_v: data.state_frequency().iter().map(|d| c.omega_v * d).collect(),
        };
        Relaxation { mdp: &data.mdp, rollout, weights, penalties: c, pair_weight: d }
    }

    /// The residuals `(g_B, g_E, g_KQ, g_KV)` of a pair.
    pub fn residuals(&self, pair: usize, q: &[f64], v: &[f64]) -> [f64; 4] {
        let (y_1, y_k) = (self.mdp.y_1(pair, v), self.rollout.y_k(pair, v));
        let v_s = v[self.mdp.state_of(pair)];
        [y_1 - q[pair], q[pair] - v_s, y_k - q[pair], y_k - v_s]
    }

    /// The penalties in the order of [`Relaxation::residuals`].
    fn lambdas(&self) -> [f64; 4] {
        let c = &self.penalties;
        [c.lambda_b, c.lambda_e, c.lambda_k, c.lambda_k]
    }

    /// `L(Q,V)`.
    pub fn value(&self, q: &[f64], v: &[f64]) -> f64 {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let penalty: f64 = (0..self.mdp.pairs())
            .map(|pair| {
                let g = self.residuals(pair, q, v);
                let hinges: f64 = g.iter().zip(self.lambdas()).map(|(g, lambda)| lambda * hinge(*g).0).sum();
                self.pair_weight[pair] * hinges
            })
            .sum();
        dot(&self.weights.c_q, q) + dot(&self.weights.c_v, v) + penalty
    }

    /// A subgradient with respect to `(Q, V)`, or the detached update field.
    pub fn subgradient(&self, q: &[f64], v: &[f64], gradient: Gradient) -> (Vec<f64>, Vec<f64>) {
        let mut g_q = self.weights.c_q.clone();
        let mut g_v = self.weights.c_v.clone();
        let lambdas = self.lambdas();
        for pair in 0..self.mdp.pairs() {
            let s = self.mdp.state_of(pair);
            let residuals = self.residuals(pair, q, v);
            let selection = |i: usize| self.pair_weight[pair] * lambdas[i] * hinge(residuals[i]).1;
            let (u, e, w, x) = (selection(0), selection(1), selection(2), selection(3));
            g_q[pair] += e - u - w;
            g_v[s] -= e + x;
            if u != 0.0 {
                for (next, p) in self.mdp.onward(pair) {
                    g_v[next] += u * self.mdp.gamma() * p;
                }
            }
            if gradient == Gradient::Plain && w + x != 0.0 {
                for (last, a) in self.rollout.weight.row(pair) {
                    g_v[last] += (w + x) * a;
                }
            }
        }
        (g_q, g_v)
    }

    /// One full-batch step of size `rate`.
    pub fn descend(&self, q: &mut [f64], v: &mut [f64], rate: f64, gradient: Gradient) {
        let (g_q, g_v) = self.subgradient(q, v, gradient);
        q.iter_mut().zip(g_q).for_each(|(x, g)| *x -= rate * g);
        v.iter_mut().zip(g_v).for_each(|(x, g)| *x -= rate * g);
    }

    /// The minimisation of `L` as a linear program over `(Q, V)` and one nonnegative variable per hinge. Where `y_k` is
    /// given, it replaces the rollout target by constants (the convex function that the detached update descends).
    pub fn as_program(&self, y_k: Option<&[f64]>) -> LinearProgram {
        let (n, states) = (self.mdp.pairs(), self.mdp.decision_states());
        let v = |s: usize| n + s;
        let slack = |family: usize, pair: usize| n + states + family * n + pair;
        let mut objective = self.weights.c_q.clone();
        objective.extend_from_slice(&self.weights.c_v);
        for lambda in self.lambdas() {
            objective.extend(self.pair_weight.iter().map(|w| lambda * w));
        }
        let mut program = LinearProgram::new(objective);
        program.lower[n + states..].fill(0.0);
        for pair in 0..n {
            let own = v(self.mdp.state_of(pair));
            let mut hinge_row = |family: usize, constant: f64, entries: &mut Vec<(usize, f64)>| {
                // constant + entries <= slack
                entries.push((slack(family, pair), -1.0));
                let mut merged: Vec<(usize, f64)> = Vec::new();
                for &(column, value) in entries.iter() {
                    match merged.iter_mut().find(|x| x.0 == column) {
                        Some(x) => x.1 += value,
                        None => merged.push((column, value)),
                    }
                }
                program.push_row(f64::NEG_INFINITY, -constant, merged);
            };
            let mut one_step: Vec<_> =
                self.mdp.onward(pair).map(|(s, p)| (v(s), self.mdp.gamma() * p)).collect();
            one_step.push((pair, -1.0));
            hinge_row(0, self.mdp.reward()[pair], &mut one_step);
            hinge_row(1, 0.0, &mut vec![(pair, 1.0), (own, -1.0)]);
            for (family, variable) in [(2, pair), (3, own)] {
                let (constant, mut entries) = match y_k {
                    Some(y) => (y[pair], Vec::new()),
                    None => (
                        self.rollout.offset[pair],
                        self.rollout.weight.row(pair).map(|(s, a)| (v(s), a)).collect::<Vec<_>>(),
                    ),
                };
                entries.push((variable, -1.0));
                hinge_row(family, constant, &mut entries);
            }
        }
        program
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{random_mdp, random_policy};

    fn with<R>(seed: u64, run: impl FnOnce(&Relaxation<'_>, Vec<f64>, Vec<f64>) -> R) -> R {
        let mdp = random_mdp(seed, 8, 3, 3, 0.9);
        let rollout = Rollout::expected(&mdp, &random_policy(seed, &mdp), 3).unwrap();
        let relaxation = Relaxation::of_program(
            &mdp,
            &rollout,
            Weights::uniform(&mdp, 0.03, 0.02),
            Coefficients::default(),
        );
        let q = (0..mdp.pairs()).map(|p| (p as f64 * 1.3 + seed as f64).sin()).collect();
        let v = (0..8).map(|s| (s as f64 * 0.9 + seed as f64).cos()).collect();
        run(&relaxation, q, v)
    }

    #[test]
    fn the_subgradient_is_the_derivative_of_the_value() {
        for seed in 0..20 {
            with(seed, |l, q, v| {
                let (g_q, g_v) = l.subgradient(&q, &v, Gradient::Plain);
                let h = 1e-7; // no kink lies within h of a random point
                for i in 0..q.len() {
                    let (mut up, mut down) = (q.clone(), q.clone());
                    up[i] += h;
                    down[i] -= h;
                    let slope = (l.value(&up, &v) - l.value(&down, &v)) / (2.0 * h);
                    assert!((slope - g_q[i]).abs() < 1e-6, "Q {i}: {slope} {}", g_q[i]);
                }
                for i in 0..v.len() {
                    let (mut up, mut down) = (v.clone(), v.clone());
                    up[i] += h;
                    down[i] -= h;
                    let slope = (l.value(&q, &up) - l.value(&q, &down)) / (2.0 * h);
                    assert!((slope - g_v[i]).abs() < 1e-6, "V {i}: {slope} {}", g_v[i]);
                }
            });
        }
    }

    #[test]
    fn detaching_removes_exactly_the_gradient_through_the_rollout_target() {
        for seed in 0..20 {
            with(seed, |l, q, v| {
                let (plain_q, plain_v) = l.subgradient(&q, &v, Gradient::Plain);
                let (detached_q, detached_v) = l.subgradient(&q, &v, Gradient::Detached);
                assert_eq!(plain_q, detached_q);
                // The loss with y_K held at its present value has the detached field as its gradient.
                let y: Vec<f64> = (0..q.len()).map(|p| l.rollout.y_k(p, &v)).collect();
                let mut removed = vec![0.0; v.len()];
                for pair in 0..q.len() {
                    let active = hinge(y[pair] - q[pair]).1 + hinge(y[pair] - v[l.mdp.state_of(pair)]).1;
                    for (s, a) in l.rollout.weight.row(pair) {
                        removed[s] += l.penalties.lambda_k * active * a;
                    }
                }
                for s in 0..v.len() {
                    assert!((plain_v[s] - detached_v[s] - removed[s]).abs() < 1e-12);
                }
            });
        }
    }

    #[test]
    fn the_program_form_has_the_value_of_the_loss_at_its_optimum() {
        for seed in 0..10 {
            with(seed, |l, _, _| {
                let crate::lp::Outcome::Optimal(x) = l.as_program(None).solve_by_interior_point().unwrap()
                else {
                    panic!("a bounded relaxation has an optimum")
                };
                let n = l.mdp.pairs();
                let (q, v) = (&x[..n], &x[n..n + 8]);
                let objective: f64 = l.as_program(None).objective.iter().zip(&x).map(|(c, x)| c * x).sum();
                assert!((objective - l.value(q, v)).abs() < 1e-8, "{objective} {}", l.value(q, v));
                // No random point is better.
                for k in 0..50 {
                    let shake = |x: &[f64]| -> Vec<f64> {
                        x.iter().enumerate().map(|(i, x)| x + 0.1 * ((i + 7 * k) as f64).sin()).collect()
                    };
                    assert!(l.value(&shake(q), &shake(v)) >= objective - 1e-8);
                }
            });
        }
    }
}
