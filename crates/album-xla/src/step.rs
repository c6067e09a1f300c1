//! What one update does, as data: the part of a program that an engine chooses by.

use crate::XlaError;
use crate::emit::is_input;
use album_nn::{MlpSpec, Recording};

/// A network that lives on a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Net {
    /// Its `Mlp::id`, by which recordings name it.
    pub id: u64,
    /// Its shape.
    pub spec: MlpSpec,
    /// The dimensions of its tensors, in the order of `Mlp::tensors`.
    pub tensors: Vec<Vec<usize>>,
    /// What an update does to it.
    pub role: Role,
}

/// What an update does to a network.
#[derive(Clone, Debug, PartialEq)]
pub enum Role {
    /// Adam steps along its gradient.
    Trained {
        /// Whether it estimates values: these networks are clipped together, and those of the policy.
        is_value: bool,
        /// Decay of the mean of gradients.
        beta1: f64,
        /// Decay of the mean of squared gradients.
        beta2: f64,
        /// Added to the root of the second moment.
        epsilon: f64,
        /// Whether its weights decay (AdamW).
        decays: bool,
    },
    /// It follows another network, by its place.
    Target {
        /// Which one.
        of: usize,
        /// How fast.
        tau: f32,
    },
    /// Nothing.
    Fixed,
}

impl Net {
    pub(crate) fn is_trained(&self) -> bool {
        matches!(self.role, Role::Trained { .. })
    }

    /// Weights, and moments where it is trained.
    pub(crate) fn copies(&self) -> usize {
        if self.is_trained() { 3 } else { 1 }
    }
}

/// What is read off a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The mean of all entries.
    Mean,
    /// The largest.
    Max,
    /// The least.
    Min,
    /// The share of entries that are at most 0.
    ShareNotPositive,
}

/// A part of an update that sees the weights which the part before it has left.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The loss as a tape that defers recorded it.
    pub recording: Recording,
    /// The place of the loss.
    pub loss: usize,
    /// What is read, and at which places.
    pub measures: Vec<(Measure, usize)>,
    /// The networks that it trains, by their places.
    pub trains: Vec<usize>,
}

/// One update.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its parts.
    pub stages: Vec<Stage>,
    /// The targets that move, by their places, in order.
    pub moves: Vec<usize>,
    /// Whether targets mix in the weights from before the update.
    pub before: bool,
    /// The largest norm of the gradient of the value networks, and of that of the policy's.
    pub max_norm: Option<f64>,
    /// Whether the norms of gradients are read.
    pub norms: bool,
}

impl Step {
    /// Takes what is given to the step out of it, number by number: what is left tells which program it needs.
    pub(crate) fn take_inputs(&mut self, data: &mut Vec<f32>) -> Result<(), XlaError> {
        for stage in &mut self.stages {
            stage.recording.nets.clear();
            for value in &mut stage.recording.values {
                let given = std::mem::take(&mut value.value);
                if is_input(value) {
                    if given.len() != value.rows * value.cols {
                        let what = "a value is computed off the tape from what a network returns";
                        return Err(XlaError::Unsupported(what.to_owned()));
                    }
                    data.extend(given);
                }
            }
        }
        Ok(())
    }

    /// Whether two steps, without what is given to them, need the same program.
    pub(crate) fn is_like(&self, other: &Step) -> bool {
        let alike = |a: &Stage, b: &Stage| {
            (a.loss, &a.measures, &a.trains) == (b.loss, &b.measures, &b.trains)
                && a.recording.ids == b.recording.ids
                && a.recording.values == b.recording.values
        };
        self.stages.len() == other.stages.len()
            && self.stages.iter().zip(&other.stages).all(|(a, b)| alike(a, b))
            && self.moves == other.moves
            && (self.before, self.max_norm, self.norms) == (other.before, other.max_norm, other.norms)
    }
}
