//! The networks of an agent, each with its optimiser or, for a target, the network it tracks.

use crate::agent::{AgentError, NetworkState};
use crate::algorithm::Stage;
use crate::noise;
use album_base::rng;
use album_nn::{Adam, Gradients, Mlp, MlpSpec, Pool, StepRates};
use album_xla::Net;
use rand_chacha::ChaCha8Rng;
use std::ops::Index;

/// The id of one of an agent's [`Networks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkId(pub(crate) usize);

/// All networks of an agent. They are created in a fixed order from one random stream, and trained and stored
/// together.
pub struct Networks {
    entries: Vec<Entry>,
    init: ChaCha8Rng,
    /// In counting mode: the shapes of networks with the number of copies. The smallest network stands in for
    /// each.
    counted: Option<Vec<(MlpSpec, u64)>>,
}

impl std::fmt::Debug for Networks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Networks")
            .field("entries", &self.entries.len())
            .field("parameters", &self.parameters())
            .finish_non_exhaustive()
    }
}

/// Copies of a trained network's parameters: weights, their transpose, gradient, two moments, three tensors
/// of a checkpoint, and three in the bytes of its file.
const TRAINED: u64 = 11;
/// Copies of an untrained network: weights, transpose, and the checkpoint's.
const FOLLOWING: u64 = 3;
/// Number of passes of a row through a network, forward and backward.
const PASSES: u64 = 5;

struct Entry {
    name: String,
    net: Mlp,
    /// Whether it counts as a value network in the paper's sense.
    is_value: bool,
    role: Role,
}

enum Role {
    Trained {
        adam: Adam,
        learning_rate: f64,
    },
    Target {
        of: NetworkId,
        tau: f32,
    },
    /// Never trained.
    Fixed,
}

impl Entry {
    fn is_trained(&self, stage: Stage) -> bool {
        matches!(self.role, Role::Trained { .. }) && stage.trains(self.is_value)
    }
}

/// Networks by id: those being trained, or copies.
pub type Lookup<'n> = &'n dyn Index<NetworkId, Output = Mlp>;

/// Copies of all networks for acting. They take no memory until the originals change.
pub struct Snapshot(Vec<Mlp>);

impl Index<NetworkId> for Snapshot {
    type Output = Mlp;
    fn index(&self, id: NetworkId) -> &Mlp {
        &self.0[id.0]
    }
}

impl Index<NetworkId> for Networks {
    type Output = Mlp;
    fn index(&self, id: NetworkId) -> &Mlp {
        &self.entries[id.0].net
    }
}

impl Networks {
    /// An empty set; weights will be drawn from `seed`.
    pub fn new(seed: u64) -> Self {
        Networks { entries: Vec::new(), init: rng::stream(seed, "init"), counted: None }
    }

    /// An empty set in counting mode: networks are counted, not created.
    pub(crate) fn counting() -> Self {
        Networks { counted: Some(Vec::new()), ..Networks::new(0) }
    }

    /// Approximate training memory in bytes of the counted networks, with batches of this many rows.
    pub(crate) fn counted_bytes(&self, rows: usize) -> u64 {
        let bytes = |(spec, copies): &(MlpSpec, u64)| {
            let parameters = spec.parameter_bytes()?.checked_mul(*copies)?;
            parameters.checked_add(spec.row_bytes()?.checked_mul(PASSES)?.checked_mul(rows as u64)?)
        };
        let all = self.counted.iter().flatten().map(|counted| bytes(counted).unwrap_or(u64::MAX));
        all.fold(0, u64::saturating_add)
    }

    /// Creates a network, or counts it.
    fn make(&mut self, spec: MlpSpec, copies: u64) -> Mlp {
        match &mut self.counted {
            Some(counted) => {
                counted.push((spec, copies));
                Mlp::new(MlpSpec::new(1, &[], 1), &mut self.init)
            }
            None => Mlp::new(spec, &mut self.init),
        }
    }

    /// Adds a value network (Q or V, or an ensemble of them).
    pub fn value(&mut self, name: &str, spec: MlpSpec, learning_rate: f64) -> NetworkId {
        self.add_trained(name, spec, learning_rate, true)
    }

    /// Adds a policy network.
    pub fn policy(&mut self, name: &str, spec: MlpSpec, learning_rate: f64) -> NetworkId {
        self.add_trained(name, spec, learning_rate, false)
    }

    fn add_trained(&mut self, name: &str, spec: MlpSpec, learning_rate: f64, is_value: bool) -> NetworkId {
        let net = self.make(spec, TRAINED);
        let adam = Adam::new(&net, learning_rate);
        self.add(Entry { name: name.to_owned(), net, is_value, role: Role::Trained { adam, learning_rate } })
    }

    /// Adds a target network: `target = tau * online + (1 - tau) * target` after every update.
    pub fn target(&mut self, name: &str, of: NetworkId, tau: f64) -> NetworkId {
        let online = &self.entries[of.0];
        let (net, is_value) = (online.net.clone(), online.is_value);
        if let Some(counted) = &mut self.counted {
            counted.push((counted[of.0].0.clone(), FOLLOWING));
        }
        self.add(Entry { name: name.to_owned(), net, is_value, role: Role::Target { of, tau: tau as f32 } })
    }

    /// Adds a network that is never trained.
    pub fn fixed(&mut self, name: &str, spec: MlpSpec) -> NetworkId {
        let net = self.make(spec, FOLLOWING);
        self.add(Entry { name: name.to_owned(), net, is_value: false, role: Role::Fixed })
    }

    /// Copies of all networks.
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot(self.entries.iter().map(|entry| entry.net.clone()).collect())
    }

    /// Redraws all weights of a network from a normal distribution with this standard deviation.
    pub fn draw_normal(&mut self, id: NetworkId, deviation: f64) {
        let net = &mut self.entries[id.0].net;
        let mut tensors = net.tensors();
        for tensor in &mut tensors {
            noise::normal(&mut self.init, &mut tensor.data);
            tensor.data.iter_mut().for_each(|x| *x *= deviation as f32);
        }
        let loaded = net.load(&tensors);
        debug_assert!(loaded.is_ok(), "the network's own tensors fit it");
    }

    fn add(&mut self, entry: Entry) -> NetworkId {
        self.entries.push(entry);
        NetworkId(self.entries.len() - 1)
    }

    /// The networks that a stage trains, in order.
    pub fn trained(&self, stage: Stage) -> impl Iterator<Item = (NetworkId, &str)> {
        let entries = self.entries.iter().enumerate().filter(move |(_, entry)| entry.is_trained(stage));
        entries.map(|(i, entry)| (NetworkId(i), &*entry.name))
    }

    /// Enables weight decay for all policy networks (AdamW).
    pub fn decay_policy(&mut self, weight_decay: f64) {
        for entry in &mut self.entries {
            if let (false, Role::Trained { adam, .. }) = (entry.is_value, &mut entry.role) {
                adam.weight_decay = weight_decay;
            }
        }
    }

    /// Number of parameters of all networks, targets included, as in the paper's cost table.
    pub fn parameters(&self) -> usize {
        self.entries.iter().map(|entry| entry.net.parameter_count()).sum()
    }

    /// Number of value networks, including ensemble members and targets.
    pub fn value_networks(&self) -> usize {
        self.entries.iter().filter(|entry| entry.is_value).map(|entry| entry.net.spec().members).sum()
    }

    /// Updates the targets that `moves` selects.
    pub fn track(&mut self, moves: impl Fn(NetworkId) -> bool, pool: &Pool) {
        for i in 0..self.entries.len() {
            if let Role::Target { of, tau } = self.entries[i].role
                && moves(NetworkId(i))
            {
                // A target is added after the network that it tracks.
                let (before, rest) = self.entries.split_at_mut(i);
                rest[0].net.track(&before[of.0].net, tau, pool);
            }
        }
    }

    /// One Adam step for every network that `stage` trains, with all learning rates multiplied by `factor`. A
    /// network that the loss does not depend on has a zero gradient: its moments decay and still move its
    /// weights. With `max_norm`, the joint gradient of all value networks, and that of all policy networks,
    /// is clipped to this norm.
    pub fn step(&mut self, gradients: &Gradients<'_>, stage: Stage, factor: f64, max_norm: Option<f64>) {
        let scale = |is_value| {
            let Some(most) = max_norm else { return 1.0 };
            let group = self.entries.iter().filter(|e| e.is_value == is_value && e.is_trained(stage));
            let norm = group.map(|e| gradients.norm(&e.net).powi(2)).sum::<f64>().sqrt();
            // PyTorch adds 1e-6 here.
            (most / (norm + 1e-6)).min(1.0) as f32
        };
        let (of_values, of_policy) = (scale(true), scale(false));
        for entry in self.entries.iter_mut().filter(|entry| entry.is_trained(stage)) {
            if let Role::Trained { adam, learning_rate } = &mut entry.role {
                adam.learning_rate = *learning_rate * factor;
                let scale = if entry.is_value { of_values } else { of_policy };
                adam.step_scaled(&mut entry.net, gradients, scale);
            }
        }
    }

    /// The networks in the form that a device takes.
    pub(crate) fn on_device(&self) -> Vec<Net> {
        let net = |entry: &Entry| Net {
            id: entry.net.id(),
            spec: entry.net.spec().clone(),
            tensors: entry.net.tensors().into_iter().map(|tensor| tensor.shape).collect(),
            role: match &entry.role {
                Role::Trained { adam, .. } => album_xla::Role::Trained {
                    is_value: entry.is_value,
                    beta1: adam.beta1,
                    beta2: adam.beta2,
                    epsilon: adam.epsilon,
                    decays: adam.weight_decay > 0.0,
                },
                Role::Target { of, tau } => album_xla::Role::Target { of: of.0, tau: *tau },
                Role::Fixed => album_xla::Role::Fixed,
            },
        };
        self.entries.iter().map(net).collect()
    }

    /// Counts a step of all optimisers that is taken on a device, as [`Networks::step`] would in one stage or
    /// several.
    pub(crate) fn advance(&mut self, factor: f64) -> Vec<StepRates> {
        let mut rates = Vec::new();
        for entry in &mut self.entries {
            if let Role::Trained { adam, learning_rate } = &mut entry.role {
                adam.learning_rate = *learning_rate * factor;
                rates.push(adam.advance());
            }
        }
        rates
    }

    /// The targets, in order.
    pub(crate) fn targets(&self) -> impl Iterator<Item = NetworkId> {
        let is_target = |entry: &Entry| matches!(entry.role, Role::Target { .. });
        (0..self.entries.len()).filter(move |&i| is_target(&self.entries[i])).map(NetworkId)
    }

    /// Copies with other weights, for acting.
    pub(crate) fn frozen(&self, states: &[NetworkState]) -> Result<Networks, AgentError> {
        let mut entries = Vec::new();
        for (entry, state) in self.entries.iter().zip(states) {
            let mut net = entry.net.clone();
            net.load(&state.weights)?;
            entries.push(Entry {
                name: entry.name.clone(),
                net,
                is_value: entry.is_value,
                role: Role::Fixed,
            });
        }
        Ok(Networks { entries, init: self.init.clone(), counted: None })
    }

    /// All weights and moments.
    pub fn state(&self) -> Vec<NetworkState> {
        let state = |entry: &Entry| match &entry.role {
            Role::Trained { adam, .. } => NetworkState::of(&entry.name, &entry.net, adam),
            Role::Target { .. } | Role::Fixed => NetworkState::of_target(&entry.name, &entry.net),
        };
        self.entries.iter().map(state).collect()
    }

    /// Restores a state of networks of the same names and shapes.
    pub fn load(&mut self, states: &[NetworkState]) -> Result<(), AgentError> {
        if states.len() != self.entries.len() {
            return Err(AgentError::Networks { found: states.len(), expected: self.entries.len() });
        }
        // All are checked before any is changed.
        for (entry, state) in self.entries.iter().zip(states) {
            state.check(&entry.name, &entry.net, matches!(entry.role, Role::Trained { .. }))?;
        }
        for (entry, state) in self.entries.iter_mut().zip(states) {
            let adam = match &mut entry.role {
                Role::Trained { adam, .. } => Some(adam),
                Role::Target { .. } | Role::Fixed => None,
            };
            state.restore(&mut entry.net, adam)?;
        }
        Ok(())
    }
}
