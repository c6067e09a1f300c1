//! Datasets of any environment and policy: `album data record`.
//!
//! Episodes run in parallel in an [`EnvPool`](crate::EnvPool). The reset, the exploration noise and the
//! policy's random draws follow from the recipe's seed and the index of the episode. So the file is the same
//! for any number of workers and after any interruption, and a longer recording starts with the same
//! episodes.
//!
//! A row of the file is a transition: `observations`, `actions` in physical units (or indices), `rewards`,
//! `next_observations`, `terminals` (the environment terminated the episode), `timeouts` (it was truncated)
//! and `episode_ids`.

mod explore;
mod minari;
mod parts;
mod python_policy;
mod recorder;

use std::fmt;

use album_base::rng;
use rand_chacha::rand_core::Rng;
use serde::Serialize;

use crate::env::EnvShape;
use crate::error::EnvError;
use album_data::ActionSpace;

pub use minari::{check_minari, write_minari};
pub use python_policy::PythonPolicy;
pub use recorder::{Outcome, Progress, Recorder, Summary};

/// Everything that a recording depends on, besides the package versions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recipe {
    /// The environment, with a hash of its file if it has one.
    pub env: String,
    /// The policy, with a hash of its weights or file.
    pub policy: String,
    /// The recording seed.
    pub seed: u64,
    /// Number of episodes.
    #[serde(skip)]
    pub episodes: usize,
    /// Steps after which an episode is truncated, unless the environment does so earlier.
    pub max_steps: Option<usize>,
    /// Standard deviation of Gaussian noise on each action component, as a fraction of half its range.
    pub noise: f64,
    /// Fraction of actions that are replaced by uniformly random ones.
    pub epsilon: f64,
}

impl Recipe {
    /// Refuses exploration that the action space does not allow.
    pub fn check(&self, shape: &EnvShape, random: bool) -> Result<(), EnvError> {
        let refuse = |text: String| Err(EnvError::BadSpec(text));
        if !(0.0..=1.0).contains(&self.epsilon) {
            return refuse(format!("--epsilon: found {}, expected a probability", self.epsilon));
        }
        if !(self.noise >= 0.0 && self.noise.is_finite()) {
            return refuse(format!("--noise: found {}, expected a number of at least 0", self.noise));
        }
        match &shape.actions {
            ActionSpace::Discrete { .. } if self.noise > 0.0 => {
                refuse("--noise: found discrete actions, expected continuous ones; use --epsilon".to_owned())
            }
            ActionSpace::Continuous { low, high }
                if (random || self.noise > 0.0 || self.epsilon > 0.0)
                    && !low.iter().chain(high).all(|bound| bound.is_finite()) =>
            {
                refuse(format!(
                    "random actions and noise need bounds, but the action space of {} has infinite ones",
                    self.env
                ))
            }
            _ => Ok(()),
        }
    }

    /// The identity of the data: everything but the number of episodes.
    fn text(&self, versions: &str) -> String {
        // Numbers and strings always serialise.
        let recipe = serde_json::to_string(self).unwrap_or_default();
        format!("{recipe}\n{versions}\n")
    }

    /// The seeds of the first episodes.
    fn seeds(&self) -> Vec<u64> {
        let mut stream = rng::stream(self.seed, "record/episodes");
        (0..self.episodes).map(|_| stream.next_u64()).collect()
    }
}

/// The situation in which a policy is asked for an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// The slot of the pool.
    pub slot: usize,
    /// The seed of the episode.
    pub episode: u64,
    /// Steps done in it.
    pub step: u64,
}

/// A policy as a function: takes observations row by row and their turns, and appends an action for each, in
/// physical units or as an index.
pub type Act<'a> = dyn FnMut(&[f32], &[Turn], &mut Vec<f32>) -> Result<(), EnvError> + 'a;

/// The behaviour policy.
pub enum Policy<'a> {
    /// Uniformly random actions.
    Random,
    /// Any function.
    Acting(Box<Act<'a>>),
}

impl fmt::Debug for Policy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Random => "Random",
            Self::Acting(_) => "Acting",
        })
    }
}
