//! What one update does, as data: the part of a program that an engine chooses by.

use crate::XlaError;
use crate::emit::is_input;
use album_nn::{MlpSpec, Origin, Recording, StepRates};

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
    /// Whether the same update suits both; they are networks of two seeds.
    pub(crate) fn is_like(&self, other: &Net) -> bool {
        (&self.spec, &self.tensors, &self.role) == (&other.spec, &other.tensors, &other.role)
    }

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

/// An update that a device is asked for: what is computed, and from which numbers.
#[derive(Debug)]
pub(crate) struct Ask {
    /// Without the numbers that are given to it: what is left tells which program it needs.
    pub(crate) step: Step,
    /// The rates of all trained networks, then what is given to the step.
    pub(crate) data: Vec<f32>,
    /// Rows of tables.
    pub(crate) places: Vec<i32>,
}

impl Ask {
    /// Takes what is given to the step out of it, number by number. Networks are named by their places among `nets`; rows of
    /// tables are counted from `first_rows` on.
    pub(crate) fn new(
        mut step: Step,
        rates: &[StepRates],
        nets: &[Net],
        first_rows: &[u32],
    ) -> Result<Self, XlaError> {
        let trained = nets.iter().filter(|net| net.is_trained()).count();
        debug_assert_eq!(rates.len(), trained, "rates of trained networks");
        let mut data: Vec<f32> = rates.iter().flat_map(|r| [r.rate, r.root, r.kept]).collect();
        let mut places = Vec::new();
        for stage in &mut step.stages {
            stage.recording.nets.clear();
            for id in &mut stage.recording.ids {
                let place = nets.iter().position(|net| net.id == *id);
                *id = place.ok_or_else(|| XlaError::Unsupported("a network is not on the device".into()))?
                    as u64;
            }
            for value in &mut stage.recording.values {
                let given = std::mem::take(&mut value.value);
                if let Origin::Rows { at, table } = &mut value.origin {
                    let first = first_rows.get(*table).copied().unwrap_or(0);
                    places.extend(std::mem::take(at).into_iter().map(|row| (first + row) as i32));
                } else if is_input(value) {
                    if given.len() != value.rows * value.cols {
                        let what = "a value is computed off the tape from what a network returns";
                        return Err(XlaError::Unsupported(what.to_owned()));
                    }
                    data.extend(given);
                }
            }
        }
        Ok(Ask { step, data, places })
    }

    /// Whether two updates need the same program.
    pub(crate) fn is_like(&self, other: &Ask) -> bool {
        self.data.len() == other.data.len() && self.step.is_like(&other.step)
    }
}

impl Step {
    /// Whether two steps, without what is given to them, are the same.
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
