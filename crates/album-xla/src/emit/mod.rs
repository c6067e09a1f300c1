//! Emits a recorded computation as StableHLO: this file the forward pass, `backward.rs` the gradients,
//! `mlp.rs` networks.
//!
//! A matrix of the tape becomes a tensor with `lead` dimensions before rows and columns: none, or one of seeds.

mod backward;
pub(crate) mod mlp;

use crate::XlaError;
use crate::hlo::{Fold, Hlo, Shape, Value};
use album_nn::{Binary, MlpSpec, NormalBins, Origin, Recorded, Recording, Reduce, Unary};
use mlp::Application;
use std::collections::HashMap;

/// A recording and the StableHLO values emitted for it.
pub(crate) struct Graph<'a> {
    recording: &'a Recording,
    lead: &'a [usize],
    /// The architecture and the tensors of each network of the recording.
    nets: Vec<(&'a MlpSpec, Vec<Value>)>,
    values: Vec<Value>,
    /// Network applications, by the index of their output.
    applications: HashMap<usize, Application>,
}

/// Whether a value is an input of the program: a given matrix, rows of a table, or something computed off the
/// tape from values known before the step runs.
pub(crate) fn is_input(value: &Recorded) -> bool {
    matches!(value.origin, Origin::Given | Origin::Rows { .. } | Origin::Hidden(_))
}

impl<'a> Graph<'a> {
    /// Emits all values. `input` supplies the values for which [`is_input`] holds.
    pub(crate) fn emit(
        hlo: &mut Hlo,
        recording: &'a Recording,
        lead: &'a [usize],
        nets: Vec<(&'a MlpSpec, Vec<Value>)>,
        mut input: impl FnMut(&mut Hlo, usize) -> Value,
    ) -> Result<Self, XlaError> {
        let mut graph = Graph { recording, lead, nets, values: Vec::new(), applications: HashMap::new() };
        for (i, recorded) in recording.values.iter().enumerate() {
            let value = if is_input(recorded) { input(hlo, i) } else { graph.value(hlo, i)? };
            debug_assert_eq!(value.shape, graph.shape(recorded.rows, recorded.cols), "{:?}", recorded.origin);
            graph.values.push(value);
        }
        Ok(graph)
    }

    /// The value at an index of the recording.
    pub(crate) fn at(&self, place: usize) -> Value {
        self.values[place]
    }

    fn shape(&self, rows: usize, cols: usize) -> Shape {
        Shape::new(&[self.lead, &[rows, cols]].concat())
    }

    fn rows(&self) -> usize {
        self.lead.len()
    }

    fn cols(&self) -> usize {
        self.lead.len() + 1
    }

    /// The start index of a slice at `row` and `col`, with zeros for the leading dimensions.
    fn place(&self, row: usize, col: usize) -> Vec<usize> {
        let mut place = vec![0; self.lead.len()];
        place.extend([row, col]);
        place
    }

    fn value(&mut self, hlo: &mut Hlo, i: usize) -> Result<Value, XlaError> {
        let Recorded { rows, cols, ref origin, .. } = self.recording.values[i];
        let shape = self.shape(rows, cols);
        let at = |x: &usize| self.values[*x];
        Ok(match origin {
            Origin::Filled(x) => hlo.constant(*x, shape),
            Origin::Parameter { net, .. } => self.nets[*net].1[0],
            Origin::Apply { x, net, .. } => {
                let (spec, tensors) = &self.nets[*net];
                let application = mlp::apply(hlo, self.lead.len(), spec, tensors, at(x));
                let output = application.output;
                self.applications.insert(i, application);
                output
            }
            Origin::Unary(op, x) => unary(hlo, *op, at(x)),
            Origin::Binary(op, a, b) => {
                let name = match op {
                    Binary::Add => "add",
                    Binary::Sub => "subtract",
                    Binary::Mul => "multiply",
                    Binary::Div => "divide",
                    Binary::Min => "minimum",
                    Binary::Max => "maximum",
                };
                hlo.zip(name, at(a), at(b))
            }
            Origin::Reduce(op, x) => self.reduce(hlo, *op, at(x)),
            Origin::Beside(parts) => {
                let parts: Vec<Value> = parts.iter().map(at).collect();
                hlo.concat(&parts, self.cols())
            }
            Origin::Below(parts) => {
                let parts: Vec<Value> = parts.iter().map(at).collect();
                hlo.concat(&parts, self.rows())
            }
            Origin::Slice { x, row, col } => hlo.slice(at(x), &self.place(*row, *col), shape),
            Origin::Reshape(x) => hlo.reshape(at(x), shape),
            Origin::NormalizeRows { x, epsilon } => mlp::normalize(hlo, at(x), *epsilon)[0],
            Origin::LogSoftmaxCols(x) => {
                let largest = hlo.fold(Fold::Max, at(x), &[self.cols()]);
                let shifted = hlo.sub(at(x), largest);
                let powers = hlo.map("exponential", shifted);
                let sum = hlo.fold(Fold::Add, powers, &[self.cols()]);
                let log_sum = hlo.map("log", sum);
                hlo.sub(shifted, log_sum)
            }
            Origin::RepeatRows { x, times } => {
                // [rows, cols] -> [rows, times, cols] -> [rows * times, cols]
                let all = Shape::new(&[self.lead, &[rows / times.max(&1), *times, cols]].concat());
                let dims: Vec<usize> = (0..=self.rows()).chain([self.cols() + 1]).collect();
                let repeated = hlo.broadcast(at(x), &dims, all);
                hlo.reshape(repeated, shape)
            }
            Origin::PickCols { x, columns } => {
                let chosen = self.chosen(hlo, at(x), at(columns));
                let zero = hlo.constant(0.0, at(x).shape);
                let entries = hlo.select(chosen, at(x), zero);
                hlo.fold(Fold::Add, entries, &[self.cols()])
            }
            Origin::Detached(x) => at(x),
            Origin::Ge(x, threshold) => {
                let above = hlo.compare_with("GE", at(x), *threshold);
                hlo.choose(above, 1.0, 0.0)
            }
            Origin::ExpectileWeights(x, tau) => {
                let below = hlo.compare_with("LT", at(x), 0.0);
                hlo.choose(below, 1.0 - tau, *tau)
            }
            Origin::ArgmaxCols(x) => {
                let largest = hlo.fold(Fold::Max, at(x), &[self.cols()]);
                let is_largest = hlo.compare("EQ", at(x), largest);
                let places = hlo.iota(at(x).shape, self.cols());
                let none = hlo.constant(f32::INFINITY, at(x).shape);
                let places = hlo.select(is_largest, places, none);
                hlo.fold(Fold::Min, places, &[self.cols()])
            }
            Origin::NormalMasses(x, bins) => self.normal_masses(hlo, at(x), *bins),
            Origin::GradientBy { of, x } => {
                let gradients = self.backward(hlo, *of, x + 1, false);
                gradients.by(*x).unwrap_or_else(|| hlo.constant(0.0, shape))
            }
            other => {
                return Err(XlaError::Unsupported(format!("the tape does not know a value ({other:?})")));
            }
        })
    }

    /// A mask of the entries of `x` in the column that `columns` names for their row.
    fn chosen(&self, hlo: &mut Hlo, x: Value, columns: Value) -> Value {
        let places = hlo.iota(x.shape, self.cols());
        hlo.compare("EQ", places, columns)
    }

    fn reduce(&self, hlo: &mut Hlo, op: Reduce, x: Value) -> Value {
        let [rows, cols] = [self.rows(), self.cols()];
        let entries = (x.dims()[rows] * x.dims()[cols]) as f32;
        match op {
            Reduce::Sum => hlo.fold(Fold::Add, x, &[rows, cols]),
            Reduce::Mean => {
                let sum = hlo.fold(Fold::Add, x, &[rows, cols]);
                hlo.scale(sum, 1.0 / entries)
            }
            Reduce::SumCols => hlo.fold(Fold::Add, x, &[cols]),
            Reduce::MeanCols => mlp::mean_cols(hlo, x),
            Reduce::MinCols => hlo.fold(Fold::Min, x, &[cols]),
            Reduce::MaxCols => hlo.fold(Fold::Max, x, &[cols]),
        }
    }

    /// The normal mass of each bin, from differences of the error function at its edges, normalized to sum to 1.
    fn normal_masses(&self, hlo: &mut Hlo, x: Value, bins: NormalBins) -> Value {
        let limited = unary(hlo, Unary::Clip(bins.low as f32, bins.high as f32), x);
        let edges: Vec<f32> = (0..=bins.count).map(|i| bins.edge(i) as f32).collect();
        let edges = hlo.vector(&edges);
        let rows = x.dims()[self.rows()];
        let edges = hlo.broadcast(edges, &[self.cols()], self.shape(rows, bins.count + 1));
        let away = hlo.sub(edges, limited);
        let away = hlo.scale(away, (1.0 / (bins.sigma * std::f64::consts::SQRT_2)) as f32);
        let below = hlo.erf(away);
        let part =
            |hlo: &mut Hlo, from, count| hlo.slice(below, &self.place(0, from), self.shape(rows, count));
        let [upper, lower] = [1, 0].map(|from| part(hlo, from, bins.count));
        let masses = hlo.sub(upper, lower);
        let [last, first] = [bins.count, 0].map(|from| part(hlo, from, 1));
        let whole = hlo.sub(last, first);
        hlo.div(masses, whole)
    }
}

fn unary(hlo: &mut Hlo, op: Unary, x: Value) -> Value {
    match op {
        Unary::Scale(c) => hlo.scale(x, c),
        Unary::Shift(c) => hlo.shift(x, c),
        Unary::Reciprocal(c) => {
            let c = hlo.constant(c, x.shape);
            hlo.div(c, x)
        }
        Unary::Relu => {
            let zero = hlo.constant(0.0, x.shape);
            hlo.zip("maximum", x, zero)
        }
        Unary::Abs => hlo.map("abs", x),
        Unary::Square => hlo.mul(x, x),
        Unary::Sqrt => hlo.map("sqrt", x),
        Unary::Exp => hlo.map("exponential", x),
        Unary::Ln => hlo.map("log", x),
        Unary::Tanh => hlo.map("tanh", x),
        Unary::Sigmoid => hlo.map("logistic", x),
        Unary::Softplus => {
            let zero = hlo.constant(0.0, x.shape);
            let positive = hlo.zip("maximum", x, zero);
            let size = hlo.map("abs", x);
            let falling = hlo.map("negate", size);
            let power = hlo.map("exponential", falling);
            let rest = hlo.map("log_plus_one", power);
            hlo.add(positive, rest)
        }
        Unary::Mish => {
            let [t, _] = mlp::tanh_softplus(hlo, x);
            hlo.mul(x, t)
        }
        Unary::Sin => hlo.map("sine", x),
        Unary::Cos => hlo.map("cosine", x),
        Unary::Clip(low, high) => {
            let [low, high] = [low, high].map(|limit| hlo.constant(limit, x.shape));
            let raised = hlo.zip("maximum", x, low);
            hlo.zip("minimum", raised, high)
        }
    }
}
