//! What an algorithm is: hyperparameters, networks, a loss and a way to act. Everything else is in [`crate::Learner`].

use crate::acting::Situation;
use crate::agent::{AgentError, Metrics};
use crate::agents::album::BoundednessCondition;
use crate::common::Common;
use crate::device::{ACTIONS, DataThere, STATES};
use crate::encoding::Encoding;
use crate::networks::{NetworkId, Networks};
use crate::noise::Noise;
use crate::parts::critic::Aggregate;
use crate::parts::flow::Through;
use crate::parts::head::taken;
use album_data::{ActionSpace, Batch, Dataset, SegmentConfig, View};
use album_nn::{Mlp, MlpSpec, Tape, Var};
use std::cell::{Cell, RefCell};

/// The hyperparameters of an algorithm, which make one.
pub trait Setup: std::fmt::Debug {
    /// The hyperparameters that every algorithm has.
    fn common(&self) -> &Common;

    /// Refuses what is outside its domain.
    fn check(&self) -> Result<(), AgentError>;

    /// The condition under which values stay bounded, where that is not a matter of course.
    fn boundedness(&self) -> Option<BoundednessCondition> {
        None
    }

    /// Lowest and highest value in the data, in scaled rewards, where networks depend on them.
    fn value_range(&self, _data: &Dataset) -> Option<[f32; 2]> {
        None
    }

    /// Refuses actions that it cannot learn. Most algorithms need numbers.
    fn check_actions(&self, actions: &ActionSpace) -> Result<(), AgentError> {
        match actions {
            ActionSpace::Continuous { .. } => Ok(()),
            ActionSpace::Discrete { n } => Err(AgentError::discrete(*n)),
        }
    }

    /// Makes the networks and the algorithm that trains them.
    fn build(&self, sizes: Sizes, nets: &mut Networks) -> Box<dyn Algorithm>;
}

/// The widths of what networks see and return.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sizes {
    /// Columns of an encoded observation.
    pub s: usize,
    /// Columns of an action.
    pub a: usize,
    /// How many actions there are to choose from, where an action is the index of a choice.
    pub choices: Option<usize>,
    /// What [`Setup::value_range`] found.
    pub value_range: Option<[f32; 2]>,
}

impl Sizes {
    /// The network of Q, from what `spec` makes of its inputs: state and action, or the state with an output for each
    /// choice.
    pub fn q_spec(&self, spec: impl Fn(usize) -> MlpSpec) -> MlpSpec {
        match self.choices {
            None => spec(self.s + self.a),
            Some(outputs) => MlpSpec { outputs, ..spec(self.s) },
        }
    }
}

/// The part of an agent that is in its paper.
pub trait Algorithm: Send {
    /// How batches are cut out of the data.
    fn segments(&self) -> SegmentConfig;

    /// The stages of one update, in order. In one stage all losses are taken at the same parameters and targets mix in
    /// the weights from before the step; in several, each stage sees what the one before has learned and targets mix in
    /// the new weights.
    fn stages(&self) -> &'static [Stage] {
        &[Stage::All]
    }

    /// The sum of the losses of [`Inputs::stage`] on one batch.
    fn loss<'t>(&self, nets: &Networks, x: &Inputs<'t, '_>) -> Loss<'t>;

    /// How the policy acts, with copies of the networks that it needs. Continuous actions are clipped to [-1, 1] afterwards
    /// and brought to their physical units; a discrete one is its index.
    fn decide(&self, nets: &Networks) -> Decide;

    /// How the policy acts where it collects its own data. As it always acts, unless it has a way to try more.
    fn explore(&self, nets: &Networks) -> Decide {
        self.decide(nets)
    }

    /// How many actions, side by side in a row of what [`Algorithm::decide`] returns, are executed before the next
    /// decision.
    fn open_loop(&self) -> usize {
        1
    }

    /// The state value network, where there is one.
    fn value(&self) -> Option<NetworkId> {
        None
    }

    /// The network of Q for single actions, where there is one, and what makes one value of its members.
    fn q(&self) -> Option<(NetworkId, Aggregate)> {
        None
    }

    /// Whether a target network moves in the update at `step` (counted from 0).
    fn moves(&self, _target: NetworkId, _step: u64) -> bool {
        true
    }

    /// The largest norm of the gradient of the value networks, and of that of the policy's networks, if they are clipped.
    fn max_grad_norm(&self) -> Option<f64> {
        None
    }
}

/// The networks that one stage of an update trains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// All of them.
    All,
    /// The networks that estimate values.
    Critic,
    /// The networks of the policy.
    Actor,
}

impl Stage {
    /// Whether it trains a network that estimates values, or one that does not.
    pub fn trains(self, is_value: bool) -> bool {
        match self {
            Stage::All => true,
            Stage::Critic => is_value,
            Stage::Actor => !is_value,
        }
    }
}

/// From situations to actions, row by row.
pub type Decide = Box<dyn for<'t> FnMut(&Situation<'t, '_>) -> Var<'t> + Send>;

/// A batch on the tape.
pub struct Inputs<'t, 'a> {
    /// Where everything is recorded.
    pub tape: &'t Tape,
    /// Which losses are asked for.
    pub stage: Stage,
    /// The step (counted from 0), for what is not done at every one.
    pub step: u64,
    /// How many there will be.
    pub total_steps: u64,
    /// Whether the measures will be read: what is only measured need not be computed otherwise.
    pub measured: bool,
    pub(crate) choices: Option<usize>,
    pub(crate) batch: &'a Batch,
    /// Where the rows of the batch are on a device that has the data.
    pub(crate) there: Option<&'a DataThere>,
    pub(crate) encoding: &'a Encoding,
    pub(crate) reward_scale: f32,
    pub(crate) noise: RefCell<&'a mut Noise>,
    /// Ranges of blocks of [s; s'; s_K] that are encoded already.
    pub(crate) encoded: Cell<[Option<(usize, usize, Var<'t>)>; 3]>,
    /// `[s, a]`, where it is joined already.
    pub(crate) joined: Cell<Option<Var<'t>>>,
}

impl<'t> Inputs<'t, '_> {
    /// Rows of the batch.
    pub fn rows(&self) -> usize {
        self.batch.len()
    }

    /// Blocks `from..to` of [s; s'; s_K] below each other: one pass of a network can take several. Encoded straight from
    /// the batch onto the tape, and once only.
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
        let at = |there: &DataThere| there.states(self.batch, from, to);
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
        at: impl FnOnce(&DataThere) -> Vec<u32>,
        rows: usize,
        cols: usize,
        fill: impl FnOnce(&mut [f32]),
    ) -> Var<'t> {
        match self.there {
            Some(there) => self.tape.constant_of_table(table, || at(there), rows, cols, fill),
            None => self.tape.constant_with(rows, cols, fill),
        }
    }

    fn actions(&self, view: View<'_>, at: impl FnOnce(&DataThere) -> Vec<u32>) -> Var<'t> {
        self.given(ACTIONS, at, view.rows(), view.cols(), |out| out.copy_from_slice(view.data()))
    }

    fn column(&self, data: &[f32]) -> Var<'t> {
        self.tape.constant_slice(self.rows(), 1, data)
    }

    /// The actions `a`.
    pub fn a(&self) -> Var<'t> {
        self.actions(self.batch.actions(), |_| DataThere::actions(self.batch))
    }

    /// States and actions side by side, `[s, a]`.
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

    /// States and chunks of actions side by side.
    pub fn s_chunk(&self) -> Var<'t> {
        self.beside_states(self.batch.chunks(), || self.chunk())
    }

    /// States with actions beside them. Straight from the batch, but for states that are encoded: these are computed once. On a
    /// device that has the data both are there already.
    fn beside_states(&self, actions: View<'_>, there: impl FnOnce() -> Var<'t>) -> Var<'t> {
        if self.there.is_some() {
            return self.tape.concat_cols(&[self.s(), there()]);
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
        self.actions(self.batch.next_actions(), |there| there.next_actions(self.batch))
    }

    /// Consecutive actions `a_t, a_(t+1), ...`, as many as [`SegmentConfig`] asks for, side by side.
    pub fn chunk(&self) -> Var<'t> {
        self.actions(self.batch.chunks(), |there| there.chunks(self.batch))
    }

    /// 1 for each action of the chunk that lies inside its episode, 0 behind its end.
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

    /// What the value of `s_last` counts in the K-step target: `gamma^h`, or 0 after a goal.
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

    /// Standard normal noise of any height.
    pub fn normal_rows(&self, rows: usize, cols: usize) -> Var<'t> {
        self.tape.constant_with(rows, cols, |out| self.noise.borrow_mut().normal(out))
    }

    /// Noise uniform on [0, 1).
    pub fn uniform(&self, cols: usize) -> Var<'t> {
        self.tape.constant_with(self.rows(), cols, |out| self.noise.borrow_mut().uniform(out))
    }

    /// Measures, which are kept only where they will be read.
    pub fn measures(&self) -> Measures<'t> {
        Measures { kept: self.measured, measures: Vec::new() }
    }
}

/// A loss and its metrics.
pub struct Loss<'t> {
    /// What is minimised.
    pub total: Var<'t>,
    /// What is logged.
    pub measures: Measures<'t>,
}

/// Named numbers of an update, read off the tape only if they are asked for.
pub struct Measures<'t> {
    kept: bool,
    measures: Vec<(&'static str, Measure, Var<'t>)>,
}

#[derive(Clone, Copy)]
enum Measure {
    Mean,
    /// Of values, which are divided by the scale of rewards.
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

    /// The mean of all entries; of a single number, the number.
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

    /// The share of entries with `g <= 0`: how often a constraint is satisfied.
    pub fn share_satisfied(&mut self, name: &'static str, g: Var<'t>) -> &mut Self {
        self.push(name, Measure::ShareSatisfied, g)
    }

    /// What a device is asked for.
    pub(crate) fn places(&self) -> Vec<(album_xla::Measure, usize)> {
        let of = |measure: Measure| match measure {
            Measure::Mean | Measure::ValueMean => album_xla::Measure::Mean,
            Measure::ValueMax => album_xla::Measure::Max,
            Measure::ValueMin => album_xla::Measure::Min,
            Measure::ShareSatisfied => album_xla::Measure::ShareNotPositive,
        };
        self.measures.iter().map(|&(_, measure, x)| (of(measure), x.place())).collect()
    }

    /// The names of the measures, and what each is divided by.
    pub(crate) fn units(&self, reward_scale: f64) -> Vec<(&'static str, f64)> {
        let unit = |measure: Measure| match measure {
            Measure::Mean | Measure::ShareSatisfied => 1.0,
            Measure::ValueMean | Measure::ValueMax | Measure::ValueMin => reward_scale,
        };
        self.measures.iter().map(|&(name, measure, _)| (name, unit(measure))).collect()
    }

    /// Appends the numbers.
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
