//! An algorithm: hyperparameters, networks, a loss and a way to act. Everything else is in
//! [`crate::Learner`].

use crate::acting::Situation;
use crate::agent::{AgentError, Metrics};
use crate::agents::album::BoundednessCondition;
use crate::common::Common;
use crate::device::{ACTIONS, DeviceData, STATES};
use crate::encoding::Encoding;
use crate::networks::{NetworkId, Networks};
use crate::noise::Noise;
use crate::parts::critic::Aggregate;
use crate::parts::flow::Through;
use crate::parts::head::taken;
use album_data::{ActionSpace, Batch, Dataset, SegmentConfig, View};
use album_nn::{Mlp, MlpSpec, Tape, Var};
use std::cell::{Cell, RefCell};

/// The hyperparameters of an algorithm, from which it is built.
pub trait Setup: std::fmt::Debug {
    /// The hyperparameters shared by all algorithms.
    fn common(&self) -> &Common;

    /// Refuses values out of range.
    fn check(&self) -> Result<(), AgentError>;

    /// The condition under which values stay bounded, if the algorithm has one.
    fn boundedness(&self) -> Option<BoundednessCondition> {
        None
    }

    /// Updates that values need to settle, if they are bootstrapped one step at a time through a target network
    /// ([`CriticConfig::settling_steps`](crate::parts::critic::CriticConfig::settling_steps)).
    fn settling_steps(&self) -> Option<f64> {
        None
    }

    /// Smallest and largest value in the data, in scaled rewards, if the networks depend on them.
    fn value_range(&self, _data: &Dataset) -> Option<[f32; 2]> {
        None
    }

    /// Refuses action spaces that it does not support; most algorithms need continuous actions.
    fn check_actions(&self, actions: &ActionSpace) -> Result<(), AgentError> {
        match actions {
            ActionSpace::Continuous { .. } => Ok(()),
            ActionSpace::Discrete { n } => Err(AgentError::discrete(*n)),
        }
    }

    /// Creates the networks and the algorithm that trains them.
    fn build(&self, sizes: Sizes, nets: &mut Networks) -> Box<dyn Algorithm>;
}

/// Input and output dimensions of the networks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sizes {
    /// Dimension of an encoded observation.
    pub s: usize,
    /// Dimension of an action.
    pub a: usize,
    /// Number of discrete actions, if actions are discrete.
    pub choices: Option<usize>,
    /// The result of [`Setup::value_range`].
    pub value_range: Option<[f32; 2]>,
}

impl Sizes {
    /// The network of Q, built by `spec` from its input dimension: state and action as input, or the state
    /// alone with an output for each choice.
    pub fn q_spec(&self, spec: impl Fn(usize) -> MlpSpec) -> MlpSpec {
        match self.choices {
            None => spec(self.s + self.a),
            Some(outputs) => MlpSpec { outputs, ..spec(self.s) },
        }
    }
}

/// The part of an agent that its paper describes.
pub trait Algorithm: Send {
    /// The segments that batches consist of.
    fn segments(&self) -> SegmentConfig;

    /// The stages of one update, in order. Within one stage all losses are taken at the same parameters, and
    /// targets average in the weights from before the step; with several stages, each one sees the result of
    /// the previous one, and targets average in the new weights.
    fn stages(&self) -> &'static [Stage] {
        &[Stage::All]
    }

    /// The sum of the losses of [`Inputs::stage`] on one batch.
    fn loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>) -> Loss<'t>;

    /// How the policy acts, with copies of the networks that it needs. Continuous actions are then clipped to
    /// [-1, 1] and converted to physical units; a discrete one is its index.
    fn decide(&self, nets: &Networks) -> Decide;

    /// How the policy acts when it collects its own data; by default as in [`Algorithm::decide`].
    fn explore(&self, nets: &Networks) -> Decide {
        self.decide(nets)
    }

    /// Number of actions, side by side in a row of what [`Algorithm::decide`] returns, that are executed
    /// before the next decision.
    fn open_loop(&self) -> usize {
        1
    }

    /// The state-value network, if there is one.
    fn value(&self) -> Option<NetworkId> {
        None
    }

    /// The Q network of single actions, if there is one, and how its ensemble members are aggregated.
    fn q(&self) -> Option<(NetworkId, Aggregate)> {
        None
    }

    /// Whether a target network is updated at `step` (counted from 0).
    fn moves(&self, _target: NetworkId, _step: u64) -> bool {
        true
    }

    /// Gradient-norm limit of the value networks, and of the policy networks, if gradients are clipped.
    fn max_grad_norm(&self) -> Option<f64> {
        None
    }
}

/// The networks that one stage of an update trains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// All networks.
    All,
    /// The value networks.
    Critic,
    /// The policy networks.
    Actor,
}

impl Stage {
    /// Whether it trains the value networks, or the others.
    pub fn trains(self, is_value: bool) -> bool {
        match self {
            Stage::All => true,
            Stage::Critic => is_value,
            Stage::Actor => !is_value,
        }
    }
}

/// Maps situations to actions, row by row.
pub type Decide = Box<dyn for<'t> FnMut(&Situation<'t, '_>) -> Var<'t> + Send>;

/// A batch on the tape.
pub struct Inputs<'t, 'a> {
    /// The tape that records everything.
    pub tape: &'t Tape,
    /// Which losses to compute.
    pub stage: Stage,
    /// The step (counted from 0), for schedules.
    pub step: u64,
    /// The total number of steps.
    pub total_steps: u64,
    /// Whether the measures will be read; otherwise they need not be computed.
    pub measured: bool,
    pub(crate) choices: Option<usize>,
    pub(crate) batch: &'a Batch,
    /// Where the rows of the batch are on a device that has the data.
    pub(crate) device_data: Option<&'a DeviceData>,
    pub(crate) encoding: &'a Encoding,
    pub(crate) reward_scale: f32,
    pub(crate) noise: RefCell<&'a mut Noise>,
    /// Block ranges of [s; s'; s_K] that are already encoded.
    pub(crate) encoded: Cell<[Option<(usize, usize, Var<'t>)>; 3]>,
    /// `[s, a]`, if already concatenated.
    pub(crate) joined: Cell<Option<Var<'t>>>,
}

impl std::fmt::Debug for Inputs<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inputs")
            .field("stage", &self.stage)
            .field("step", &self.step)
            .field("rows", &self.rows())
            .finish_non_exhaustive()
    }
}

impl<'t> Inputs<'t, '_> {
    /// Batch size.
    pub fn rows(&self) -> usize {
        self.batch.len()
    }

    /// Blocks `from..to` of [s; s'; s_K], stacked so that a network can process several in one pass. Encoded
    /// from the batch directly onto the tape, once.
    pub fn states(&self, from: usize, to: usize) -> Var<'t> {
        let rows = self.rows();
        let mut encoded = self.encoded.get();
        for &(first, last, var) in encoded.iter().flatten() {
            if (first, last) == (from, to) {
                return var;
            }
            if first <= from && to <= last {
                return var.slice_rows((from - first) * rows, (to - first) * rows);
            }
        }
        let view = self.batch.states().range(from * rows..to * rows);
        let fill = |out: &mut [f32]| self.encoding.encode(view, out);
        let (rows, cols) = (view.rows(), self.encoding.dim());
        let at = |data: &DeviceData| data.states(self.batch, from, to);
        let var = self.given(STATES, at, rows, cols, fill);
        if let Some(free) = encoded.iter_mut().find(|entry| entry.is_none()) {
            *free = Some((from, to, var));
            self.encoded.set(encoded);
        }
        var
    }

    /// The states `s`.
    pub fn s(&self) -> Var<'t> {
        self.states(0, 1)
    }

    /// The states one step later.
    pub fn s_next(&self) -> Var<'t> {
        self.states(1, 2)
    }

    /// The states at the end of each window.
    pub fn s_last(&self) -> Var<'t> {
        self.states(2, 3)
    }

    /// A part of the batch: rows of a table where a device has it, which `at` names.
    fn given(
        &self,
        table: usize,
        at: impl FnOnce(&DeviceData) -> Vec<u32>,
        rows: usize,
        cols: usize,
        fill: impl FnOnce(&mut [f32]),
    ) -> Var<'t> {
        match self.device_data {
            Some(data) => self.tape.constant_of_table(table, || at(data), rows, cols, fill),
            None => self.tape.constant_with(rows, cols, fill),
        }
    }

    fn actions(&self, view: View<'_>, at: impl FnOnce(&DeviceData) -> Vec<u32>) -> Var<'t> {
        self.given(ACTIONS, at, view.rows(), view.cols(), |out| out.copy_from_slice(view.data()))
    }

    fn column(&self, data: &[f32]) -> Var<'t> {
        self.tape.constant_slice(self.rows(), 1, data)
    }

    /// The actions `a`.
    pub fn a(&self) -> Var<'t> {
        self.actions(self.batch.actions(), |_| DeviceData::actions(self.batch))
    }

    /// States and actions concatenated, `[s, a]`.
    pub fn s_a(&self) -> Var<'t> {
        let s_a = self.joined.get().unwrap_or_else(|| self.beside_states(self.batch.actions(), || self.a()));
        self.joined.set(Some(s_a));
        s_a
    }

    /// Q of every member at the recorded states and actions.
    pub fn q(&self, net: &Mlp, through: Through) -> Var<'t> {
        match self.choices {
            None => through.apply(net, self.s_a()),
            Some(choices) => taken(through.apply(net, self.s()), self.a(), choices),
        }
    }

    /// States and action chunks concatenated.
    pub fn s_chunk(&self) -> Var<'t> {
        self.beside_states(self.batch.chunks(), || self.chunk())
    }

    /// States with actions beside them, copied directly from the batch unless states are encoded, which is done once. On a
    /// device that holds the data, both are there already.
    fn beside_states(&self, actions: View<'_>, on_device: impl FnOnce() -> Var<'t>) -> Var<'t> {
        if self.device_data.is_some() {
            return self.tape.concat_cols(&[self.s(), on_device()]);
        }
        let (rows, s, a) = (self.rows(), self.encoding.dim(), actions.cols());
        let join = |states: &[f32], out: &mut [f32]| {
            let pairs = states.chunks_exact(s).zip(actions.iter());
            for (out, (state, action)) in out.chunks_exact_mut(s + a).zip(pairs) {
                out[..s].copy_from_slice(state);
                out[s..].copy_from_slice(action);
            }
        };
        if self.encoding.is_identity() {
            let states = self.batch.states().range(0..rows);
            self.tape.constant_with(rows, s + a, |out| join(states.data(), out))
        } else {
            self.tape.constant_of([self.s()], rows, s + a, |[states], out| join(states, out))
        }
    }

    /// The recorded actions one step later.
    pub fn a_next(&self) -> Var<'t> {
        self.actions(self.batch.next_actions(), |data| data.next_actions(self.batch))
    }

    /// Consecutive actions `a_t, a_(t+1), ...` side by side, as many as [`SegmentConfig`] asks for.
    pub fn chunk(&self) -> Var<'t> {
        self.actions(self.batch.chunks(), |data| data.chunks(self.batch))
    }

    /// 1 for each action of the chunk inside its episode, 0 beyond its end.
    pub fn valids(&self) -> Var<'t> {
        let valids = self.batch.valids();
        self.tape.constant_slice(valids.rows(), valids.cols(), valids.data())
    }

    /// The rewards, scaled.
    pub fn r(&self) -> Var<'t> {
        self.reward_scale * self.column(self.batch.rewards())
    }

    /// The masks `m`: 0 where the task is solved in `s`.
    pub fn m(&self) -> Var<'t> {
        self.column(self.batch.masks())
    }

    /// The discounted rewards of each window, scaled.
    pub fn r_k(&self) -> Var<'t> {
        self.reward_scale * self.column(self.batch.returns_k())
    }

    /// The factor of V(`s_last`) in the K-step target: `gamma^h`, or 0 after a goal.
    pub fn g_k(&self) -> Var<'t> {
        self.column(self.batch.bootstraps_k())
    }

    /// The weight of each window in K-step losses.
    pub fn w_k(&self) -> Var<'t> {
        self.column(self.batch.weights_k())
    }

    /// Standard normal noise.
    pub fn normal(&self, cols: usize) -> Var<'t> {
        self.normal_rows(self.rows(), cols)
    }

    /// Standard normal noise with any number of rows.
    pub fn normal_rows(&self, rows: usize, cols: usize) -> Var<'t> {
        self.tape.constant_with(rows, cols, |out| self.noise.borrow_mut().normal(out))
    }

    /// Noise uniform on [0, 1).
    pub fn uniform(&self, cols: usize) -> Var<'t> {
        self.tape.constant_with(self.rows(), cols, |out| self.noise.borrow_mut().uniform(out))
    }

    /// Measures, which are kept only if they will be read.
    pub fn measures(&self) -> Measures<'t> {
        Measures { kept: self.measured, measures: Vec::new() }
    }
}

/// A loss and its metrics.
#[derive(Debug)]
pub struct Loss<'t> {
    /// The minimised loss.
    pub total: Var<'t>,
    /// The logged metrics.
    pub measures: Measures<'t>,
}

/// Named metrics of an update, read from the tape only on demand.
#[derive(Debug)]
pub struct Measures<'t> {
    kept: bool,
    measures: Vec<(&'static str, Measure, Var<'t>)>,
}

#[derive(Clone, Copy, Debug)]
enum Measure {
    Mean,
    /// A mean of values, which is divided by the reward scale.
    ValueMean,
    ValueMax,
    ValueMin,
    ShareSatisfied,
}

impl<'t> Measures<'t> {
    fn push(&mut self, name: &'static str, measure: Measure, x: Var<'t>) -> &mut Self {
        if self.kept {
            self.measures.push((name, measure, x));
        }
        self
    }

    /// The mean of all entries.
    pub fn mean(&mut self, name: &'static str, x: Var<'t>) -> &mut Self {
        self.push(name, Measure::Mean, x)
    }

    /// The mean of values, in units of the data's rewards.
    pub fn value(&mut self, name: &'static str, x: Var<'t>) -> &mut Self {
        self.push(name, Measure::ValueMean, x)
    }

    /// Mean, maximum and minimum of values under three names, in units of the data's rewards.
    pub fn range(&mut self, [mean, max, min]: [&'static str; 3], x: Var<'t>) -> &mut Self {
        self.push(mean, Measure::ValueMean, x).push(max, Measure::ValueMax, x).push(min, Measure::ValueMin, x)
    }

    /// Mean, maximum and minimum of Q.
    pub fn q(&mut self, q: Var<'t>) -> &mut Self {
        self.range(["critic/q_mean", "critic/q_max", "critic/q_min"], q)
    }

    /// Mean, maximum and minimum of V.
    pub fn v(&mut self, v: Var<'t>) -> &mut Self {
        self.range(["value/v_mean", "value/v_max", "value/v_min"], v)
    }

    /// The fraction of entries with `g <= 0`: how often a constraint is satisfied.
    pub fn share_satisfied(&mut self, name: &'static str, g: Var<'t>) -> &mut Self {
        self.push(name, Measure::ShareSatisfied, g)
    }

    /// The measures in the form that a device takes.
    pub(crate) fn places(&self) -> Vec<(album_xla::Measure, usize)> {
        let reduction = |measure: Measure| match measure {
            Measure::Mean | Measure::ValueMean => album_xla::Measure::Mean,
            Measure::ValueMax => album_xla::Measure::Max,
            Measure::ValueMin => album_xla::Measure::Min,
            Measure::ShareSatisfied => album_xla::Measure::ShareNotPositive,
        };
        self.measures.iter().map(|&(_, measure, x)| (reduction(measure), x.place())).collect()
    }

    /// The names of the measures, and the divisor of each.
    pub(crate) fn units(&self, reward_scale: f64) -> Vec<(&'static str, f64)> {
        let unit = |measure: Measure| match measure {
            Measure::Mean | Measure::ShareSatisfied => 1.0,
            Measure::ValueMean | Measure::ValueMax | Measure::ValueMin => reward_scale,
        };
        self.measures.iter().map(|&(name, measure, _)| (name, unit(measure))).collect()
    }

    /// Appends the measured values.
    pub(crate) fn read(&self, reward_scale: f64, metrics: &mut Metrics) {
        let wide = |x: &f32| f64::from(*x);
        for &(name, measure, x) in &self.measures {
            let value = x.with_value(|x| match measure {
                Measure::Mean => mean(x),
                Measure::ValueMean => mean(x) / reward_scale,
                Measure::ValueMax => x.iter().map(wide).fold(f64::NEG_INFINITY, f64::max) / reward_scale,
                Measure::ValueMin => x.iter().map(wide).fold(f64::INFINITY, f64::min) / reward_scale,
                Measure::ShareSatisfied => {
                    x.iter().filter(|g| **g <= 0.0).count() as f64 / x.len().max(1) as f64
                }
            });
            metrics.push((name.into(), value));
        }
    }
}

fn mean(x: &[f32]) -> f64 {
    x.iter().map(|&x| f64::from(x)).sum::<f64>() / x.len().max(1) as f64
}
