//! Gradients of a recorded computation, by the tape's conventions: ties share the gradient, and it is 0 at
//! the kink of a ReLU.

use super::{Graph, mlp};
use crate::hlo::{Fold, Hlo, Shape, Value};
use album_nn::{Binary, Origin, Recorded, Reduce, Unary};

/// The gradients found by a backward pass.
pub(crate) struct Gradients {
    /// With respect to each value of the recording.
    values: Vec<Option<Value>>,
    /// With respect to the tensors of each network of the recording.
    nets: Vec<Option<Vec<Value>>>,
}

impl Gradients {
    /// The gradient with respect to the value at an index.
    pub(crate) fn by(&self, place: usize) -> Option<Value> {
        self.values[place]
    }

    /// The gradients of a network's tensors, if the loss depends on them.
    pub(crate) fn of_net(&self, net: usize) -> Option<&[Value]> {
        self.nets[net].as_deref()
    }

    fn add(&mut self, hlo: &mut Hlo, to: usize, gradient: Value) {
        let sum = self.values[to].map_or(gradient, |sum| hlo.add(sum, gradient));
        self.values[to] = Some(sum);
    }

    fn add_to_net(&mut self, hlo: &mut Hlo, net: usize, gradients: Vec<Value>) {
        let sum = match self.nets[net].take() {
            None => gradients,
            Some(sum) => sum.into_iter().zip(gradients).map(|(sum, g)| hlo.add(sum, g)).collect(),
        };
        self.nets[net] = Some(sum);
    }
}

impl Graph<'_> {
    /// The gradients of the scalar at `loss` with respect to the values from `first` on and, with `weights`,
    /// to the networks' tensors.
    pub(crate) fn backward(&self, hlo: &mut Hlo, loss: usize, first: usize, weights: bool) -> Gradients {
        let mut gradients = Gradients {
            values: vec![None; self.values.len().max(loss + 1)],
            nets: vec![None; self.nets.len()],
        };
        if self.recording.values[loss].needs_grad {
            gradients.values[loss] = Some(hlo.constant(1.0, self.values[loss].shape));
        }
        for i in (first..=loss).rev() {
            if let Some(up) = gradients.values[i] {
                self.pass(hlo, i, up, weights, &mut gradients);
            }
        }
        gradients
    }

    /// Propagates the gradient of a value to its operands.
    fn pass(&self, hlo: &mut Hlo, i: usize, up: Value, weights: bool, to: &mut Gradients) {
        let at = |x: usize| self.values[x];
        let needs = |x: usize| self.recording.values[x].needs_grad;
        let Recorded { ref origin, .. } = self.recording.values[i];
        match *origin {
            Origin::Apply { x, net, collect } => {
                let Some(application) = self.applications.get(&i) else { return };
                let (collect, lead) = (collect && weights, self.lead.len());
                let (tensors, input) = mlp::apply_backward(hlo, lead, application, up, collect, needs(x));
                if collect {
                    to.add_to_net(hlo, net, tensors);
                }
                if let Some(input) = input {
                    to.add(hlo, x, input);
                }
            }
            Origin::Parameter { net, collect } if collect && weights => to.add_to_net(hlo, net, vec![up]),
            Origin::Unary(op, x) if needs(x) => {
                let slope = unary_slope(hlo, op, at(x), at(i));
                let gradient = slope.map_or(up, |slope| hlo.mul(up, slope));
                to.add(hlo, x, gradient);
            }
            Origin::Binary(op, a, b) => {
                for (x, other, is_first) in [(a, b, true), (b, a, false)] {
                    if needs(x) {
                        let slope = binary_slope(hlo, op, at(x), at(other), is_first);
                        let gradient = slope.map_or(up, |slope| hlo.mul(up, slope));
                        let gradient = narrow(hlo, gradient, at(x).shape);
                        to.add(hlo, x, gradient);
                    }
                }
            }
            Origin::Reduce(op, x) if needs(x) => {
                let gradient = self.reduce_backward(hlo, op, at(x), at(i), up);
                to.add(hlo, x, gradient);
            }
            Origin::Beside(ref parts) | Origin::Below(ref parts) => {
                let dim = if matches!(origin, Origin::Beside(_)) { self.cols() } else { self.rows() };
                let mut from = vec![0; self.cols() + 1];
                for &part in parts {
                    if needs(part) {
                        let gradient = hlo.slice(up, &from, at(part).shape);
                        to.add(hlo, part, gradient);
                    }
                    from[dim] += at(part).dims()[dim];
                }
            }
            Origin::Slice { x, row, col } if needs(x) => {
                let gradient = hlo.pad(up, &self.place(row, col), at(x).shape);
                to.add(hlo, x, gradient);
            }
            Origin::Reshape(x) if needs(x) => {
                let gradient = hlo.reshape(up, at(x).shape);
                to.add(hlo, x, gradient);
            }
            Origin::NormalizeRows { x, epsilon } if needs(x) => {
                let normal = mlp::normalize(hlo, at(x), epsilon);
                let gradient = mlp::normalize_backward(hlo, up, normal);
                to.add(hlo, x, gradient);
            }
            Origin::LogSoftmaxCols(x) if needs(x) => {
                let total = hlo.fold(Fold::Add, up, &[self.cols()]);
                let p = hlo.map("exponential", at(i));
                let part = hlo.mul(p, total);
                let gradient = hlo.sub(up, part);
                to.add(hlo, x, gradient);
            }
            Origin::RepeatRows { x, times } if needs(x) => {
                let (rows, cols) = (at(x).dims()[self.rows()], at(x).dims()[self.cols()]);
                let apart = hlo.reshape(up, Shape::new(&[self.lead, &[rows, times, cols]].concat()));
                let sum = hlo.fold(Fold::Add, apart, &[self.cols()]);
                let gradient = hlo.reshape(sum, at(x).shape);
                to.add(hlo, x, gradient);
            }
            Origin::PickCols { x, columns } if needs(x) => {
                let chosen = self.chosen(hlo, at(x), at(columns));
                let wide = hlo.fill(up, at(x).shape);
                let zero = hlo.constant(0.0, at(x).shape);
                let gradient = hlo.select(chosen, wide, zero);
                to.add(hlo, x, gradient);
            }
            _ => {}
        }
    }

    fn reduce_backward(&self, hlo: &mut Hlo, op: Reduce, x: Value, best: Value, up: Value) -> Value {
        let [rows, cols] = [self.rows(), self.cols()].map(|dim| x.dims()[dim]);
        let share = match op {
            Reduce::Sum | Reduce::SumCols => up,
            Reduce::Mean => hlo.scale(up, 1.0 / (rows * cols) as f32),
            Reduce::MeanCols => hlo.scale(up, 1.0 / cols as f32),
            Reduce::MinCols | Reduce::MaxCols => {
                let is_best = hlo.compare("EQ", x, best);
                let ones = hlo.choose(is_best, 1.0, 0.0);
                let ties = hlo.fold(Fold::Add, ones, &[self.cols()]);
                let share = hlo.div(up, ties);
                return hlo.mul(ones, share);
            }
        };
        hlo.fill(share, x.shape)
    }
}

/// Undoes broadcasting: sums the gradient over the dimensions that were expanded.
fn narrow(hlo: &mut Hlo, gradient: Value, shape: Shape) -> Value {
    let pairs = gradient.dims().iter().zip(shape.dims()).enumerate();
    let dims: Vec<usize> = pairs.filter(|(_, (wide, narrow))| wide != narrow).map(|(dim, _)| dim).collect();
    if dims.is_empty() { gradient } else { hlo.fold(Fold::Add, gradient, &dims) }
}

/// The derivative at `x`, given `y = op(x)`; `None` if it is 1.
fn unary_slope(hlo: &mut Hlo, op: Unary, x: Value, y: Value) -> Option<Value> {
    Some(match op {
        Unary::Shift(_) => return None,
        Unary::Scale(c) => hlo.constant(c, x.shape),
        Unary::Reciprocal(_) => {
            let quotient = hlo.div(y, x);
            hlo.map("negate", quotient)
        }
        Unary::Relu => {
            let positive = hlo.compare_with("GT", x, 0.0);
            hlo.choose(positive, 1.0, 0.0)
        }
        Unary::Abs => hlo.map("sign", x),
        Unary::Square => hlo.scale(x, 2.0),
        Unary::Sqrt => {
            let half = hlo.constant(0.5, x.shape);
            hlo.div(half, y)
        }
        Unary::Exp => y,
        Unary::Ln => {
            let one = hlo.constant(1.0, x.shape);
            hlo.div(one, x)
        }
        Unary::Tanh => {
            let square = hlo.mul(y, y);
            let one = hlo.constant(1.0, x.shape);
            hlo.sub(one, square)
        }
        Unary::Sigmoid => {
            let one = hlo.constant(1.0, x.shape);
            let rest = hlo.sub(one, y);
            hlo.mul(y, rest)
        }
        Unary::Softplus => hlo.map("logistic", x),
        Unary::Mish => mlp::mish_slope(hlo, x),
        Unary::Sin => hlo.map("cosine", x),
        Unary::Cos => {
            let sine = hlo.map("sine", x);
            hlo.map("negate", sine)
        }
        Unary::Clip(low, high) => {
            let above = hlo.compare_with("GE", x, low);
            let below = hlo.compare_with("LE", x, high);
            let inside = hlo.zip("and", above, below);
            hlo.choose(inside, 1.0, 0.0)
        }
    })
}

/// The derivative with respect to `x`, the first or second operand; `None` if it is 1.
fn binary_slope(hlo: &mut Hlo, op: Binary, x: Value, other: Value, is_first: bool) -> Option<Value> {
    Some(match op {
        Binary::Add => return None,
        Binary::Sub if is_first => return None,
        Binary::Sub => hlo.constant(-1.0, x.shape),
        Binary::Mul => other,
        Binary::Div if is_first => {
            let one = hlo.constant(1.0, other.shape);
            hlo.div(one, other)
        }
        Binary::Div => {
            let square = hlo.mul(x, x);
            let quotient = hlo.div(other, square);
            hlo.map("negate", quotient)
        }
        Binary::Min | Binary::Max => {
            let wins = hlo.compare(if op == Binary::Min { "LT" } else { "GT" }, x, other);
            let ties = hlo.compare("EQ", x, other);
            let half = hlo.choose(ties, 0.5, 0.0);
            let one = hlo.constant(1.0, half.shape);
            hlo.select(wins, one, half)
        }
    })
}
