//! Where assembled rows go.

use crate::error::DataError;

/// What happened in a state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step<'a> {
    pub action: &'a [f32],
    pub reward: f32,
    pub mask: f32,
}

/// Takes the rows of a dataset in order.
pub(crate) trait Sink {
    /// A state and what happened in it; nothing where an episode ended.
    fn row(&mut self, state: &[f32], step: Option<Step<'_>>) -> Result<(), DataError>;

    /// Changes the reward of the last transition of the episode that is being written.
    fn set_last_reward(&mut self, reward: f32);
}

/// Rows in memory, actions as they were recorded.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub observations: Vec<f32>,
    pub actions: Vec<f32>,
    pub rewards: Vec<f32>,
    pub masks: Vec<f32>,
    /// Transitions of every episode.
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

    fn set_last_reward(&mut self, reward: f32) {
        if self.open > 0
            && let Some(last) = self.rewards.last_mut()
        {
            *last = reward;
        }
    }
}
