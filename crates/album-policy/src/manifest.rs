//! What a policy file says about itself.

use serde::{Deserialize, Serialize};

/// Where a policy is from, what it sees and what it does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// What it learned to do.
    pub task: String,
    /// The algorithm.
    pub agent: String,
    /// The seed of the training run.
    pub seed: u64,
    /// Updates done.
    pub step: u64,
    /// SHA-256 of all weights of the agent, as the run reports it.
    pub weights_sha256: String,
    /// The version of album that wrote the file.
    pub album: String,
    /// The names of the numbers in an observation.
    pub observations: Vec<String>,
    /// What actions are.
    pub actions: Actions,
    /// Actions that one decision is made of, to be executed one after the other.
    pub open_loop: usize,
    /// Numbers that a decision draws.
    pub noise: Noise,
}

/// What actions are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Actions {
    /// Numbers in physical units.
    Continuous {
        /// Their names.
        names: Vec<String>,
        /// The least value of each.
        low: Vec<f32>,
        /// The greatest value of each.
        high: Vec<f32>,
    },
    /// The index of a choice.
    Discrete {
        /// How many choices there are.
        n: usize,
        /// Their names, or one name for all of them.
        names: Vec<String>,
    },
}

impl Actions {
    /// Numbers in one action.
    pub fn dim(&self) -> usize {
        match self {
            Actions::Continuous { low, .. } => low.len(),
            Actions::Discrete { .. } => 1,
        }
    }
}

/// Numbers that a policy draws for each observation, in this order. None where it is deterministic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noise {
    /// Standard normal ones.
    pub normal: usize,
    /// Uniform ones on [0, 1).
    pub uniform: usize,
}

impl Noise {
    /// All of them.
    pub fn len(self) -> usize {
        self.normal.saturating_add(self.uniform)
    }

    /// Whether the policy is deterministic.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

impl Manifest {
    /// Numbers in an observation.
    pub fn observation_dim(&self) -> usize {
        self.observations.len()
    }

    /// Numbers that one decision returns: those of all its actions side by side.
    pub fn decision_len(&self) -> usize {
        self.open_loop.saturating_mul(self.actions.dim())
    }

    /// Refuses sizes that contradict each other.
    pub(crate) fn check(&self) -> Result<(), String> {
        let most = crate::graph::MOST_ENTRIES;
        if !(1..=most).contains(&self.observation_dim()) {
            return Err(format!("observations of {} numbers; expected 1 to {most}", self.observation_dim()));
        }
        if !(1..=most).contains(&self.decision_len()) {
            return Err(format!("decisions of {} numbers; expected 1 to {most}", self.decision_len()));
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
