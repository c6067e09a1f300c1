//! The interface between the trainer and an algorithm.

use crate::acting::Policy;
use crate::blueprint::Blueprint;
use crate::registry::{AGENTS, AgentKind};
use album_data::{Batch, SegmentConfig, View};
use album_nn::{Adam, Mlp, Tensor, TensorError};
use album_xla::XlaError;
use std::borrow::Cow;

/// Named metrics of one update, in a fixed order.
pub type Metrics = Vec<(Cow<'static, str>, f64)>;

/// An offline RL algorithm during training.
pub trait Agent {
    /// The segments that batches consist of.
    fn segments(&self) -> SegmentConfig;

    /// Batch size.
    fn batch_size(&self) -> usize;

    /// One update at training step `step` (counted from 0), on which all schedules depend. Fills `metrics` if
    /// given. Returns the loss, so that the trainer can check at every step that it is finite.
    fn update(&mut self, batch: &Batch, step: u64, metrics: Option<&mut Metrics>) -> f64;

    /// The current metrics of a batch, without learning from it and without gradient norms.
    fn assess(&mut self, batch: &Batch, metrics: &mut Metrics);

    /// A copy of the current policy, unaffected by later updates.
    fn policy(&self) -> Box<dyn Policy>;

    /// The state value of each observation, in units of the data's rewards; `None` if the algorithm has none.
    fn value(&mut self, observations: View<'_>) -> Option<Vec<f32>>;

    /// Q of each observation and action, in units of the data's rewards; `None` if the algorithm has no Q of
    /// single actions. Actions are as a [`Policy`] returns them: in physical units, or the index of a choice.
    fn q(&mut self, _observations: View<'_>, _actions: View<'_>) -> Option<Vec<f32>> {
        None
    }

    /// Q of all choices of each observation, side by side; `None` for continuous actions.
    fn q_of_choices(&mut self, _observations: View<'_>) -> Option<Vec<f32>> {
        None
    }

    /// Number of trainable parameters of all networks.
    fn parameters(&self) -> usize;

    /// Everything that training changes, for a checkpoint.
    fn state(&self) -> AgentState;

    /// The device of the updates, if not the CPU.
    fn device(&self) -> Option<String> {
        None
    }

    /// Why an update or a read-back failed, which can happen on a device.
    fn failure(&self) -> Option<AgentError> {
        None
    }

    /// Restores a checkpoint of an agent with the same configuration and data.
    fn load(&mut self, state: &AgentState) -> Result<(), AgentError>;
}

/// The state of an agent in a checkpoint: with the hyperparameters, all that is needed to act and to resume.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentState {
    /// What the agent derived from its data.
    pub blueprint: Blueprint,
    /// Every network with its optimiser, in a fixed order.
    pub networks: Vec<NetworkState>,
}

/// A network with its optimiser. Moments are empty for networks that are not trained.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkState {
    /// The name, for example `q`.
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

    /// The state of a target network.
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

    /// Checks that the state belongs to this network, with moments if it is trained.
    pub fn check(&self, name: &str, net: &Mlp, trained: bool) -> Result<(), AgentError> {
        if self.name != name {
            return Err(AgentError::Network { found: self.name.clone(), expected: name.to_owned() });
        }
        // Moments have the names and shapes of weights, so a copy of the network can check them all.
        let mut copy = net.clone();
        copy.load(&self.weights)?;
        if trained {
            copy.load(&self.first_moments)?;
            copy.load(&self.second_moments)?;
        }
        Ok(())
    }

    /// Restores a state that has been checked, with the optimiser if there is one.
    pub fn restore(&self, net: &mut Mlp, adam: Option<&mut Adam>) -> Result<(), AgentError> {
        // The optimiser has the same shapes: if it accepts its tensors, so does the network.
        if let Some(adam) = adam {
            adam.load(self.steps, &self.first_moments, &self.second_moments)?;
        }
        net.load(&self.weights)?;
        Ok(())
    }
}

/// Errors in an agent's configuration or state.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// A hyperparameter out of range.
    #[error("{key} = {found}; expected {expected}")]
    Config {
        /// Its name.
        key: &'static str,
        /// The given value.
        found: String,
        /// The valid range.
        expected: &'static str,
    },
    /// Hyperparameters that cannot be parsed.
    #[error("{0}")]
    Settings(String),
    /// A size above its limit.
    #[error(transparent)]
    TooLarge(#[from] album_base::limits::TooLarge),
    /// Networks and batches that do not fit into memory.
    #[error("{0}; choose smaller networks (hidden, ensemble) or a smaller batch_size")]
    Memory(#[from] album_base::machine::NotEnough),
    /// Discrete actions, which the algorithm does not support.
    #[error(
        "the data has {choices} discrete actions, but this agent needs continuous ones; agents that support discrete actions: {agents}"
    )]
    Discrete {
        /// Number of discrete actions.
        choices: usize,
        /// The agents that support them.
        agents: String,
    },
    /// No algorithm of this name.
    #[error("there is no agent `{name}`{hint}")]
    Unknown {
        /// The name.
        name: String,
        /// A suggestion of the nearest name.
        hint: String,
    },
    /// A state of another agent.
    #[error("the checkpoint holds a network `{found}` where `{expected}` is expected")]
    Network {
        /// The name in the checkpoint.
        found: String,
        /// The name of the agent's network.
        expected: String,
    },
    /// A state with another number of networks.
    #[error("the checkpoint holds {found} networks; expected {expected}")]
    Networks {
        /// The number of networks found.
        found: usize,
        /// The number of networks expected.
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
