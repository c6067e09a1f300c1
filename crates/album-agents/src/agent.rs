//! What the trainer needs from an algorithm.

use crate::acting::Policy;
use crate::blueprint::Blueprint;
use crate::registry::{AGENTS, AgentKind};
use album_data::{Batch, SegmentConfig, View};
use album_nn::{Adam, Mlp, Tensor, TensorError};
use album_xla::XlaError;
use std::borrow::Cow;

/// Numbers about one update, by name, in a fixed order.
pub type Metrics = Vec<(Cow<'static, str>, f64)>;

/// An offline RL algorithm during training.
pub trait Agent {
    /// How batches are cut out of the data.
    fn segments(&self) -> SegmentConfig;

    /// Rows in a batch.
    fn batch_size(&self) -> usize;

    /// One update at training step `step` (counted from 0), which is all that the schedules depend on. Fills `metrics`
    /// where they are asked for. Returns the loss, which tells the trainer at every step whether numbers are still
    /// numbers.
    fn update(&mut self, batch: &Batch, step: u64, metrics: Option<&mut Metrics>) -> f64;

    /// The metrics of a batch as they are now, without learning from it and without those of gradients.
    fn assess(&mut self, batch: &Batch, metrics: &mut Metrics);

    /// The policy as it is now: a copy that later updates do not change.
    fn policy(&self) -> Box<dyn Policy>;

    /// The state value of each observation, in units of the data's rewards; `None` where the algorithm has none.
    fn value(&mut self, observations: View<'_>) -> Option<Vec<f32>>;

    /// The value of each action in its observation, in units of the data's rewards; `None` where the algorithm has none for
    /// single actions. Actions are those that a [`Policy`] returns: in physical units, or the index of a choice.
    fn q(&mut self, _observations: View<'_>, _actions: View<'_>) -> Option<Vec<f32>> {
        None
    }

    /// The same for all choices of each observation, side by side; `None` where actions are continuous.
    fn q_of_choices(&mut self, _observations: View<'_>) -> Option<Vec<f32>> {
        None
    }

    /// Trainable parameters of all networks.
    fn parameters(&self) -> usize;

    /// Everything that training changes, for a checkpoint.
    fn state(&self) -> AgentState;

    /// The device that updates run on, where that is another one than the processor.
    fn device(&self) -> Option<String> {
        None
    }

    /// Why an update or a look at what it did failed, where that can happen: on a device.
    fn failure(&self) -> Option<AgentError> {
        None
    }

    /// Goes back to a checkpoint of an agent with the same configuration and data.
    fn load(&mut self, state: &AgentState) -> Result<(), AgentError>;
}

/// What a checkpoint holds of an agent: together with the hyperparameters, all that is needed to act and to resume.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentState {
    /// What the agent took from its data.
    pub blueprint: Blueprint,
    /// Every network with its optimiser, in a fixed order.
    pub networks: Vec<NetworkState>,
}

/// A network with its optimiser. Networks that are not trained have empty moments.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkState {
    /// For example `q`.
    pub name: String,
    /// The weights.
    pub weights: Vec<Tensor>,
    /// Adam's first moments.
    pub first_moments: Vec<Tensor>,
    /// Adam's second moments.
    pub second_moments: Vec<Tensor>,
    /// Adam's step counter.
    pub steps: u64,
}

impl NetworkState {
    /// The state of a trained network.
    pub fn of(name: &str, net: &Mlp, adam: &Adam) -> Self {
        NetworkState {
            name: name.to_owned(),
            weights: net.tensors(),
            first_moments: adam.first_moments(),
            second_moments: adam.second_moments(),
            steps: adam.steps(),
        }
    }

    /// The state of a network that follows another one.
    pub fn of_target(name: &str, net: &Mlp) -> Self {
        NetworkState {
            name: name.to_owned(),
            weights: net.tensors(),
            first_moments: Vec::new(),
            second_moments: Vec::new(),
            steps: 0,
        }
    }

    /// All tensors: weights, then first and second moments.
    pub(crate) fn tensors_mut(&mut self) -> impl Iterator<Item = &mut Tensor> {
        self.weights.iter_mut().chain(&mut self.first_moments).chain(&mut self.second_moments)
    }

    /// Whether the state is that of this network, with moments where it is trained.
    pub fn check(&self, name: &str, net: &Mlp, trained: bool) -> Result<(), AgentError> {
        if self.name != name {
            return Err(AgentError::Network { found: self.name.clone(), expected: name.to_owned() });
        }
        // Moments have the names and shapes of weights, so a copy of the network can try them all.
        let mut copy = net.clone();
        copy.load(&self.weights)?;
        if trained {
            copy.load(&self.first_moments)?;
            copy.load(&self.second_moments)?;
        }
        Ok(())
    }

    /// Puts a state back that has been checked, with the optimiser where there is one.
    pub fn restore(&self, net: &mut Mlp, adam: Option<&mut Adam>) -> Result<(), AgentError> {
        // The optimiser has the same shapes: if it takes its tensors, the network takes its own.
        if let Some(adam) = adam {
            adam.load(self.steps, &self.first_moments, &self.second_moments)?;
        }
        net.load(&self.weights)?;
        Ok(())
    }
}

/// What can be wrong with an agent's configuration or state.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// A hyperparameter outside its domain.
    #[error("{key} = {found}; expected {expected}")]
    Config {
        /// Which one.
        key: &'static str,
        /// What was given.
        found: String,
        /// What would do.
        expected: &'static str,
    },
    /// Hyperparameters that cannot be read.
    #[error("{0}")]
    Settings(String),
    /// A size above its bound.
    #[error(transparent)]
    TooLarge(#[from] album_base::limits::TooLarge),
    /// Networks and batches that do not fit into memory.
    #[error("{0}; choose smaller networks (hidden, ensemble) or a smaller batch_size")]
    Memory(#[from] album_base::machine::NotEnough),
    /// Discrete actions for an algorithm that needs numbers.
    #[error(
        "the data has {choices} discrete actions, and this agent needs continuous ones; agents that learn discrete actions: {agents}"
    )]
    Discrete {
        /// How many actions there are to choose from.
        choices: usize,
        /// The agents that would do.
        agents: String,
    },
    /// No algorithm of this name.
    #[error("there is no agent `{name}`{hint}")]
    Unknown {
        /// The name.
        name: String,
        /// What may have been meant.
        hint: String,
    },
    /// A state of another agent.
    #[error("the checkpoint holds a network `{found}` where `{expected}` is expected")]
    Network {
        /// Its name there.
        found: String,
        /// The name here.
        expected: String,
    },
    /// A state with another number of networks.
    #[error("the checkpoint holds {found} networks; expected {expected}")]
    Networks {
        /// How many there are.
        found: usize,
        /// How many there should be.
        expected: usize,
    },
    /// A state of an agent for other data.
    #[error("the checkpoint is for other data: {0}")]
    Blueprint(String),
    /// A tensor of another name or shape.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// A device that failed.
    #[error(transparent)]
    Device(#[from] XlaError),
}

impl AgentError {
    /// The refusal of an agent that needs continuous actions.
    pub(crate) fn discrete(choices: usize) -> Self {
        let fits = |kind: &&AgentKind| kind.learns_discrete();
        let names: Vec<&str> = AGENTS.iter().filter(fits).map(|kind| kind.name).collect();
        AgentError::Discrete { choices, agents: names.join(", ") }
    }
}
