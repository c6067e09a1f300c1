//! Any algorithm as an [`Agent`]: the plumbing that their papers do not speak of.

use crate::Encoding;
use crate::acting::{Acting, Policy};
use crate::agent::{Agent, AgentError, AgentState, Metrics};
use crate::algorithm::{Algorithm, Inputs, Setup, Sizes, Stage};
use crate::common::Common;
use crate::networks::Networks;
use crate::noise::Noise;
use album_data::{Batch, Dataset, SegmentConfig};
use album_nn::{Pool, Tape, Tensor};
use std::cell::RefCell;

/// An algorithm with its networks, its optimisers and its random numbers.
pub struct Learner {
    common: Common,
    algorithm: Box<dyn Algorithm>,
    nets: Networks,
    encoding: Encoding,
    action_dim: usize,
    seed: u64,
    total_steps: u64,
    tape: Tape,
    /// Encoded states [s; s'; s_K], reused.
    states: Vec<f32>,
}

impl Learner {
    /// A fresh agent for `data`; `total_steps` is what schedules stretch over.
    ///
    /// ```
    /// use album_agents::{Agent, Common, Learner, album};
    /// # use album_data::{Dataset, Rows};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let data = Dataset::from_rows(Rows {
    /// #     observation_dim: 1, action_dim: 1, observations: vec![0.0, 1.0], actions: vec![0.0; 2],
    /// #     rewards: vec![-1.0; 2], masks: vec![1.0; 2], terminals: vec![false, true],
    /// # })?;
    /// let config = album::Config { common: Common { hidden: vec![8, 8], ..Common::default() }, ..album::Config::default() };
    /// let agent = Learner::new(&config, &data, 1000, 0, &album_nn::Pool::new(1))?;
    /// assert_eq!(agent.value_networks(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(
        setup: &dyn Setup,
        data: &Dataset,
        total_steps: u64,
        seed: u64,
        pool: &Pool,
    ) -> Result<Self, AgentError> {
        setup.common().check()?;
        setup.check()?;
        let common = setup.common().clone();
        let encoding = common.encoding(data, seed);
        let mut nets = Networks::new(seed);
        let sizes = Sizes { s: encoding.dim(), a: data.action_dim() };
        Ok(Learner {
            algorithm: setup.build_for(data, sizes, &mut nets),
            tape: Tape::new(pool),
            states: Vec::new(),
            action_dim: sizes.a,
            common,
            nets,
            encoding,
            seed,
            total_steps,
        })
    }

    /// The networks.
    pub fn networks(&self) -> &Networks {
        &self.nets
    }

    /// Networks that estimate values, members of ensembles and targets included.
    pub fn value_networks(&self) -> usize {
        self.nets.value_networks()
    }

    /// One update with given random numbers; [`Agent::update`] draws them from the seed.
    pub fn update_with(
        &mut self,
        batch: &Batch,
        step: u64,
        noise: &mut Noise,
        mut metrics: Option<&mut Metrics>,
    ) -> f64 {
        let Learner { common, algorithm, nets, encoding, tape, states, total_steps, .. } = self;
        let states = encoded(encoding, batch, states);
        let factor = common.lr_decay.factor(step, *total_steps);
        let stages = algorithm.stages();
        let at_once = stages.len() == 1;
        let mut norms = Vec::new();
        let mut total = 0.0;
        if let Some(metrics) = metrics.as_deref_mut() {
            metrics.clear();
        }
        for &stage in stages {
            let tape = tape.begin();
            let mut inputs = inputs(common, tape, batch, states, step, *total_steps, noise);
            inputs.stage = stage;
            inputs.measured = metrics.is_some();
            let loss = algorithm.loss(nets, &inputs);
            let gradients = loss.total.backward();
            if let Some(metrics) = metrics.as_deref_mut() {
                loss.measures.read(metrics);
                norms.extend(nets.trained(stage).map(|(id, name)| (name, gradients.norm(&nets[id]))));
            }
            if at_once {
                nets.track(|target| algorithm.moves(target, step), tape.pool());
            }
            nets.step(&gradients, stage, factor, algorithm.max_grad_norm());
            total += f64::from(loss.total.item());
        }
        if !at_once {
            nets.track(|target| algorithm.moves(target, step), tape.pool());
        }
        if let Some(metrics) = metrics {
            metrics.push(("grad/norm", norms.iter().map(|n| n.1 * n.1).sum::<f64>().sqrt()));
            metrics.extend(norms.into_iter().filter_map(|(name, norm)| Some((grad_name(name)?, norm))));
        }
        total
    }

    /// Loss and gradients of all trained networks at given random numbers, without learning from them: all stages see the
    /// same parameters.
    pub fn gradients(
        &mut self,
        batch: &Batch,
        step: u64,
        noise: &mut Noise,
    ) -> (f64, Vec<(&'static str, Vec<Tensor>)>) {
        let Learner { common, algorithm, nets, encoding, tape, states, total_steps, .. } = self;
        let states = encoded(encoding, batch, states);
        let (mut total, mut all) = (0.0, Vec::new());
        for &stage in algorithm.stages() {
            let tape = tape.begin();
            let mut inputs = inputs(common, tape, batch, states, step, *total_steps, noise);
            inputs.stage = stage;
            let loss = algorithm.loss(nets, &inputs);
            let gradients = loss.total.backward();
            total += f64::from(loss.total.item());
            all.extend(nets.trained(stage).map(|(id, name)| (name, gradients.of(&nets[id]))));
        }
        (total, all)
    }

    /// Floating-point operations of the matrix products of one update, counted from their shapes, no row left out: the
    /// mean of an even and an odd step, because some algorithms do not do the same at both.
    pub fn operations(&mut self, batch: &Batch) -> f64 {
        let mut operations = 0.0;
        for step in 0..2 {
            let Learner { common, algorithm, nets, encoding, tape, states, total_steps, seed, .. } = self;
            let mut noise = Noise::at(*seed, step);
            let states = encoded(encoding, batch, states);
            for &stage in algorithm.stages() {
                let tape = tape.begin();
                let mut inputs = inputs(common, tape, batch, states, step, *total_steps, &mut noise);
                inputs.stage = stage;
                inputs.measured = false;
                algorithm.loss(nets, &inputs).total.backward();
                operations += 0.5 * tape.operations();
            }
        }
        operations
    }
}

fn inputs<'t, 'a>(
    common: &Common,
    tape: &'t Tape,
    batch: &'a Batch,
    states: &'a [f32],
    step: u64,
    total_steps: u64,
    noise: &'a mut Noise,
) -> Inputs<'t, 'a> {
    let reward_scale = common.reward_scale as f32;
    Inputs {
        tape,
        stage: Stage::All,
        step,
        total_steps,
        measured: true,
        batch,
        states,
        reward_scale,
        noise: RefCell::new(noise),
    }
}

/// The states [s; s'; s_K] of a batch as the networks see them.
fn encoded<'a>(encoding: &Encoding, batch: &'a Batch, buffer: &'a mut Vec<f32>) -> &'a [f32] {
    if encoding.is_identity() {
        return batch.states().data();
    }
    encoding.encode(batch.states().data(), buffer);
    buffer
}

/// The names under which the gradients of the usual networks are logged.
fn grad_name(network: &str) -> Option<&'static str> {
    let names = [
        ("q", "grad/norm_q"),
        ("v", "grad/norm_v"),
        ("actor", "grad/norm_actor"),
        ("flow", "grad/norm_flow"),
    ];
    names.iter().find(|(name, _)| *name == network).map(|(_, logged)| *logged)
}

impl Agent for Learner {
    fn segments(&self) -> SegmentConfig {
        self.algorithm.segments()
    }

    fn batch_size(&self) -> usize {
        self.common.batch_size
    }

    fn reward_scale(&self) -> f64 {
        self.common.reward_scale
    }

    fn update(&mut self, batch: &Batch, step: u64, metrics: Option<&mut Metrics>) -> f64 {
        self.update_with(batch, step, &mut Noise::at(self.seed, step), metrics)
    }

    fn assess(&mut self, batch: &Batch, metrics: &mut Metrics) {
        let Learner { common, algorithm, nets, encoding, tape, states, total_steps, seed, .. } = self;
        let states = encoded(encoding, batch, states);
        let mut noise = Noise::at(*seed, 0);
        metrics.clear();
        for &stage in algorithm.stages() {
            let mut inputs = inputs(common, tape.begin(), batch, states, 0, *total_steps, &mut noise);
            inputs.stage = stage;
            algorithm.loss(nets, &inputs).measures.read(metrics);
        }
    }

    fn policy(&self) -> Box<dyn Policy> {
        let decide = self.algorithm.decide(&self.nets);
        Box::new(Acting::new(self.encoding.clone(), decide, self.action_dim, self.algorithm.open_loop()))
    }

    fn value(&mut self, observations: &[f32], values: &mut Vec<f32>) -> bool {
        values.clear();
        let Some(v) = self.algorithm.value() else { return false };
        self.encoding.encode(observations, &mut self.states);
        let tape = self.tape.begin();
        let s =
            tape.constant_slice(self.states.len() / self.encoding.dim(), self.encoding.dim(), &self.states);
        tape.apply_frozen(&self.nets[v], s).with_value(|v| values.extend_from_slice(v));
        true
    }

    fn parameters(&self) -> usize {
        self.nets.parameters()
    }

    fn state(&self) -> AgentState {
        AgentState { networks: self.nets.state() }
    }

    fn load(&mut self, state: &AgentState) -> Result<(), AgentError> {
        self.nets.load(&state.networks)
    }
}
