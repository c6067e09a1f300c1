//! Turns the recorded computation of an agent's policy into the steps of a policy file.

use crate::error::Error;
use album_agents::{Aggregate, Mark, RecordedPolicy};
use album_data::ActionSpace;
use album_nn::{Activation, Binary, MlpSpec, NORM_EPSILON, Origin, Reduce, Unary};
use album_policy::{Function, Graph, Noise, Operator, Reduction, Step, Tensors};
use std::collections::HashMap;

/// The steps, their tensors and the noise they consume.
pub(super) struct Built {
    pub graph: Graph,
    pub tensors: Tensors,
    pub noise: Noise,
}

/// Builds the steps of a policy.
pub(super) fn build(policy: &RecordedPolicy) -> Result<Built, Error> {
    let values = &policy.recording.values;
    let mut varies: Vec<bool> = Vec::with_capacity(values.len());
    for (i, value) in values.iter().enumerate() {
        let known = policy.marks.contains_key(&i);
        let from = value.origin.operands();
        varies.push(known || from.is_none_or(|from| from.into_iter().any(|x| varies[x])));
    }
    let (mut normal, mut uniform) = (0, 0);
    let mut noise_at = HashMap::new();
    for (&i, mark) in &policy.marks {
        match mark {
            Mark::Normal => {
                noise_at.insert(i, normal);
                normal += values[i].value.len();
            }
            Mark::Drawn { .. } => {
                noise_at.insert(i, uniform);
                uniform += 1;
            }
            _ => {}
        }
    }
    let noise = Noise { normal, uniform };
    let mut builder = Builder {
        policy,
        varies,
        noise_at,
        noise,
        steps: Vec::new(),
        tensors: Tensors::default(),
        places: HashMap::new(),
        constants: HashMap::new(),
    };
    let observation = builder.encoded();
    for (&i, mark) in &policy.marks {
        if *mark == Mark::Observation {
            builder.places.insert(i, observation);
        }
    }
    // Values are visited in order, so operands come first; unused values are left out.
    let needed = builder.needed();
    for i in needed {
        let place = builder.value(i)?;
        builder.places.insert(i, place);
    }
    let decided = builder.places.get(&policy.decided).copied();
    let decided = decided.ok_or_else(|| Error::Config("the policy decides nothing".into()))?;
    builder.physical(decided);
    Ok(Built { graph: Graph { steps: builder.steps }, tensors: builder.tensors, noise })
}

struct Builder<'a> {
    policy: &'a RecordedPolicy,
    /// Whether each value depends on the observation or on noise.
    varies: Vec<bool>,
    /// Offset of each value's noise among all noise of the same kind.
    noise_at: HashMap<usize, usize>,
    noise: Noise,
    steps: Vec<Step>,
    tensors: Tensors,
    /// Step of each value built so far.
    places: HashMap<usize, usize>,
    /// Steps of constants by their bits, so that equal ones are shared.
    constants: HashMap<Vec<u32>, usize>,
}

impl Builder<'_> {
    fn push(&mut self, step: Step) -> usize {
        self.steps.push(step);
        self.steps.len() - 1
    }

    /// A constant row, the same for all observations.
    fn constant(&mut self, row: &[f32]) -> usize {
        let bits: Vec<u32> = row.iter().map(|x| x.to_bits()).collect();
        if let Some(&place) = self.constants.get(&bits) {
            return place;
        }
        let tensor = format!("constant{}", self.constants.len());
        self.tensors.insert(&tensor, vec![row.len()], row.to_vec());
        let place = self.push(Step::Constant { tensor });
        self.constants.insert(bits, place);
        place
    }

    fn combine(&mut self, f: Operator, a: usize, b: usize) -> usize {
        self.push(Step::Combine { f, a, b })
    }

    /// The networks' input: the standardised observation, followed by its Fourier features.
    fn encoded(&mut self) -> usize {
        let encoding = &self.policy.encoding;
        let mut x = self.push(Step::Observation);
        if let Some(standard) = encoding.standard() {
            let (mean, inverse): (Vec<f32>, Vec<f32>) = standard.iter().copied().unzip();
            let (mean, inverse) = (self.constant(&mean), self.constant(&inverse));
            let centred = self.combine(Operator::Sub, x, mean);
            x = self.combine(Operator::Mul, centred, inverse);
        }
        let (dim, frequencies) = (encoding.observation_dim(), encoding.frequencies());
        let count = frequencies.len() / dim.max(1);
        if count == 0 {
            return x;
        }
        let by_input = (0..dim).flat_map(|i| (0..count).map(move |w| frequencies[w * dim + i])).collect();
        self.tensors.insert("encoding/frequencies", vec![dim, count], by_input);
        let linear = |x, kernel: &str| Step::Linear { x, kernel: kernel.into(), bias: None };
        let phase = self.push(linear(x, "encoding/frequencies"));
        let sin = self.push(Step::Map { x: phase, f: Function::Sin });
        let cos = self.push(Step::Map { x: phase, f: Function::Cos });
        let both = self.push(Step::Concat { parts: vec![sin, cos] });
        // The networks expect the sine and the cosine of each frequency next to each other.
        let mut order = vec![0.0; 4 * count * count];
        for w in 0..count {
            order[w * 2 * count + 2 * w] = 1.0;
            order[(count + w) * 2 * count + 2 * w + 1] = 1.0;
        }
        self.tensors.insert("encoding/order", vec![2 * count, 2 * count], order);
        let features = self.push(linear(both, "encoding/order"));
        self.push(Step::Concat { parts: vec![x, features] })
    }

    /// The values that the decision depends on, in order.
    fn needed(&self) -> Vec<usize> {
        let mut needed = vec![false; self.policy.recording.values.len()];
        let mut open = vec![self.policy.decided];
        while let Some(i) = open.pop() {
            if !std::mem::replace(&mut needed[i], true) && self.varies[i] {
                open.extend(self.operands(i));
            }
        }
        (0..needed.len()).filter(|&i| needed[i] && !self.places.contains_key(&i)).collect()
    }

    fn operands(&self, i: usize) -> Vec<usize> {
        match self.policy.marks.get(&i) {
            Some(Mark::Observation | Mark::Normal) => Vec::new(),
            Some(Mark::Best { candidates, scores, .. } | Mark::Drawn { candidates, scores, .. }) => {
                vec![*candidates, *scores]
            }
            Some(Mark::Supported { logits, q, .. }) => vec![*logits, *q],
            Some(Mark::Choices { q, .. }) => vec![*q],
            None => self.policy.recording.values[i].origin.operands().unwrap_or_default(),
        }
    }

    /// Adds the step of a value whose operands already have theirs.
    fn value(&mut self, i: usize) -> Result<usize, Error> {
        let policy = self.policy;
        let value = &policy.recording.values[i];
        if !self.varies[i] {
            let (row, rest) = value.value.split_at(value.cols);
            if rest.chunks_exact(value.cols.max(1)).any(|other| other != row) {
                return Err(unsupported("a constant that differs between candidates"));
            }
            return Ok(self.constant(row));
        }
        let at: Vec<usize> = self.operands(i).iter().map(|x| self.places[x]).collect();
        let step = match policy.marks.get(&i) {
            Some(Mark::Observation) => Step::Observation,
            Some(Mark::Normal) => Step::Noise { from: self.noise_at[&i], rows: value.rows, cols: value.cols },
            Some(Mark::Best { .. }) => Step::Best { candidates: at[0], scores: at[1] },
            Some(Mark::Drawn { .. }) => {
                let from = self.noise.normal + self.noise_at[&i];
                let uniform = self.push(Step::Noise { from, rows: 1, cols: 1 });
                Step::Draw { candidates: at[0], scores: at[1], uniform }
            }
            Some(Mark::Supported { threshold, .. }) => {
                Step::Choose { logits: at[0], q: at[1], slack: (-threshold.ln()).max(0.0) }
            }
            Some(Mark::Choices { q, aggregate }) => {
                let members = policy.recording.values[*q].cols / value.cols;
                let by = match aggregate {
                    Aggregate::Mean => Reduction::Mean,
                    Aggregate::Min => Reduction::Min,
                };
                Step::Reduce { x: at[0], members, by }
            }
            None => match &value.origin {
                Origin::Apply { net, .. } => return Ok(self.network(*net, at[0])),
                Origin::Unary(f, _) => unary(*f, at[0])?,
                Origin::Binary(f, ..) => {
                    let f = match f {
                        Binary::Add => Operator::Add,
                        Binary::Sub => Operator::Sub,
                        Binary::Mul => Operator::Mul,
                        Binary::Min => Operator::Min,
                        Binary::Max => Operator::Max,
                        Binary::Div => return Err(unsupported("a quotient")),
                    };
                    Step::Combine { f, a: at[0], b: at[1] }
                }
                Origin::Reduce(f, x) => {
                    let by = match f {
                        Reduce::MeanCols => Reduction::Mean,
                        Reduce::MinCols => Reduction::Min,
                        _ => return Err(unsupported("a sum or a maximum")),
                    };
                    Step::Reduce { x: at[0], members: policy.recording.values[*x].cols, by }
                }
                Origin::Beside(_) => Step::Concat { parts: at },
                Origin::NormalizeRows { epsilon, .. } => self.norm(at[0], *epsilon, value.cols),
                Origin::Slice { x, row: 0, col } if policy.recording.values[*x].rows == value.rows => {
                    let kernel = self.selection(policy.recording.values[*x].cols, *col, value.cols);
                    Step::Linear { x: at[0], kernel, bias: None }
                }
                Origin::RepeatRows { times, .. } => Step::Repeat { x: at[0], times: *times },
                _ => return Err(unsupported("a value that the tape does not know")),
            },
        };
        Ok(self.push(step))
    }

    /// Name of a kernel matrix that selects `count` columns out of `inputs`.
    fn selection(&mut self, inputs: usize, from: usize, count: usize) -> String {
        let mut kernel = vec![0.0; inputs * count];
        (0..count).for_each(|i| kernel[(from + i) * count + i] = 1.0);
        let name = format!("columns/{from}to{}of{inputs}", from + count);
        self.tensors.insert(&name, vec![inputs, count], kernel);
        name
    }

    /// Layer normalisation without learned parameters.
    fn norm(&mut self, x: usize, epsilon: f32, cols: usize) -> Step {
        let [scale, shift] = [("ones", 1.0), ("zeros", 0.0)].map(|(name, fill)| {
            let name = format!("norm/{name}{cols}");
            self.tensors.insert(&name, vec![cols], vec![fill; cols]);
            name
        });
        Step::Norm { x, epsilon, scale, shift }
    }

    /// A network, for each member: dense, activation, layer normalisation, ..., and a final dense layer.
    fn network(&mut self, net: usize, x: usize) -> usize {
        let mlp = &self.policy.recording.nets[net];
        let MlpSpec { hidden, activation, layer_norm, bias, members, .. } = mlp.spec();
        for tensor in mlp.tensors() {
            let name = format!("net{net}/{}", tensor.name);
            if !self.tensors.contains(&name) {
                self.tensors.insert(name, tensor.shape, tensor.data);
            }
        }
        let f = match activation {
            Activation::Gelu => Function::Gelu,
            Activation::Relu => Function::Relu,
            Activation::Mish => Function::Mish,
        };
        let outputs: Vec<usize> = (0..*members)
            .map(|member| {
                let mut x = x;
                for layer in 0..=hidden.len() {
                    let prefix = match members {
                        1 => format!("net{net}/layer{layer}"),
                        _ => format!("net{net}/member{member}/layer{layer}"),
                    };
                    let named = |name: &str| format!("{prefix}/{name}");
                    x = self.push(Step::Linear {
                        x,
                        kernel: named("kernel"),
                        bias: bias.then(|| named("bias")),
                    });
                    if layer < hidden.len() {
                        x = self.push(Step::Map { x, f });
                        if *layer_norm {
                            let (scale, shift) = (named("norm_scale"), named("norm_bias"));
                            x = self.push(Step::Norm { x, epsilon: NORM_EPSILON, scale, shift });
                        }
                    }
                }
                x
            })
            .collect();
        match &outputs[..] {
            [single] => *single,
            _ => self.push(Step::Concat { parts: outputs }),
        }
    }

    /// Scales a decision to physical units and clips it to their bounds.
    fn physical(&mut self, decided: usize) {
        let ActionSpace::Continuous { low, high } = &self.policy.actions else { return };
        let unit = self.push(Step::Clip { x: decided, low: -1.0, high: 1.0 });
        if self.policy.actions.is_unit() {
            return;
        }
        let times = self.policy.open_loop;
        let pairs = || low.iter().zip(high).map(|(&low, &high)| (f64::from(low), f64::from(high)));
        let half: Vec<f32> = pairs().map(|(low, high)| (0.5 * (high - low)) as f32).collect();
        let middle: Vec<f32> = pairs().map(|(low, high)| (low + 0.5 * (high - low)) as f32).collect();
        let rows = [&half, &middle, low, high].map(|row| row.repeat(times));
        let [half, middle, low, high] = rows.map(|row| self.constant(&row));
        let scaled = self.combine(Operator::Mul, unit, half);
        let shifted = self.combine(Operator::Add, scaled, middle);
        let above = self.combine(Operator::Max, shifted, low);
        self.combine(Operator::Min, above, high);
    }
}

fn unary(f: Unary, x: usize) -> Result<Step, Error> {
    let map = |f| Step::Map { x, f };
    Ok(match f {
        Unary::Scale(by) => Step::Affine { x, by, add: 0.0 },
        Unary::Shift(add) => Step::Affine { x, by: 1.0, add },
        Unary::Clip(low, high) => Step::Clip { x, low, high },
        Unary::Relu => map(Function::Relu),
        Unary::Tanh => map(Function::Tanh),
        Unary::Mish => map(Function::Mish),
        Unary::Sin => map(Function::Sin),
        Unary::Cos => map(Function::Cos),
        _ => return Err(unsupported("a function of single entries")),
    })
}

fn unsupported(what: &str) -> Error {
    Error::Config(format!("the policy computes {what} that the exported form does not have"))
}
