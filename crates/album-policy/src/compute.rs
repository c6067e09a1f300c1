//! The computations of steps.

use crate::graph::{Function, Operator, Reduction, Step};
use crate::math;
use crate::policy::{Planned, Policy, Weights};
use fearless_simd::{Level, dispatch};

/// An operand: its values, and whether it has one row for all observations.
#[derive(Clone, Copy)]
struct Matrix<'a> {
    data: &'a [f32],
    cols: usize,
    single: bool,
}

impl<'a> Matrix<'a> {
    fn row(&self, row: usize) -> &'a [f32] {
        &self.data[if self.single { 0 } else { row * self.cols }..][..self.cols]
    }
}

/// The inputs of steps.
pub(crate) struct Inputs<'a> {
    pub policy: &'a Policy,
    pub batch: usize,
    pub observations: &'a [f32],
    pub noise: &'a [f32],
}

impl<'a> Inputs<'a> {
    fn get(&self, i: usize) -> Matrix<'a> {
        let Planned { shape, slot, weights, .. } = &self.policy.steps[i];
        let (cols, single) = (shape.cols, shape.rows.is_none());
        let data = match weights {
            Weights::Row(row) => row,
            _ => {
                let rows = shape.rows.map_or(1, |rows| rows * self.batch);
                &self.policy.slots[*slot].data[..rows * cols]
            }
        };
        Matrix { data, cols, single }
    }

    /// Copies the operand of an in-place step to its slot, if necessary.
    fn bring(&self, i: usize, x: usize, out: &mut [f32]) {
        let steps = &self.policy.steps;
        let in_place = steps[x].slot == steps[i].slot && !matches!(steps[x].weights, Weights::Row(_));
        if !in_place {
            out.copy_from_slice(self.get(x).data);
        }
    }

    /// Computes a step of `rows` rows; returns the margin between the best choice and the next.
    pub fn compute(&self, i: usize, rows: usize, out: &mut [f32]) -> f32 {
        let Planned { step, shape, weights, .. } = &self.policy.steps[i];
        let cols = shape.cols;
        let mut margin = f32::INFINITY;
        match (step, weights) {
            (Step::Observation, _) => out.copy_from_slice(self.observations),
            (Step::Noise { from, .. }, _) => {
                let noise = self.noise.chunks_exact(self.policy.manifest().noise.len());
                for (noise, out) in noise.zip(out.chunks_exact_mut(shape.entries())) {
                    out.copy_from_slice(&noise[*from..][..out.len()]);
                }
            }
            (Step::Linear { x, .. }, Weights::Dense(kernel, bias)) => {
                kernel.apply(self.get(*x).data, bias.as_deref(), out);
            }
            (Step::Norm { x, epsilon, .. }, Weights::Norm(scale, shift)) => {
                self.bring(i, *x, out);
                for row in out.chunks_exact_mut(cols) {
                    let mean = math::sum(row, |x| x) / cols as f32;
                    let variance = math::sum(row, |x| (x - mean) * (x - mean)) / cols as f32;
                    let inverse = 1.0 / (variance + epsilon).sqrt();
                    for ((x, scale), shift) in row.iter_mut().zip(&scale[..]).zip(&shift[..]) {
                        *x = (*x - mean) * inverse * scale + shift;
                    }
                }
            }
            (Step::Map { x, f }, _) => {
                self.bring(i, *x, out);
                dispatch!(Level::new(), _ => map(*f, out));
            }
            (Step::Affine { x, by, add }, _) => {
                self.bring(i, *x, out);
                out.iter_mut().for_each(|x| *x = by * *x + add);
            }
            (Step::Clip { x, low, high }, _) => {
                self.bring(i, *x, out);
                out.iter_mut().for_each(|x| *x = x.clamp(*low, *high));
            }
            (Step::Combine { f, a, b }, _) => {
                let (a, b) = (self.get(*a), self.get(*b));
                for (row, out) in out.chunks_exact_mut(cols).enumerate() {
                    let (a, b) = (a.row(row), b.row(row));
                    for (col, out) in out.iter_mut().enumerate() {
                        let (a, b) =
                            (a[if a.len() == 1 { 0 } else { col }], b[if b.len() == 1 { 0 } else { col }]);
                        *out = match f {
                            Operator::Add => a + b,
                            Operator::Sub => a - b,
                            Operator::Mul => a * b,
                            Operator::Min => {
                                if b < a {
                                    b
                                } else {
                                    a
                                }
                            }
                            Operator::Max => {
                                if b > a {
                                    b
                                } else {
                                    a
                                }
                            }
                        };
                    }
                }
            }
            (Step::Concat { parts }, _) => {
                let mut at = 0;
                for &part in parts {
                    let part = self.get(part);
                    for row in 0..rows {
                        out[row * cols + at..][..part.cols].copy_from_slice(part.row(row));
                    }
                    at += part.cols;
                }
            }
            (Step::Repeat { x, times }, _) => {
                let x = self.get(*x);
                for (row, out) in out.chunks_exact_mut(cols).enumerate() {
                    out.copy_from_slice(x.row(row / times));
                }
            }
            (Step::Reduce { x, members, by }, _) => {
                let x = self.get(*x);
                for (row, out) in out.chunks_exact_mut(cols).enumerate() {
                    let x = x.row(row);
                    for (col, out) in out.iter_mut().enumerate() {
                        let values = x[col..].iter().step_by(cols);
                        *out = match by {
                            Reduction::Mean => values.sum::<f32>() / *members as f32,
                            Reduction::Min => values.fold(f32::INFINITY, |least, &x| least.min(x)),
                        };
                    }
                }
            }
            (Step::Best { candidates, scores }, _) => {
                self.pick(*candidates, *scores, out, |_, scores, rows| {
                    let chosen = best(scores, |_| true);
                    // Equal candidates are not a choice.
                    let others = |i: usize| rows(i) != rows(chosen);
                    margin = margin.min(lead(chosen, scores, others));
                    chosen
                });
            }
            (Step::Draw { candidates, scores, uniform }, _) => {
                let uniform = self.get(*uniform);
                self.pick(*candidates, *scores, out, |row, scores, _| {
                    drawn(scores, uniform.row(row)[0], &mut margin)
                });
            }
            (Step::Choose { logits, q, slack }, _) => {
                let (logits, q) = (self.get(*logits), self.get(*q));
                for (row, out) in out.iter_mut().enumerate() {
                    let logits = logits.row(row);
                    let least = logits.iter().fold(f32::NEG_INFINITY, |m, &x| m.max(x)) - slack;
                    // A choice at the edge of its support is as close a call as one between two equal values.
                    let edge = logits.iter().map(|x| (x - least).abs()).filter(|_| *slack > 0.0);
                    margin = edge.fold(margin, f32::min);
                    let supported = |i: usize| logits[i] >= least;
                    let chosen = best(q.row(row), supported);
                    margin = margin.min(lead(chosen, q.row(row), supported));
                    *out = chosen as f32;
                }
            }
            // Constants are not computed; linear and norm steps always have their planned weights.
            (Step::Constant { .. } | Step::Linear { .. } | Step::Norm { .. }, _) => {}
        }
        margin
    }

    /// Copies the candidate that `choose` selects from the index of the observation, the scores and the
    /// candidates.
    fn pick(
        &self,
        candidates: usize,
        scores: usize,
        out: &mut [f32],
        mut choose: impl FnMut(usize, &[f32], &dyn Fn(usize) -> &'a [f32]) -> usize,
    ) {
        let n = self.policy.steps[candidates].shape.rows.unwrap_or(1);
        let (candidates, scores) = (self.get(candidates), self.get(scores));
        let out = out.chunks_exact_mut(candidates.cols);
        for (row, (scores, out)) in scores.data.chunks_exact(n).zip(out).enumerate() {
            let candidate = |i: usize| candidates.row(row * n + i);
            out.copy_from_slice(candidate(choose(row, scores, &candidate)));
        }
    }
}

#[inline(always)]
fn map(f: Function, out: &mut [f32]) {
    match f {
        Function::Relu => out.iter_mut().for_each(|x| *x = if *x < 0.0 { 0.0 } else { *x }),
        Function::Gelu => out.iter_mut().for_each(|x| *x = math::gelu(*x)),
        Function::Mish => out.iter_mut().for_each(|x| *x = math::mish(*x)),
        Function::Tanh => out.iter_mut().for_each(|x| *x = x.tanh()),
        Function::Sin => out.iter_mut().for_each(|x| *x = x.sin()),
        Function::Cos => out.iter_mut().for_each(|x| *x = x.cos()),
    }
}

/// The index of the first highest score among those allowed.
fn best(scores: &[f32], allowed: impl Fn(usize) -> bool) -> usize {
    let (mut best, mut top) = (0, f32::NEG_INFINITY);
    for (i, &score) in scores.iter().enumerate() {
        if score > top && allowed(i) {
            (best, top) = (i, score);
        }
    }
    best
}

/// The lead of the chosen score over the next one among `others`, relative to its size.
fn lead(chosen: usize, scores: &[f32], others: impl Fn(usize) -> bool) -> f32 {
    let others = (0..scores.len()).filter(|&i| i != chosen && others(i));
    let next = others.fold(f32::NEG_INFINITY, |next, i| next.max(scores[i]));
    (scores[chosen] - next) / scores[chosen].abs().max(1.0)
}

/// The candidate at the fraction `uniform` of the sum of the scores' exponentials.
fn drawn(scores: &[f32], uniform: f32, margin: &mut f32) -> usize {
    let top = scores.iter().fold(f32::NEG_INFINITY, |m, &x| m.max(x));
    let weight = |x: f32| f64::from(x - top).exp();
    let total = scores.iter().map(|&x| weight(x)).sum::<f64>();
    let threshold = f64::from(uniform) * total;
    let (mut sum, mut chosen) = (0.0, scores.len() - 1);
    for (i, &score) in scores.iter().enumerate() {
        sum += weight(score);
        *margin = margin.min(((sum - threshold).abs() / total) as f32);
        if sum > threshold {
            chosen = i;
            break;
        }
    }
    chosen
}
