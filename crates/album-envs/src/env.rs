//! What evaluation needs of an environment.

use album_data::ogbench::{Family, TaskName};

use crate::error::EnvError;
use crate::pointmaze::PointMaze;

/// The outcome of one step.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The state after the step.
    pub observation: Vec<f32>,
    /// The reward of the state before the step and the action.
    pub reward: f64,
    /// Whether the episode is over because of what happened in it.
    pub terminated: bool,
    /// Whether the episode is over because it reached the horizon.
    pub truncated: bool,
    /// Whether the task was solved in the state before the step.
    pub success: bool,
    /// A picture of the state after the step, where one was asked for and can be drawn.
    pub frame: Option<Frame>,
}

/// A picture.
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
pub trait Env: Send {
    /// Numbers in one observation.
    fn observation_dim(&self) -> usize;

    /// Numbers in one action. Each counts from -1 to 1 and is clipped to that.
    fn action_dim(&self) -> usize;

    /// Steps after which an episode is truncated.
    fn horizon(&self) -> usize;

    /// Starts an episode and returns its first observation. Equal seeds start
    /// equal episodes.
    fn reset(&mut self, episode_seed: u64) -> Result<Vec<f32>, EnvError>;

    /// Takes one action.
    fn step(&mut self, action: &[f32]) -> Result<Step, EnvError>;
}

/// The environment that a task is evaluated in.
pub fn make(task: &TaskName) -> Result<Box<dyn Env>, EnvError> {
    match task.environment().family {
        Family::PointMaze(_) => Ok(Box::new(PointMaze::new(task)?)),
        _ => Err(EnvError::NotNative { task: task.to_string() }),
    }
}
