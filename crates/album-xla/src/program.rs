//! Emits one update as one program: losses, gradients, clipping, Adam, target networks, metrics.

use crate::XlaError;
use crate::emit::{Graph, is_input};
use crate::hlo::{Fold, Hlo, Shape, Value};
use crate::step::{Measure, Net, Role, Stage, Step};
use album_nn::Origin;

/// How many scalars of a trained network change with the step: `rate`, `root` and `kept` of `Emitter::adam`.
pub(crate) const RATES: usize = 3;

/// A program and where its results go.
pub(crate) struct Program {
    pub(crate) text: String,
    /// The state slots that the program updates, in the order of its results; the report is the last result.
    pub(crate) changed: Vec<usize>,
    /// Length of the report: the loss and the metrics of each stage, then the gradient norms.
    pub(crate) report: usize,
}

/// The slot of a network's first weight tensor; its moments follow the weights.
fn first_slot(nets: &[Net], net: usize) -> usize {
    nets[..net].iter().map(|net| net.copies() * net.tensors.len()).sum()
}

struct Emitter<'a> {
    hlo: Hlo,
    nets: &'a [Net],
    lead: &'a [usize],
    /// The current value of every state tensor.
    state: Vec<Value>,
    /// The step's inputs in one flat tensor, and how many of them have been consumed.
    data: Value,
    used: usize,
    tables: Vec<Value>,
    /// Row indices into the tables, and how many of them have been consumed.
    places: Option<Value>,
    placed: usize,
    report: Vec<Value>,
    norms: Vec<Value>,
}

/// Emits an update of `lead` independent copies of everything but the tables. The arguments are the state,
/// then the tables and `places` row indices into them (if there are tables), then `inputs` numbers, of which
/// the rates come first.
pub(crate) fn emit(
    nets: &[Net],
    step: &Step,
    lead: &[usize],
    tables: &[[usize; 2]],
    places: usize,
    inputs: usize,
) -> Result<Program, XlaError> {
    let mut hlo = Hlo::default();
    let mut given = Vec::new();
    for net in nets {
        for _ in 0..net.copies() {
            for dims in &net.tensors {
                given.push(hlo.argument(Shape::new(&[lead, dims].concat())));
            }
        }
    }
    let tables: Vec<Value> = tables.iter().map(|dims| hlo.argument(Shape::new(dims))).collect();
    let places = (!tables.is_empty()).then(|| hlo.places(Shape::new(&[lead, &[places]].concat())));
    let data = hlo.argument(Shape::new(&[lead, &[inputs]].concat()));
    let others: Vec<Value> = tables.iter().copied().chain(places).chain([data]).collect();
    let mut emitter = Emitter {
        state: given.clone(),
        hlo,
        nets,
        lead,
        data,
        used: 0,
        tables,
        places,
        placed: 0,
        report: Vec::new(),
        norms: Vec::new(),
    };
    let rates: Vec<Option<[Value; RATES]>> = nets.iter().map(|net| emitter.rates(net)).collect();
    for stage in &step.stages {
        emitter.stage(stage, step, &rates)?;
    }
    if !step.before {
        emitter.track(&step.moves);
    }
    let Emitter { mut hlo, state, report, norms, .. } = emitter;
    let report: Vec<Value> = report.into_iter().chain(norms).collect();
    let numbers: Vec<Value> =
        report.iter().map(|&x| hlo.reshape(x, Shape::new(&[lead, &[1]].concat()))).collect();
    let changed: Vec<usize> = (0..state.len()).filter(|&slot| state[slot] != given[slot]).collect();
    let mut results: Vec<Value> = changed.iter().map(|&slot| state[slot]).collect();
    results.push(hlo.concat(&numbers, lead.len()));
    let alias = |slot: usize| changed.iter().position(|&changed| changed == slot);
    let arguments: Vec<(Value, Option<usize>)> = given
        .into_iter()
        .enumerate()
        .map(|(slot, value)| (value, alias(slot)))
        .chain(others.into_iter().map(|value| (value, None)))
        .collect();
    Ok(Program { text: hlo.finish(&arguments, &results), changed, report: report.len() })
}

impl Emitter<'_> {
    /// Consumes the next inputs as a tensor of these dimensions.
    fn next(&mut self, dims: &[usize]) -> Value {
        let count = dims.iter().product();
        let mut from = vec![0; self.lead.len()];
        from.push(self.used);
        self.used += count;
        let part = self.hlo.slice(self.data, &from, Shape::new(&[self.lead, &[count]].concat()));
        self.hlo.reshape(part, Shape::new(&[self.lead, dims].concat()))
    }

    /// Consumes the next row indices and gathers those rows of a table into a matrix.
    fn next_rows(&mut self, table: usize, dims: &[usize; 2]) -> Result<Value, XlaError> {
        let (Some(&table), Some(places)) = (self.tables.get(table), self.places) else {
            return Err(XlaError::Unsupported("a table is not on the device".into()));
        };
        let count = dims[0] * dims[1] / table.dims()[1].max(1);
        let mut from = vec![0; self.lead.len()];
        from.push(self.placed);
        self.placed += count;
        let at = self.hlo.slice(places, &from, Shape::new(&[self.lead, &[count]].concat()));
        let rows = self.hlo.rows(table, at);
        Ok(self.hlo.reshape(rows, Shape::new(&[self.lead, dims].concat())))
    }

    fn rates(&mut self, net: &Net) -> Option<[Value; RATES]> {
        net.is_trained().then(|| std::array::from_fn(|_| self.next(&[1])))
    }

    fn weights(&self, net: usize) -> Vec<Value> {
        let first = first_slot(self.nets, net);
        self.state[first..first + self.nets[net].tensors.len()].to_vec()
    }

    fn stage(
        &mut self,
        stage: &Stage,
        step: &Step,
        rates: &[Option<[Value; RATES]>],
    ) -> Result<(), XlaError> {
        let recording = &stage.recording;
        // `Ask::new` has replaced the ids by indices into `nets`.
        let places: Vec<usize> = recording.ids.iter().map(|&id| id as usize).collect();
        let nets = places.iter().map(|&net| (&self.nets[net].spec, self.weights(net))).collect();
        let mut inputs = Vec::new();
        for x in &recording.values {
            inputs.push(match x.origin {
                Origin::Rows { table, .. } => Some(self.next_rows(table, &[x.rows, x.cols])?),
                _ => is_input(x).then(|| self.next(&[x.rows, x.cols])),
            });
        }
        let zero = self.data;
        let input = |_: &mut Hlo, i: usize| inputs[i].unwrap_or(zero);
        let graph = Graph::emit(&mut self.hlo, recording, self.lead, nets, input)?;
        let gradients = graph.backward(&mut self.hlo, stage.loss, 0, true);
        self.report.push(graph.at(stage.loss));
        for &(measure, place) in &stage.measures {
            let number = self.measure(measure, graph.at(place));
            self.report.push(number);
        }
        let of_net = |net: usize| -> Option<&[Value]> {
            gradients.of_net(places.iter().position(|&place| place == net)?)
        };
        let squares: Vec<(usize, Value)> = if step.norms || step.max_norm.is_some() {
            stage.trains.iter().map(|&net| (net, self.square(of_net(net).unwrap_or_default()))).collect()
        } else {
            Vec::new()
        };
        if step.norms {
            for &(_, square) in &squares {
                let norm = self.hlo.map("sqrt", square);
                self.norms.push(norm);
            }
        }
        if step.before {
            self.track(&step.moves);
        }
        let scales = [false, true].map(|of_values| self.clipping(step.max_norm, &squares, of_values));
        for &net in &stage.trains {
            if let (Role::Trained { is_value, .. }, Some(rates)) = (&self.nets[net].role, rates[net]) {
                self.adam(net, of_net(net), scales[usize::from(*is_value)], rates);
            }
        }
        Ok(())
    }

    fn measure(&mut self, measure: Measure, x: Value) -> Value {
        let [rows, cols] = [self.lead.len(), self.lead.len() + 1];
        let hlo = &mut self.hlo;
        let (fold, x) = match measure {
            Measure::Max => (Fold::Max, x),
            Measure::Min => (Fold::Min, x),
            Measure::Mean => (Fold::Add, x),
            Measure::ShareNotPositive => {
                let counts = hlo.compare_with("LE", x, 0.0);
                (Fold::Add, hlo.choose(counts, 1.0, 0.0))
            }
        };
        let folded = hlo.fold(fold, x, &[rows, cols]);
        if fold == Fold::Add {
            hlo.scale(folded, 1.0 / (x.dims()[rows] * x.dims()[cols]).max(1) as f32)
        } else {
            folded
        }
    }

    /// The squared norm of some tensors taken together.
    fn square(&mut self, tensors: &[Value]) -> Value {
        let one = Shape::new(&[self.lead, &[1]].concat());
        let mut total = self.hlo.constant(0.0, one);
        for &x in tensors {
            let square = self.hlo.mul(x, x);
            let dims: Vec<usize> = (self.lead.len()..x.dims().len()).collect();
            let sum = self.hlo.fold(Fold::Add, square, &dims);
            let sum = self.hlo.reshape(sum, one);
            total = self.hlo.add(total, sum);
        }
        total
    }

    /// The factor that clips the gradients of the value networks, or of the policy; `None` if they are not clipped.
    fn clipping(&mut self, most: Option<f64>, squares: &[(usize, Value)], of_values: bool) -> Option<Value> {
        let most = most?;
        let is_of_group = |net: usize| matches!(self.nets[net].role, Role::Trained { is_value, .. } if is_value == of_values);
        let group: Vec<Value> = squares.iter().filter(|(net, _)| is_of_group(*net)).map(|x| x.1).collect();
        let (&first, rest) = group.split_first()?;
        let hlo = &mut self.hlo;
        let square = rest.iter().fold(first, |sum, &x| hlo.add(sum, x));
        let norm = hlo.map("sqrt", square);
        let norm = hlo.shift(norm, 1e-6);
        let [most, one] = [most as f32, 1.0].map(|x| hlo.constant(x, norm.shape));
        let scale = hlo.div(most, norm);
        Some(hlo.zip("minimum", scale, one))
    }

    /// Broadcasts one number per leading copy to the shape of a tensor.
    fn spread(&mut self, number: Value, shape: Shape) -> Value {
        let mut dims = vec![1; shape.dims().len()];
        dims[..self.lead.len()].copy_from_slice(self.lead);
        let number = self.hlo.reshape(number, Shape::new(&dims));
        self.hlo.fill(number, shape)
    }

    /// `m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2, p = kept p - rate m / (root sqrt(v) + epsilon)`.
    fn adam(&mut self, net: usize, gradients: Option<&[Value]>, scale: Option<Value>, rates: [Value; RATES]) {
        let Role::Trained { beta1, beta2, epsilon, decays, .. } = self.nets[net].role else { return };
        let (first, count) = (first_slot(self.nets, net), self.nets[net].tensors.len());
        for i in 0..count {
            let slots = [first + i, first + count + i, first + 2 * count + i];
            let [mut p, m, v] = slots.map(|slot| self.state[slot]);
            let [mut m_new, mut v_new] =
                [(m, beta1), (v, beta2)].map(|(x, beta)| self.hlo.scale(x, beta as f32));
            if let Some(gradients) = gradients {
                let mut g = gradients[i];
                if let Some(scale) = scale {
                    let scale = self.spread(scale, g.shape);
                    g = self.hlo.mul(scale, g);
                }
                let square = self.hlo.mul(g, g);
                let part = self.hlo.scale(g, (1.0 - beta1) as f32);
                m_new = self.hlo.add(m_new, part);
                let part = self.hlo.scale(square, (1.0 - beta2) as f32);
                v_new = self.hlo.add(v_new, part);
            }
            let [rate, root, kept] = rates.map(|rate| self.spread(rate, p.shape));
            if decays {
                p = self.hlo.mul(kept, p);
            }
            let deviation = self.hlo.map("sqrt", v_new);
            let deviation = self.hlo.mul(deviation, root);
            let deviation = self.hlo.shift(deviation, epsilon as f32);
            let change = self.hlo.mul(rate, m_new);
            let change = self.hlo.div(change, deviation);
            p = self.hlo.sub(p, change);
            for (slot, new) in slots.into_iter().zip([p, m_new, v_new]) {
                self.state[slot] = new;
            }
        }
    }

    /// `target = tau * online + (1 - tau) * target`.
    fn track(&mut self, moves: &[usize]) {
        for &net in moves {
            let Role::Target { of, tau } = self.nets[net].role else { continue };
            let (target, online) = (first_slot(self.nets, net), first_slot(self.nets, of));
            for i in 0..self.nets[net].tensors.len() {
                let new = self.hlo.scale(self.state[online + i], tau);
                let old = self.hlo.scale(self.state[target + i], 1.0 - tau);
                self.state[target + i] = self.hlo.add(new, old);
            }
        }
    }
}
