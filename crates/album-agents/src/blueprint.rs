//! What an agent derives from its data.

use crate::Encoding;
use crate::agent::AgentError;
use crate::algorithm::{Setup, Sizes};
use album_data::{ActionSpace, Dataset};
use serde::{Deserialize, Serialize};

/// Everything that networks and policy depend on besides the hyperparameters. A checkpoint contains it, so
/// that an agent can be rebuilt without its data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Blueprint {
    /// The encoding of observations.
    pub encoding: Encoding,
    /// Dimension of an action.
    pub action_dim: usize,
    /// The action space in physical units, if not the box [-1, 1].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_space: Option<ActionSpace>,
    /// Smallest and largest value, in scaled rewards, if the algorithm takes them from the data. In single
    /// precision, which survives a text format exactly.
    pub value_range: Option<[f32; 2]>,
}

impl Blueprint {
    /// The blueprint of an algorithm for some data; `seed` draws the frequencies of Fourier features.
    pub fn new(setup: &dyn Setup, data: &Dataset, seed: u64) -> Self {
        Blueprint {
            encoding: setup.common().encoding(data, seed),
            action_dim: data.action_dim(),
            action_space: Some(data.action_space().clone()).filter(|space| !space.is_unit()),
            value_range: setup.value_range(data),
        }
    }

    /// The dimensions of the networks.
    pub fn sizes(&self) -> Sizes {
        let (s, a) = (self.encoding.dim(), self.action_dim);
        Sizes { s, a, choices: self.choices(), value_range: self.value_range }
    }

    /// The action space in physical units.
    pub fn action_space(&self) -> ActionSpace {
        self.action_space.clone().unwrap_or_else(|| ActionSpace::unit(self.action_dim))
    }

    /// Number of discrete actions, if actions are discrete.
    pub fn choices(&self) -> Option<usize> {
        match self.action_space {
            Some(ActionSpace::Discrete { n }) => Some(n),
            _ => None,
        }
    }

    /// Refuses inconsistent sizes, which a file may contain.
    pub(crate) fn check(&self) -> Result<(), AgentError> {
        let range = self.value_range.is_none_or(|[low, high]| low < high);
        let actions = self.action_space.as_ref().is_none_or(|space| match space {
            ActionSpace::Continuous { low, high } => {
                low.len() == self.action_dim
                    && high.len() == self.action_dim
                    && low
                        .iter()
                        .zip(high)
                        .all(|(low, high)| low.is_finite() && high.is_finite() && low <= high)
            }
            ActionSpace::Discrete { n } => *n > 0 && self.action_dim == 1,
        });
        // No data has wider rows, and arithmetic on larger sizes might overflow.
        let narrow = |width: usize| width <= 1 << 24;
        let sizes = [self.encoding.observation_dim(), self.action_dim, self.choices().unwrap_or(1)];
        if self.encoding.is_consistent()
            && self.action_dim > 0
            && sizes.into_iter().all(narrow)
            && actions
            && range
        {
            Ok(())
        } else {
            Err(AgentError::Blueprint("its sizes contradict each other".into()))
        }
    }

    /// Refuses a different blueprint, naming the difference.
    pub(crate) fn check_same(&self, found: &Blueprint) -> Result<(), AgentError> {
        let sizes = |b: &Blueprint| (b.encoding.observation_dim(), b.action_dim);
        let what = if sizes(self) != sizes(found) {
            let ((s, a), (t, b)) = (sizes(found), sizes(self));
            format!("observations of dimension {s} and actions of dimension {a}; expected {t} and {b}")
        } else if self.action_space != found.action_space {
            format!("the actions of {}; expected {}", told(&found.action_space()), told(&self.action_space()))
        } else if self.encoding != found.encoding {
            "another encoding of observations, so it was trained on other data or with another seed".into()
        } else if self.value_range != found.value_range {
            format!("values in {:?}; expected {:?}", found.value_range, self.value_range)
        } else {
            return Ok(());
        };
        Err(AgentError::Blueprint(what))
    }
}

/// The smallest and largest discounted return possible with rewards like the data's: a non-terminal reward may occur
/// at every step, a terminal one only once.
pub fn value_range(data: &Dataset, gamma: f64) -> [f64; 2] {
    let sums = (0..data.len()).map(|transition| {
        let reward = f64::from(data.reward(transition));
        if data.mask(transition) == 0.0 { reward } else { reward / (1.0 - gamma) }
    });
    let ends = [f64::INFINITY, f64::NEG_INFINITY];
    sums.fold(ends, |[least, greatest], sum| [least.min(sum), greatest.max(sum)])
}

/// A description of an action space.
fn told(space: &ActionSpace) -> String {
    match space {
        ActionSpace::Continuous { low, high } => format!("a box from {low:?} to {high:?}"),
        ActionSpace::Discrete { n } => format!("{n} choices"),
    }
}
