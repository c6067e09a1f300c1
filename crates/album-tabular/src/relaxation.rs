//! The hinge relaxation of the program:
//!
//! ```text
//! L(Q,V) = <c_Q,Q> + <c_V,V> + lambda_B |w [g_B]+| + lambda_E |w [g_E]+| + lambda_K (|w [g_KQ]+| + |w [g_KV]+|)
//! ```
//!
//! with norms that sum over pairs. The pair weights `w` are 1 in the relaxed program of the theory, and the
//! sampling frequency `d_D` in ALBUM's critic loss. The *detached* update treats `y_K` as a constant, as
//! ALBUM does.

use crate::lp::LinearProgram;
use crate::sparse::{Csr, RowBuilder};
use crate::{Coefficients, EmpiricalMdp, Family, Mdp, PerFamily, Rollout, TabularError, Weights};

/// `[x]+` and its derivative (0 at 0): the only definition of the hinge.
#[inline]
pub fn hinge(x: f64) -> (f64, f64) {
    if x > 0.0 { (x, 1.0) } else { (0.0, 0.0) }
}

/// Whether the rollout target carries a gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gradient {
    /// The subgradient of the loss.
    Plain,
    /// `y_K` is a constant in each update (`stop_gradient`).
    Detached,
}

/// The residuals `g` of every family at every pair.
pub fn residuals(mdp: &Mdp, rollout: &Rollout, q: &[f64], v: &[f64]) -> PerFamily<Vec<f64>> {
    let y_k = rollout.targets(v);
    PerFamily::new(|family| {
        let t = family.terms();
        let one_step = |pair: usize| if t.y_1 == 0.0 { 0.0 } else { t.y_1 * mdp.y_1(pair, v) };
        (0..q.len())
            .map(|pair| t.q * q[pair] + t.v * v[mdp.state_of(pair)] + one_step(pair) + t.y_k * y_k[pair])
            .collect()
    })
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
    /// The penalty `lambda` of each family.
    pub penalties: PerFamily<f64>,
    /// `w`: the weight of each pair's hinges.
    pub pair_weight: Vec<f64>,
}

impl<'a> Relaxation<'a> {
    /// The relaxed program of the theory: unit pair weights.
    pub fn of_program(
        mdp: &'a Mdp,
        rollout: &'a Rollout,
        weights: Weights,
        penalties: PerFamily<f64>,
    ) -> Self {
        Relaxation { mdp, rollout, weights, penalties, pair_weight: vec![1.0; mdp.pairs()] }
    }

    /// ALBUM's critic loss with Q and V as free variables: everything is weighted by the data frequency.
    pub fn of_data(data: &'a EmpiricalMdp, rollout: &'a Rollout, c: Coefficients) -> Self {
        let d = data.pair_frequency();
        let weights = Weights {
            c_q: d.iter().map(|d| c.omega_q * d).collect(),
            c_v: data.state_frequency().iter().map(|d| c.omega_v * d).collect(),
        };
        Relaxation { mdp: &data.mdp, rollout, weights, penalties: c.penalties(), pair_weight: d }
    }

    /// `L(Q,V)`.
    pub fn value(&self, q: &[f64], v: &[f64]) -> f64 {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let g = residuals(self.mdp, self.rollout, q, v);
        let penalty = |family: Family| {
            let hinges = g[family].iter().zip(&self.pair_weight).map(|(g, w)| w * hinge(*g).0);
            self.penalties[family] * hinges.sum::<f64>()
        };
        dot(&self.weights.c_q, q) + dot(&self.weights.c_v, v) + Family::ALL.map(penalty).iter().sum::<f64>()
    }

    /// A subgradient with respect to `(Q, V)`, or the detached update field.
    pub fn subgradient(&self, q: &[f64], v: &[f64], gradient: Gradient) -> (Vec<f64>, Vec<f64>) {
        let (mut g_q, mut g_v) = (self.weights.c_q.clone(), self.weights.c_v.clone());
        // The derivatives of the active hinges with respect to the two targets.
        let (mut at_y_1, mut at_y_k) = (vec![0.0; q.len()], vec![0.0; q.len()]);
        let g = residuals(self.mdp, self.rollout, q, v);
        for family in Family::ALL.into_iter().filter(|&family| self.penalties[family] != 0.0) {
            let t = family.terms();
            for (pair, g) in g[family].iter().enumerate() {
                let force = self.pair_weight[pair] * self.penalties[family] * hinge(*g).1;
                g_q[pair] += t.q * force;
                g_v[self.mdp.state_of(pair)] += t.v * force;
                at_y_1[pair] += t.y_1 * force;
                at_y_k[pair] += t.y_k * force;
            }
        }
        for (pair, force) in at_y_1.iter().enumerate().filter(|x| *x.1 != 0.0) {
            for (next, p) in self.mdp.onward(pair) {
                g_v[next] += force * self.mdp.gamma() * p;
            }
        }
        if gradient == Gradient::Plain {
            g_v.iter_mut().zip(self.rollout.flow_back(&at_y_k)).for_each(|(g, flow)| *g += flow);
        }
        (g_q, g_v)
    }

    /// One full-batch step of size `rate`.
    pub fn descend(&self, q: &mut [f64], v: &mut [f64], rate: f64, gradient: Gradient) {
        let (g_q, g_v) = self.subgradient(q, v, gradient);
        q.iter_mut().zip(g_q).for_each(|(x, g)| *x -= rate * g);
        v.iter_mut().zip(g_v).for_each(|(x, g)| *x -= rate * g);
    }

    /// The minimisation of `L` as a linear program over `(Q, V)` and one nonnegative variable per hinge. If
    /// `y_k` is given, it replaces the rollout target by constants (the convex function that the detached
    /// update descends).
    pub fn as_program(&self, y_k: Option<&[f64]>) -> Result<LinearProgram, TabularError> {
        let (n, states) = (self.mdp.pairs(), self.mdp.decision_states());
        let rollout = self.rollout.assemble()?;
        let mut objective = self.weights.c_q.clone();
        objective.extend_from_slice(&self.weights.c_v);
        for lambda in self.penalties.iter() {
            objective.extend(self.pair_weight.iter().map(|w| lambda * w));
        }
        let columns = objective.len();
        let mut program = LinearProgram::new(objective);
        program.lower[n + states..].fill(0.0);
        program.matrix = Csr::new(columns);
        let mut row = RowBuilder::new(columns);
        for (number, family) in Family::ALL.into_iter().enumerate() {
            let t = family.terms();
            for pair in 0..n {
                // constant + entries <= slack
                row.add(pair, t.q);
                row.add(n + self.mdp.state_of(pair), t.v);
                let factor = t.y_1 * self.mdp.gamma();
                self.mdp.onward(pair).for_each(|(s, p)| row.add(n + s, factor * p));
                let y = y_k.map_or(rollout.offset[pair], |y| y[pair]);
                if y_k.is_none() {
                    rollout.weight.row(pair).for_each(|(s, a)| row.add(n + s, t.y_k * a));
                }
                row.add(n + states + number * n + pair, -1.0);
                row.finish(&mut program.matrix);
                program.row_lower.push(f64::NEG_INFINITY);
                program.row_upper.push(-(t.y_1 * self.mdp.reward()[pair] + t.y_k * y));
            }
        }
        Ok(program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lp::Outcome;
    use crate::random::{random_mdp, random_policy};

    fn with<R>(seed: u64, run: impl FnOnce(&Relaxation<'_>, Vec<f64>, Vec<f64>) -> R) -> R {
        let mdp = random_mdp(seed, 8, 3, 3, 0.9);
        let rollout = Rollout::expected(&mdp, &random_policy(seed, &mdp), 3).unwrap();
        let penalties = Coefficients::default().penalties();
        let relaxation =
            Relaxation::of_program(&mdp, &rollout, Weights::uniform(&mdp, 0.03, 0.02), penalties);
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
                // The loss with y_K held constant has the detached field as its gradient.
                let y = l.rollout.targets(&v);
                let weight = l.rollout.assemble().unwrap().weight;
                let mut removed = vec![0.0; v.len()];
                for pair in 0..q.len() {
                    let active = hinge(y[pair] - q[pair]).1 + hinge(y[pair] - v[l.mdp.state_of(pair)]).1;
                    for (s, a) in weight.row(pair) {
                        removed[s] += l.penalties.kq * active * a;
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
                let program = l.as_program(None).unwrap();
                let Outcome::Optimal { x, .. } = program.solve().unwrap() else {
                    panic!("a bounded relaxation has an optimum")
                };
                let n = l.mdp.pairs();
                let (q, v) = (&x[..n], &x[n..n + 8]);
                let objective: f64 = program.objective.iter().zip(&x).map(|(c, x)| c * x).sum();
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
