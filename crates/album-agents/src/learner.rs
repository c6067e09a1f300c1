//! Turns any algorithm into an [`Agent`]: the machinery that papers leave out.

use crate::acting::{Acting, Moment, Policy, decisions};
use crate::agent::{Agent, AgentError, AgentState, Metrics};
use crate::algorithm::{Algorithm, Inputs, Loss, Setup, Stage};
use crate::blueprint::Blueprint;
use crate::common::Common;
use crate::device::OnDevice;
use crate::networks::Networks;
use crate::noise::Noise;
use crate::parts::head::{all_choices, taken};
use crate::recorded::RecordedPolicy;
use album_base::machine;
use album_data::{Batch, Dataset, SegmentConfig, View};
use album_nn::{Pool, Tape, Tensor, Var};
use album_xla::{Device, Group, ProgramSize};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// An algorithm with its networks, optimisers and random numbers.
pub struct Learner {
    common: Common,
    algorithm: Box<dyn Algorithm>,
    nets: Networks,
    blueprint: Blueprint,
    seed: u64,
    total_steps: u64,
    tape: Tape,
    memory: u64,
    device: Option<OnDevice>,
}

/// Memory of an agent in bytes, computed from the shapes of its networks.
fn memory(setup: &dyn Setup, blueprint: &Blueprint) -> u64 {
    let mut nets = Networks::counting();
    setup.build(blueprint.sizes(), &mut nets);
    nets.counted_bytes(setup.common().batch_size)
}

impl std::fmt::Debug for Learner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.nets.trained(Stage::All).map(|(_, name)| name).collect();
        f.debug_struct("Learner")
            .field("common", &self.common)
            .field("trained", &names)
            .finish_non_exhaustive()
    }
}

impl Learner {
    /// A new agent for `data`; `total_steps` is the length of its schedules.
    ///
    /// ```
    /// use album_agents::{Agent, Common, Learner, agents::album};
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
        Self::from_blueprint(setup, &Blueprint::new(setup, data, seed), total_steps, seed, pool)
    }

    /// A new agent without its data, from another agent's blueprint; [`Agent::load`] restores the weights.
    pub fn from_blueprint(
        setup: &dyn Setup,
        blueprint: &Blueprint,
        total_steps: u64,
        seed: u64,
        pool: &Pool,
    ) -> Result<Self, AgentError> {
        setup.common().check()?;
        setup.check()?;
        blueprint.check()?;
        setup.check_actions(&blueprint.action_space())?;
        let memory = memory(setup, blueprint);
        machine::check_memory("training these networks", memory)?;
        let mut nets = Networks::new(seed);
        Ok(Learner {
            algorithm: setup.build(blueprint.sizes(), &mut nets),
            tape: Tape::new(pool),
            device: None,
            common: setup.common().clone(),
            blueprint: blueprint.clone(),
            nets,
            seed,
            total_steps,
            memory,
        })
    }

    /// Approximate memory in bytes that training needs besides the data.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// Runs all further updates on this device.
    pub fn move_to(&mut self, device: &Device) {
        let joined = self.join(&Group::new(device, 1));
        debug_assert!(joined.is_ok(), "there is room for one");
    }

    /// From now on updates run on the device of this group, together with those of other seeds. An update waits for those
    /// of all others, which must be called from other threads.
    pub fn join(&mut self, group: &Arc<Group>) -> Result<(), AgentError> {
        self.settle();
        self.device = Some(OnDevice::new(group, &self.nets, self.tape.pool())?);
        Ok(())
    }

    /// Copies the data to the device of the updates: from then on an update sends only row indices. All later batches must
    /// be gathered from this data. Changes no number.
    pub fn lend(&mut self, data: &Dataset) -> Result<(), AgentError> {
        if let Some(device) = &mut self.device {
            device.lend(data, &self.blueprint.encoding, self.seed)?;
        }
        Ok(())
    }

    /// The programs that updates have compiled for a device so far.
    pub fn programs(&self) -> Vec<ProgramSize> {
        self.device.as_ref().map_or_else(Vec::new, |device| device.seat().programs())
    }

    /// Copies the device's weights to the networks here.
    fn settle(&mut self) {
        if let Some(device) = &mut self.device {
            device.settle(&mut self.nets);
        }
    }

    /// Runs a computation on the native tape, with the latest weights.
    fn natively<T>(&mut self, then: impl FnOnce(&mut Self) -> T) -> T {
        self.settle();
        let device = self.device.take();
        let result = then(self);
        self.device = device;
        result
    }

    /// Evaluates `of` on the latest networks.
    fn with_networks<T>(&self, read: impl FnOnce(&Networks) -> T) -> T {
        let newer = self.device.as_ref().and_then(|device| device.newer(&self.nets));
        match newer.and_then(|states| self.nets.frozen(&states).ok()) {
            Some(nets) => read(&nets),
            None => read(&self.nets),
        }
    }

    /// What the agent derived from its data.
    pub fn blueprint(&self) -> &Blueprint {
        &self.blueprint
    }

    /// The policy's decision rule, as data.
    pub fn recorded_policy(&self) -> RecordedPolicy {
        let decide = self.with_networks(|nets| self.algorithm.decide(nets));
        let (encoding, actions) = (self.blueprint.encoding.clone(), self.blueprint.action_space());
        RecordedPolicy::of(decide, encoding, actions, self.algorithm.open_loop())
    }

    /// The networks. Those on a device may be newer.
    pub fn networks(&self) -> &Networks {
        &self.nets
    }

    /// Number of value networks, including ensemble members and targets.
    pub fn value_networks(&self) -> usize {
        self.nets.value_networks()
    }

    /// Number of actions executed per decision: more than 1 for policies that commit to chunks.
    pub fn open_loop(&self) -> usize {
        self.algorithm.open_loop()
    }

    /// The action probabilities from the logits of the network of this name, row by row; `None` if there is
    /// no such network or actions are continuous.
    pub fn probabilities(&mut self, network: &str, observations: View<'_>) -> Option<Vec<f32>> {
        self.blueprint.choices()?;
        self.settle();
        let id = self.nets.trained(Stage::All).find(|(_, name)| *name == network)?.0;
        let fill = |out: &mut [f32]| self.blueprint.encoding.encode(observations, out);
        let tape = self.tape.begin();
        let s = tape.constant_with(observations.rows(), self.blueprint.encoding.dim(), fill);
        Some(tape.apply_frozen(&self.nets[id], s).log_softmax_cols().exp().with_value(<[f32]>::to_vec))
    }

    /// Exploratory actions for each observation, row by row ([`Algorithm::explore`]).
    pub fn explore(&mut self, observations: View<'_>, moments: &[Moment]) -> Vec<f32> {
        let (encoding, actions) = (&self.blueprint.encoding, self.blueprint.action_space());
        let mut decide = self.algorithm.explore(&self.nets);
        decisions(&mut self.tape, encoding, &actions, &mut decide, observations, moments)
    }

    /// One update with given random numbers; [`Agent::update`] draws them from the seed.
    pub fn update_with(
        &mut self,
        batch: &Batch,
        step: u64,
        noise: &mut Noise,
        mut metrics: Option<&mut Metrics>,
    ) -> f64 {
        if let Some(metrics) = metrics.as_deref_mut() {
            metrics.clear();
        }
        if self.device.is_some() {
            return self.update_on_device(batch, step, noise, metrics).unwrap_or(f64::NAN);
        }
        let (mut total, mut norms) = (0.0, Vec::new());
        let (reward_scale, measured) = (self.common.reward_scale, metrics.is_some());
        let factor = self.common.lr_decay.factor(step, self.total_steps);
        let at_once = self.algorithm.stages().len() == 1;
        self.each_stage(batch, step, noise, measured, |algorithm, nets, stage, loss| {
            let gradients = loss.total.backward();
            if let Some(metrics) = metrics.as_deref_mut() {
                loss.measures.read(reward_scale, metrics);
                norms.extend(
                    nets.trained(stage).map(|(id, name)| (name.to_owned(), gradients.norm(&nets[id]))),
                );
            }
            if at_once {
                nets.track(|target| algorithm.moves(target, step), loss.total.tape().pool());
            }
            nets.step(&gradients, stage, factor, algorithm.max_grad_norm());
            total += f64::from(loss.total.item());
        });
        if !at_once {
            self.nets.track(|target| self.algorithm.moves(target, step), self.tape.pool());
        }
        if let Some(metrics) = metrics {
            push_norms(metrics, norms);
        }
        total
    }

    /// One update on the device; `None` if it failed.
    fn update_on_device(
        &mut self,
        batch: &Batch,
        step: u64,
        noise: &mut Noise,
        metrics: Option<&mut Metrics>,
    ) -> Option<f64> {
        let (reward_scale, measured) = (self.common.reward_scale, metrics.is_some());
        let (mut stages, mut units, mut names) = (Vec::new(), Vec::new(), Vec::new());
        self.each_stage(batch, step, noise, measured, |_, nets, stage, loss| {
            units.push(loss.measures.units(reward_scale));
            names.extend(nets.trained(stage).map(|(_, name)| name.to_owned()));
            stages.push(album_xla::Stage {
                recording: loss.total.tape().recording(),
                loss: loss.total.place(),
                measures: loss.measures.places(),
                trains: nets.trained(stage).map(|(id, _)| id.0).collect(),
            });
        });
        let moves = self.nets.targets().filter(|&target| self.algorithm.moves(target, step));
        let update = album_xla::Step {
            before: stages.len() == 1,
            stages,
            moves: moves.map(|target| target.0).collect(),
            max_norm: self.algorithm.max_grad_norm(),
            norms: measured,
        };
        let factor = self.common.lr_decay.factor(step, self.total_steps);
        let report = self.device.as_mut()?.run(&mut self.nets, step, update, factor)?;
        let mut numbers = report.numbers.into_iter().map(f64::from);
        let (mut total, mut measures) = (0.0, Metrics::new());
        for units in units {
            total += numbers.next()?;
            let read = units.into_iter().zip(numbers.by_ref());
            measures.extend(read.map(|((name, unit), x)| (name.into(), x / unit)));
        }
        if let Some(metrics) = metrics {
            metrics.extend(measures);
            push_norms(metrics, names.into_iter().zip(report.norms.into_iter().map(f64::from)).collect());
        }
        Some(total)
    }

    /// Calls `then` with the loss of each stage of an update, in order, on the device's tape if there is one.
    fn each_stage(
        &mut self,
        batch: &Batch,
        step: u64,
        noise: &mut Noise,
        measured: bool,
        mut then: impl for<'t> FnMut(&dyn Algorithm, &mut Networks, Stage, Loss<'t>),
    ) {
        for &stage in self.algorithm.stages() {
            let (tape, device_data) = match &mut self.device {
                Some(device) => (&mut device.tape, device.data.as_ref()),
                None => (&mut self.tape, None),
            };
            let inputs = Inputs {
                tape: tape.begin(),
                stage,
                step,
                total_steps: self.total_steps,
                measured,
                choices: self.blueprint.choices(),
                batch,
                device_data,
                encoding: &self.blueprint.encoding,
                reward_scale: self.common.reward_scale as f32,
                noise: RefCell::new(noise),
                encoded: Cell::default(),
                joined: Cell::default(),
            };
            let loss = self.algorithm.loss(&self.nets, &inputs);
            then(self.algorithm.as_ref(), &mut self.nets, stage, loss);
        }
    }

    /// Evaluates `of` on observations, in units of the data's rewards.
    fn values_of(
        &mut self,
        observations: View<'_>,
        value: impl for<'t> FnOnce(&Networks, Var<'t>) -> Var<'t>,
    ) -> Vec<f32> {
        self.settle();
        let (encoding, scale) = (&self.blueprint.encoding, self.common.reward_scale);
        let fill = |out: &mut [f32]| encoding.encode(observations, out);
        let tape = self.tape.begin();
        let s = tape.constant_with(observations.rows(), encoding.dim(), fill);
        let in_data_units = |v: &f32| (f64::from(*v) / scale) as f32;
        value(&self.nets, s).with_value(|v| v.iter().map(in_data_units).collect())
    }

    /// Loss and gradients of all trained networks at given random numbers, without an update: all stages see
    /// the same parameters.
    pub fn gradients(
        &mut self,
        batch: &Batch,
        step: u64,
        noise: &mut Noise,
    ) -> (f64, Vec<(String, Vec<Tensor>)>) {
        let (mut total, mut all) = (0.0, Vec::new());
        self.natively(|learner| {
            learner.each_stage(batch, step, noise, true, |_, nets, stage, loss| {
                let gradients = loss.total.backward();
                total += f64::from(loss.total.item());
                all.extend(nets.trained(stage).map(|(id, name)| (name.to_owned(), gradients.of(&nets[id]))));
            });
        });
        (total, all)
    }

    /// Floating-point operations of the matrix products of one update, counted from their shapes: the mean of
    /// an even and an odd step, because some algorithms alternate.
    pub fn operations(&mut self, batch: &Batch) -> f64 {
        let mut operations = 0.0;
        self.natively(|learner| {
            for step in 0..2 {
                let mut noise = Noise::at(learner.seed, step);
                learner.each_stage(batch, step, &mut noise, false, |_, _, _, loss| {
                    loss.total.backward();
                    operations += 0.5 * loss.total.tape().operations();
                });
            }
        });
        operations
    }
}

impl Agent for Learner {
    fn segments(&self) -> SegmentConfig {
        self.algorithm.segments()
    }

    fn batch_size(&self) -> usize {
        self.common.batch_size
    }

    fn update(&mut self, batch: &Batch, step: u64, metrics: Option<&mut Metrics>) -> f64 {
        self.update_with(batch, step, &mut Noise::at(self.seed, step), metrics)
    }

    fn assess(&mut self, batch: &Batch, metrics: &mut Metrics) {
        metrics.clear();
        let (mut noise, reward_scale) = (Noise::at(self.seed, 0), self.common.reward_scale);
        self.natively(|learner| {
            learner.each_stage(batch, 0, &mut noise, true, |_, _, _, loss| {
                loss.measures.read(reward_scale, metrics);
            });
        });
    }

    fn policy(&self) -> Box<dyn Policy> {
        let decide = self.with_networks(|nets| self.algorithm.decide(nets));
        let (encoding, actions) = (self.blueprint.encoding.clone(), self.blueprint.action_space());
        Box::new(Acting::new(encoding, decide, actions, self.algorithm.open_loop()))
    }

    fn value(&mut self, observations: View<'_>) -> Option<Vec<f32>> {
        let v = self.algorithm.value()?;
        Some(self.values_of(observations, |nets, s| s.tape().apply_frozen(&nets[v], s)))
    }

    fn q(&mut self, observations: View<'_>, actions: View<'_>) -> Option<Vec<f32>> {
        let (q, aggregate) = self.algorithm.q()?;
        let (choices, space) = (self.blueprint.choices(), self.blueprint.action_space());
        let inside = |out: &mut [f32]| {
            out.copy_from_slice(actions.data());
            space.from_physical(out);
        };
        Some(self.values_of(observations, |nets, s| {
            let tape = s.tape();
            let a = tape.constant_with(actions.rows(), actions.cols(), inside);
            aggregate.of(match choices {
                None => tape.apply_frozen(&nets[q], tape.concat_cols(&[s, a])),
                Some(choices) => taken(tape.apply_frozen(&nets[q], s), a, choices),
            })
        }))
    }

    fn q_of_choices(&mut self, observations: View<'_>) -> Option<Vec<f32>> {
        let ((q, aggregate), choices) = (self.algorithm.q()?, self.blueprint.choices()?);
        Some(self.values_of(observations, |nets, s| {
            all_choices(s.tape().apply_frozen(&nets[q], s), choices, aggregate)
        }))
    }

    fn parameters(&self) -> usize {
        self.nets.parameters()
    }

    fn state(&self) -> AgentState {
        let newer = self.device.as_ref().and_then(|device| device.newer(&self.nets));
        AgentState { blueprint: self.blueprint.clone(), networks: newer.unwrap_or_else(|| self.nets.state()) }
    }

    fn device(&self) -> Option<String> {
        Some(self.device.as_ref()?.seat().device().name().to_owned())
    }

    fn failure(&self) -> Option<AgentError> {
        self.device.as_ref()?.failure().map(AgentError::Device)
    }

    fn load(&mut self, state: &AgentState) -> Result<(), AgentError> {
        self.blueprint.check_same(&state.blueprint)?;
        self.nets.load(&state.networks)?;
        if let Some(device) = &mut self.device {
            device.forget();
        }
        Ok(())
    }
}

/// Appends gradient norms, the total first.
fn push_norms(metrics: &mut Metrics, norms: Vec<(String, f64)>) {
    metrics.push(("grad/norm".into(), norms.iter().map(|n| n.1 * n.1).sum::<f64>().sqrt()));
    metrics.extend(norms.into_iter().map(|(name, norm)| (format!("grad/norm_{name}").into(), norm)));
}
