//! One environment: its shape, its steps and its frames.

use std::fmt;

use album_data::ActionSpace;
use album_data::ogbench::Environment;

use crate::error::EnvError;

/// The shape of an environment.
#[derive(Debug, Clone, PartialEq)]
pub struct EnvShape {
    /// Dimension of an observation.
    pub observation_dim: usize,
    /// The action space: continuous in physical units, clipped to bounds that may be infinite, or discrete.
    pub actions: ActionSpace,
    /// Episodes are truncated after this many steps.
    pub horizon: usize,
}

impl Default for EnvShape {
    /// A placeholder without dimensions.
    fn default() -> Self {
        Self { observation_dim: 0, actions: ActionSpace::unit(0), horizon: 0 }
    }
}

impl EnvShape {
    /// The shape of an OGBench environment.
    pub fn of(environment: &Environment) -> Self {
        let &Environment { observation_dim, action_dim, horizon, .. } = environment;
        Self { observation_dim, actions: ActionSpace::unit(action_dim), horizon }
    }

    /// Dimension of an action.
    pub fn action_dim(&self) -> usize {
        self.actions.dim()
    }

    /// Refuses actions of the wrong length, with non-finite components, or with an invalid index.
    pub fn check_action(&self, action: &[f32]) -> Result<(), EnvError> {
        if action.len() != self.action_dim() {
            return Err(EnvError::ActionLength { found: action.len(), expected: self.action_dim() });
        }
        if let Some(component) = action.iter().position(|x| !x.is_finite()) {
            return Err(EnvError::ActionValue { component, found: action[component] });
        }
        match self.actions {
            ActionSpace::Discrete { n }
                if !(action[0] >= 0.0 && action[0] < n as f32 && action[0].fract() == 0.0) =>
            {
                Err(EnvError::ActionIndex { found: action[0], n })
            }
            _ => Ok(()),
        }
    }

    /// Refuses an environment in which a policy learned from other data cannot act: observation dimension and
    /// action space must match. Bounds may differ, because data seldom reaches them.
    pub fn check_data(
        &self,
        environment: &str,
        observation_dim: usize,
        actions: &ActionSpace,
    ) -> Result<(), EnvError> {
        let refuse = |found: String, expected: String| {
            Err(EnvError::OtherSpaces { environment: environment.to_owned(), found, expected })
        };
        if self.observation_dim != observation_dim {
            let written = |n: usize| format!("observations of dimension {n}");
            return refuse(written(self.observation_dim), written(observation_dim));
        }
        let same = match (&self.actions, actions) {
            (ActionSpace::Continuous { low: a, .. }, ActionSpace::Continuous { low: b, .. }) => {
                a.len() == b.len()
            }
            (ActionSpace::Discrete { n: a }, ActionSpace::Discrete { n: b }) => a == b,
            _ => false,
        };
        if same { Ok(()) } else { refuse(words(&self.actions), words(actions)) }
    }
}

fn words(actions: &ActionSpace) -> String {
    match actions {
        ActionSpace::Continuous { low, .. } => format!("continuous actions of dimension {}", low.len()),
        ActionSpace::Discrete { n } => format!("{n} discrete actions"),
    }
}

/// In an episode with frames, the first, the last and every third step have one.
pub const FRAME_INTERVAL: u32 = 3;

/// The outcome of one step.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The state after the step.
    pub observation: Vec<f32>,
    /// The reward of the action in the state before the step.
    pub reward: f64,
    /// Whether the episode terminated.
    pub terminated: bool,
    /// Whether the episode was truncated at the horizon.
    pub truncated: bool,
    /// Whether the task was solved in the state before the step; `None` if the environment does not report
    /// success.
    pub success: Option<bool>,
    /// The rendered state after the step, if requested and possible.
    pub frame: Option<Frame>,
}

/// An image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    /// RGB bytes of each pixel, row by row from the top.
    pub rgb: Vec<u8>,
}

/// An episodic environment.
///
/// An episode is [`reset`](Env::reset), then [`step`](Env::step) until a step is `terminated` or `truncated`.
/// The last reported `success` is that of the episode.
pub trait Env: Send + fmt::Debug {
    /// Its shape.
    fn shape(&self) -> &EnvShape;

    /// Starts an episode and returns its first observation. Equal seeds start equal episodes.
    fn reset(&mut self, episode_seed: u64) -> Result<Vec<f32>, EnvError>;

    /// Takes one action.
    fn step(&mut self, action: &[f32]) -> Result<Step, EnvError>;

    /// Renders the current state; `None` if the environment cannot.
    fn frame(&self) -> Option<Frame> {
        None
    }
}
