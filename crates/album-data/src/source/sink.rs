//! Receivers of assembled rows.

use crate::error::DataError;

/// Action, reward and mask of a transition.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step<'a> {
    pub action: &'a [f32],
    pub reward: f32,
    pub mask: f32,
}

/// Consecutive transitions of one episode, with the states that they start in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Steps<'a> {
    pub states: &'a [f32],
    pub actions: &'a [f32],
    pub rewards: &'a [f32],
    /// Empty if all masks are 1.
    pub masks: &'a [f32],
}

/// Receives the rows of a dataset in order.
pub(crate) trait Sink {
    /// Adds a state and the transition that starts there; `None` for the last state of an episode.
    fn row(&mut self, state: &[f32], step: Option<Step<'_>>) -> Result<(), DataError>;

    /// Adds several states and the transitions that start there.
    fn rows(&mut self, steps: Steps<'_>) -> Result<(), DataError>;

    /// Overwrites the reward of the current episode's last transition.
    fn set_last_reward(&mut self, reward: f32);
}

/// Rows in memory, with actions as recorded, in physical units.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub observations: Vec<f32>,
    pub actions: Vec<f32>,
    pub rewards: Vec<f32>,
    pub masks: Vec<f32>,
    /// Transitions per episode.
    pub lengths: Vec<usize>,
    pub open: usize,
    pub action_dim: usize,
}

impl Sink for Memory {
    fn row(&mut self, state: &[f32], step: Option<Step<'_>>) -> Result<(), DataError> {
        self.observations.extend_from_slice(state);
        match step {
            Some(Step { action, reward, mask }) => {
                self.actions.extend_from_slice(action);
                self.rewards.push(reward);
                self.masks.push(mask);
                self.open += 1;
            }
            None => {
                self.actions.resize(self.actions.len() + self.action_dim, 0.0);
                self.rewards.push(0.0);
                self.masks.push(1.0);
                self.lengths.push(self.open);
                self.open = 0;
            }
        }
        Ok(())
    }

    fn rows(&mut self, Steps { states, actions, rewards, masks }: Steps<'_>) -> Result<(), DataError> {
        self.observations.extend_from_slice(states);
        self.actions.extend_from_slice(actions);
        self.rewards.extend_from_slice(rewards);
        self.masks.extend_from_slice(masks);
        self.masks.resize(self.rewards.len(), 1.0);
        self.open += rewards.len();
        Ok(())
    }

    fn set_last_reward(&mut self, reward: f32) {
        if self.open > 0
            && let Some(last) = self.rewards.last_mut()
        {
            *last = reward;
        }
    }
}
