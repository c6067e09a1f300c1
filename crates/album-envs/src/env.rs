//! One environment: its shape, its steps and its frames.

use std::fmt;

use album_data::ogbench::Environment;

use crate::error::EnvError;

/// The shape of an environment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EnvSpec {
    /// Numbers in an observation.
    pub observation_dim: usize,
    /// Numbers in an action. Each is clipped to ±1.
    pub action_dim: usize,
    /// Steps after which an episode is truncated.
    pub horizon: usize,
}

impl EnvSpec {
    /// The shape of an environment of OGBench.
    pub fn of(environment: &Environment) -> Self {
        let &Environment { observation_dim, action_dim, horizon, .. } = environment;
        Self { observation_dim, action_dim, horizon }
    }

    /// Refuses actions of another length, and those that are not finite.
    pub fn check_action(&self, action: &[f32]) -> Result<(), EnvError> {
        if action.len() != self.action_dim {
            return Err(EnvError::ActionLength { found: action.len(), expected: self.action_dim });
        }
        match action.iter().position(|x| !x.is_finite()) {
            Some(component) => Err(EnvError::ActionValue { component, found: action[component] }),
            None => Ok(()),
        }
    }
}

/// In an episode with frames, the start, the end and every third step have one.
pub const FRAME_INTERVAL: u32 = 3;

/// The outcome of one step.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The state after the step.
    pub observation: Vec<f32>,
    /// The reward of the state before the step and the action.
    pub reward: f64,
    /// Whether the episode ended by itself.
    pub terminated: bool,
    /// Whether the episode was cut off at the horizon.
    pub truncated: bool,
    /// Whether the task was solved in the state before the step.
    pub success: bool,
    /// The state after the step, where a frame was asked for and can be drawn.
    pub frame: Option<Frame>,
}

/// An image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Pixels in a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Red, green and blue of each pixel, row by row from the top.
    pub rgb: Vec<u8>,
}

/// An episodic environment with continuous observations and actions.
///
/// An episode is [`reset`](Env::reset), then [`step`](Env::step) until a step is
/// `terminated` or `truncated`. The `success` of its last step is that of the episode.
pub trait Env: Send + fmt::Debug {
    /// Its shape.
    fn spec(&self) -> EnvSpec;

    /// Starts an episode and returns its first observation. Equal seeds start
    /// equal episodes.
    fn reset(&mut self, episode_seed: u64) -> Result<Vec<f32>, EnvError>;

    /// Takes one action.
    fn step(&mut self, action: &[f32]) -> Result<Step, EnvError>;

    /// Draws the current state; `None` if the environment cannot.
    fn frame(&self) -> Option<Frame> {
        None
    }
}
