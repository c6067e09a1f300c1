//! A policy defined by a function in a Python file.

use std::path::Path;

use album_data::ActionSpace;

use super::Turn;
use crate::env::EnvShape;
use crate::error::EnvError;
use crate::pool::{Answer, EnvPool};
use crate::python::{Limits, Python, Suite, WorkerError, WorkerPool};

/// A function in a Python file that maps an observation to an action, running in its own worker processes.
///
/// It takes the observation as a flat vector and, optionally, a NumPy generator seeded by the episode's seed.
///
/// The workers see it as an environment with actions and observations swapped.
#[derive(Debug)]
pub struct PythonPolicy {
    pool: WorkerPool,
    name: String,
}

impl PythonPolicy {
    /// Loads the function `function` of a file, for an environment of this shape and with as many workers.
    pub fn open(
        path: &Path,
        function: &str,
        shape: &EnvShape,
        workers: usize,
        python: &Python,
    ) -> Result<Self, EnvError> {
        let name = format!("{}:{function}", path.display());
        let choices = match shape.actions {
            ActionSpace::Continuous { .. } => 0,
            ActionSpace::Discrete { n } => n,
        };
        let suite = Suite::policy(name.clone(), [shape.observation_dim, shape.action_dim(), choices]);
        Ok(Self { pool: WorkerPool::new(suite, workers, python, Limits::default())?, name })
    }

    /// Appends the action for each observation.
    pub fn act(
        &mut self,
        observations: &[f32],
        turns: &[Turn],
        actions: &mut Vec<f32>,
    ) -> Result<(), EnvError> {
        let dim = observations.len() / turns.len().max(1);
        let mut started = 0;
        for turn in turns.iter().filter(|turn| turn.step == 0) {
            self.pool.reset(turn.slot, turn.episode, false)?;
            started += 1;
        }
        self.gather(started)?;
        for (turn, observation) in turns.iter().zip(observations.chunks(dim.max(1))) {
            self.pool.step(turn.slot, observation)?;
        }
        let found = self.gather(turns.len())?;
        for turn in turns {
            let action = found.iter().find(|(slot, _)| *slot == turn.slot);
            actions.extend(action.map(|(_, action)| action.as_slice()).unwrap_or_default());
        }
        Ok(())
    }

    /// Waits for this many answers.
    fn gather(&mut self, count: usize) -> Result<Vec<(usize, Vec<f32>)>, EnvError> {
        let mut found = Vec::new();
        while found.len() < count {
            for (slot, answer) in self.pool.wait()? {
                match answer {
                    Answer::Started { observation, .. } => found.push((slot, observation)),
                    Answer::Stepped(step) => found.push((slot, step.observation)),
                    Answer::Lost { reason } => {
                        let environment = self.name.clone();
                        return Err(WorkerError::Failed { environment, reason, said: String::new() }.into());
                    }
                }
            }
        }
        Ok(found)
    }
}
