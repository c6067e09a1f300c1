//! The metadata of a policy file.

use serde::{Deserialize, Serialize};

/// The origin, inputs and outputs of a policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The task that it was trained on.
    pub task: String,
    /// The algorithm.
    pub agent: String,
    /// The seed of the training run.
    pub seed: u64,
    /// Number of training updates.
    pub step: u64,
    /// SHA-256 of all weights of the agent, as reported by the run.
    pub weights_sha256: String,
    /// The version of album that wrote the file.
    pub album: String,
    /// Names of the observation dimensions.
    pub observations: Vec<String>,
    /// The action space.
    pub actions: Actions,
    /// Number of actions per decision, to be executed one after the other.
    pub open_loop: usize,
    /// Random numbers that a decision uses.
    pub noise: Noise,
}

/// The action space.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Actions {
    /// Continuous actions in physical units.
    Continuous {
        /// Names of the dimensions.
        names: Vec<String>,
        /// Lower bound of each dimension.
        low: Vec<f32>,
        /// Upper bound of each dimension.
        high: Vec<f32>,
    },
    /// Discrete actions, given by index.
    Discrete {
        /// Number of choices.
        n: usize,
        /// Their names, or one name for all of them.
        names: Vec<String>,
    },
}

impl Actions {
    /// Dimension of one action.
    pub fn dim(&self) -> usize {
        match self {
            Actions::Continuous { low, .. } => low.len(),
            Actions::Discrete { .. } => 1,
        }
    }
}

/// Random numbers that a policy draws per observation, in this order; zero if it is deterministic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noise {
    /// Count of standard normal numbers.
    pub normal: usize,
    /// Count of numbers uniform on [0, 1).
    pub uniform: usize,
}

impl Noise {
    /// Their total count.
    pub fn len(self) -> usize {
        self.normal.saturating_add(self.uniform)
    }

    /// Whether the policy is deterministic.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

impl Manifest {
    /// Dimension of an observation.
    pub fn observation_dim(&self) -> usize {
        self.observations.len()
    }

    /// Length of a decision: all its actions side by side.
    pub fn decision_len(&self) -> usize {
        self.open_loop.saturating_mul(self.actions.dim())
    }

    /// Refuses inconsistent sizes.
    pub(crate) fn check(&self) -> Result<(), String> {
        let most = crate::graph::MOST_ENTRIES;
        if !(1..=most).contains(&self.observation_dim()) {
            return Err(format!(
                "observations of dimension {}; expected 1 to {most}",
                self.observation_dim()
            ));
        }
        if !(1..=most).contains(&self.decision_len()) {
            return Err(format!("decisions of dimension {}; expected 1 to {most}", self.decision_len()));
        }
        if self.noise.len() > most {
            return Err(format!("{} numbers of noise; expected at most {most}", self.noise.len()));
        }
        match &self.actions {
            Actions::Continuous { names, low, high } => {
                let bounds = low
                    .iter()
                    .zip(high)
                    .all(|(low, high)| low.is_finite() && high.is_finite() && low <= high);
                if names.len() != low.len() || high.len() != low.len() || !bounds {
                    return Err("bounds of actions that contradict each other".into());
                }
            }
            Actions::Discrete { n, .. } => {
                if *n == 0 || self.open_loop != 1 {
                    return Err(format!("{n} choices, {} at a time", self.open_loop));
                }
            }
        }
        Ok(())
    }
}
