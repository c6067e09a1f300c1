//! Datasets of any environment and policy: `album data record`.
//!
//! Episodes run side by side in an [`EnvPool`](crate::EnvPool). Everything that an episode depends on follows from the
//! recipe's seed and the episode's number: its reset, its exploration, and what the policy draws. So the file is the
//! same for any number of workers and after any interruption, and more episodes begin with the same ones.
//!
//! A row of the file is a transition: `observations`, `actions` in physical units (or indices), `rewards`,
//! `next_observations`, `terminals` (the environment ended the episode), `timeouts` (it was cut) and `episode_ids`.

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

/// Everything that a recording depends on, besides the versions of the packages.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recipe {
    /// The environment, and what its file holds if it is in one.
    pub env: String,
    /// The policy, and what identifies its weights or its file.
    pub policy: String,
    /// Seed of all randomness.
    pub seed: u64,
    /// Number of episodes.
    #[serde(skip)]
    pub episodes: usize,
    /// Steps after which an episode is cut, if the environment does not cut it before.
    pub max_steps: Option<usize>,
    /// Standard deviation of normal noise on each number of an action, in halves of its range.
    pub noise: f64,
    /// Share of actions that are drawn uniformly instead.
    pub epsilon: f64,
}

impl Recipe {
    /// Refuses what cannot be recorded in an environment: exploration that its actions do not allow.
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

    /// What identifies the data: all but the number of episodes.
    fn text(&self, versions: &str) -> String {
        // Numbers and text always have a form in JSON.
        let recipe = serde_json::to_string(self).unwrap_or_default();
        format!("{recipe}\n{versions}\n")
    }

    /// The seeds of the first episodes.
    fn seeds(&self) -> Vec<u64> {
        let mut stream = rng::stream(self.seed, "record/episodes");
        (0..self.episodes).map(|_| stream.next_u64()).collect()
    }
}

/// Where a policy is asked for an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// The slot of the pool.
    pub slot: usize,
    /// The seed of the episode.
    pub episode: u64,
    /// Steps done in it.
    pub step: u64,
}

/// A policy as a function: observations row by row and their turns in, an action for each appended to the vector, in
/// physical units or as an index.
pub type Act<'a> = dyn FnMut(&[f32], &[Turn], &mut Vec<f32>) -> Result<(), EnvError> + 'a;

/// Who acts.
pub enum Policy<'a> {
    /// Uniformly drawn actions.
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
