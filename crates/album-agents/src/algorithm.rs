//! What an algorithm is: hyperparameters, networks, a loss and a way to act. Everything else is in [`crate::Learner`].

use crate::acting::Situation;
use crate::agent::{AgentError, Metrics};
use crate::common::Common;
use crate::networks::{Id, Networks};
use crate::noise::Noise;
use album_data::{Batch, Dataset, SegmentConfig, View};
use album_nn::{Tape, Var};
use std::cell::RefCell;

/// The hyperparameters of an algorithm, which make one.
pub trait Setup: std::fmt::Debug {
    /// Those that every algorithm has.
    fn common(&self) -> &Common;

    /// Refuses what is outside its domain.
    fn check(&self) -> Result<(), AgentError>;

    /// The hyperparameters of the ALBUM critic, where there is one: its values are bounded only under a condition.
    fn album_critic(&self) -> Option<&crate::agents::album::Config> {
        None
    }

    /// Makes the networks and the algorithm that trains them.
    fn build(&self, sizes: Sizes, nets: &mut Networks) -> Box<dyn Algorithm>;

    /// The same for data of which more than its sizes matters.
    fn build_for(&self, _data: &Dataset, sizes: Sizes, nets: &mut Networks) -> Box<dyn Algorithm> {
        self.build(sizes, nets)
    }
}

/// The widths of what networks see and return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Columns of an encoded observation.
    pub s: usize,
    /// Columns of an action.
    pub a: usize,
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

    /// How the policy acts, with copies of the networks that it needs. The actions are clipped to [-1, 1] afterwards.
    fn decide(&self, nets: &Networks) -> Decide;

    /// How many actions, side by side in a row of what [`Algorithm::decide`] returns, are executed before the next
    /// decision.
    fn open_loop(&self) -> usize {
        1
    }

    /// The state value network, where there is one.
    fn value(&self) -> Option<Id> {
        None
    }

    /// Whether a target network moves in the update at `step` (counted from 0).
    fn moves(&self, _target: Id, _step: u64) -> bool {
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
    /// Those that estimate values.
    Critic,
    /// Those of the policy.
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
    pub(crate) batch: &'a Batch,
    /// Encoded states [s; s'; s_K].
    pub(crate) states: &'a [f32],
    pub(crate) reward_scale: f32,
    pub(crate) noise: RefCell<&'a mut Noise>,
}

impl<'t> Inputs<'t, '_> {
    /// Rows of the batch.
    pub fn rows(&self) -> usize {
        self.batch.len()
    }

    /// Blocks `from..to` of [s; s'; s_K] below each other: one pass of a network can take several.
    pub fn states(&self, from: usize, to: usize) -> Var<'t> {
        let size = self.states.len() / 3;
        let dim = size / self.rows();
        self.tape.constant_slice((to - from) * self.rows(), dim, &self.states[from * size..to * size])
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

    fn matrix(&self, view: View<'_>) -> Var<'t> {
        self.tape.constant_slice(view.rows(), view.cols(), view.data())
    }

    fn column(&self, data: &[f32]) -> Var<'t> {
        self.tape.constant_slice(self.rows(), 1, data)
    }

    /// The actions `a`.
    pub fn a(&self) -> Var<'t> {
        self.matrix(self.batch.actions())
    }

    /// The recorded actions one step later.
    pub fn a_next(&self) -> Var<'t> {
        self.matrix(self.batch.next_actions())
    }

    /// Consecutive actions `a_t, a_(t+1), ...`, as many as [`SegmentConfig`] asks for, side by side.
    pub fn chunk(&self) -> Var<'t> {
        self.matrix(self.batch.chunks())
    }

    /// 1 for each action of the chunk that lies inside its episode, 0 behind its end.
    pub fn valids(&self) -> Var<'t> {
        self.matrix(self.batch.valids())
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
        self.tape.constant_slice(rows, cols, &self.noise.borrow_mut().normal(rows * cols))
    }

    /// A column of noise uniform on [0, 1).
    pub fn uniform(&self, cols: usize) -> Var<'t> {
        self.tape.constant_slice(self.rows(), cols, &self.noise.borrow_mut().uniform(self.rows() * cols))
    }
}

/// A loss with what there is to say about it.
pub struct Loss<'t> {
    /// What is minimised.
    pub total: Var<'t>,
    /// What is logged.
    pub measures: Measures<'t>,
}

/// Named numbers of an update, read off the tape only if they are asked for.
#[derive(Default)]
pub struct Measures<'t> {
    measures: Vec<Measure<'t>>,
}

enum Measure<'t> {
    Mean(&'static str, Var<'t>),
    Range([&'static str; 3], Var<'t>),
    ShareSatisfied(&'static str, Var<'t>),
}

impl<'t> Measures<'t> {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The mean of all entries; of a single number, the number.
    pub fn mean(&mut self, name: &'static str, x: Var<'t>) -> &mut Self {
        self.measures.push(Measure::Mean(name, x));
        self
    }

    /// Mean, maximum and minimum, under three names.
    pub fn range(&mut self, names: [&'static str; 3], x: Var<'t>) -> &mut Self {
        self.measures.push(Measure::Range(names, x));
        self
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
        self.measures.push(Measure::ShareSatisfied(name, g));
        self
    }

    /// Appends the numbers.
    pub(crate) fn read(&self, metrics: &mut Metrics) {
        for measure in &self.measures {
            match *measure {
                Measure::Mean(name, x) => metrics.push((name, x.with_value(mean))),
                Measure::Range(names, x) => {
                    let fold = |x: &[f32], of: fn(f64, f64) -> f64, start| {
                        x.iter().fold(start, |m, &x| of(m, x.into()))
                    };
                    let (low, high) = x.with_value(|x| {
                        (fold(x, f64::min, f64::INFINITY), fold(x, f64::max, f64::NEG_INFINITY))
                    });
                    metrics.extend(names.into_iter().zip([x.with_value(mean), high, low]));
                }
                Measure::ShareSatisfied(name, g) => {
                    let share =
                        |g: &[f32]| g.iter().filter(|g| **g <= 0.0).count() as f64 / g.len().max(1) as f64;
                    metrics.push((name, g.with_value(share)));
                }
            }
        }
    }
}

fn mean(x: &[f32]) -> f64 {
    x.iter().map(|&x| f64::from(x)).sum::<f64>() / x.len().max(1) as f64
}
