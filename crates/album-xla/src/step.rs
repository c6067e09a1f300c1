//! Describes one update as data. Programs are compiled from it and looked up by it.

use crate::XlaError;
use crate::emit::is_input;
use album_nn::{MlpSpec, Origin, Recording, StepRates};

/// A network that lives on a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Net {
    /// Its `Mlp::id`, by which recordings name it.
    pub id: u64,
    /// Its architecture.
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
        /// Whether it is a value network. Gradients are clipped by their joint norm over the value networks,
        /// and separately over the policy's.
        is_value: bool,
        /// Decay of the first moment.
        beta1: f64,
        /// Decay of the second moment.
        beta2: f64,
        /// Added to the root of the second moment.
        epsilon: f64,
        /// Whether weight decay applies (AdamW).
        decays: bool,
    },
    /// A target network: a moving average of another network.
    Target {
        /// The index of the online network.
        of: usize,
        /// The weight of the online network in each move.
        tau: f32,
    },
    /// Updates leave it unchanged.
    Fixed,
}

impl Net {
    /// Whether two networks, of two seeds, can be updated by the same program.
    pub(crate) fn is_like(&self, other: &Net) -> bool {
        (&self.spec, &self.tensors, &self.role) == (&other.spec, &other.tensors, &other.role)
    }

    pub(crate) fn is_trained(&self) -> bool {
        matches!(self.role, Role::Trained { .. })
    }

    /// How many tensors there are per weight tensor: the weights, and two moments if it is trained.
    pub(crate) fn copies(&self) -> usize {
        if self.is_trained() { 3 } else { 1 }
    }
}

/// A statistic of a recorded value, reported as a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The mean of all entries.
    Mean,
    /// The largest entry.
    Max,
    /// The smallest entry.
    Min,
    /// The fraction of entries that are at most 0.
    ShareNotPositive,
}

/// A part of an update: one loss and the networks it trains. It sees the weights that the previous stage left.
#[derive(Clone, Debug)]
pub struct Stage {
    /// What a deferring tape recorded.
    pub recording: Recording,
    /// The index of the loss in the recording.
    pub loss: usize,
    /// The metrics, each with the index of its value.
    pub measures: Vec<(Measure, usize)>,
    /// The indices of the networks it trains.
    pub trains: Vec<usize>,
}

/// One update.
#[derive(Clone, Debug)]
pub struct Step {
    /// The stages, in order.
    pub stages: Vec<Stage>,
    /// The indices of the target networks that move, in order.
    pub moves: Vec<usize>,
    /// Whether targets move towards the weights from before the update, instead of the new ones.
    pub before: bool,
    /// The bound on the gradient norm, applied to the value networks and to the policy separately.
    pub max_norm: Option<f64>,
    /// Whether gradient norms are reported.
    pub norms: bool,
}

/// A request for an update: the computation, and its inputs.
#[derive(Debug)]
pub(crate) struct Ask {
    /// The step without its inputs; what is left identifies the program.
    pub(crate) step: Step,
    /// The rates of all trained networks, then the step's inputs.
    pub(crate) data: Vec<f32>,
    /// Row indices into the tables.
    pub(crate) places: Vec<i32>,
}

impl Ask {
    /// Separates the inputs from the step. Network ids become indices into `nets`; row indices are offset by
    /// `first_rows`, the seed's first row in each table.
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
    /// Whether two steps are the same apart from their inputs.
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
