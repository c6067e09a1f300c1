//! Environments side by side: requests go out to any of them, answers come back as they are ready.

use std::collections::BTreeMap;

use crate::env::{Env, Frame, Step};
use crate::error::EnvError;

/// What an environment answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// To a reset.
    Started {
        /// The first observation of the episode.
        observation: Vec<f32>,
        /// A picture, where it was asked for.
        frame: Option<Frame>,
    },
    /// To a step.
    Stepped(Step),
    /// The environment was lost with its episode. There is a new one in its place, which waits for a reset.
    Lost {
        /// What happened.
        reason: String,
    },
}

/// Environments of one task, each in a numbered slot.
///
/// An episode is a [`reset`](Self::reset) of its slot, then a [`step`](Self::step) for every answer, until a step
/// is `terminated` or `truncated`. What an episode does depends on its seed and the actions alone, not on its slot.
pub struct Envs {
    envs: Vec<Box<dyn Env>>,
    answers: Vec<Option<Answer>>,
    versions: BTreeMap<String, String>,
}

impl Envs {
    /// Native environments, one for each slot.
    pub fn native(envs: Vec<Box<dyn Env>>) -> Self {
        Self { answers: envs.iter().map(|_| None).collect(), envs, versions: BTreeMap::new() }
    }

    /// Number of slots.
    pub fn len(&self) -> usize {
        self.envs.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.envs.is_empty()
    }

    /// Numbers in one action.
    pub fn action_dim(&self) -> usize {
        self.envs.first().map_or(0, |env| env.action_dim())
    }

    /// Versions of the packages that the environments are made of.
    pub fn versions(&self) -> &BTreeMap<String, String> {
        &self.versions
    }

    /// Starts an episode in a slot, with pictures if `frames` is set.
    pub fn reset(&mut self, slot: usize, seed: u64, _frames: bool) -> Result<(), EnvError> {
        let observation = self.envs[slot].reset(seed)?;
        self.answers[slot] = Some(Answer::Started { observation, frame: None });
        Ok(())
    }

    /// Takes one action in a slot.
    pub fn step(&mut self, slot: usize, action: &[f32]) -> Result<(), EnvError> {
        self.answers[slot] = Some(Answer::Stepped(self.envs[slot].step(action)?));
        Ok(())
    }

    /// Waits until at least one slot has answered, and returns all answers there are, in the order of slots.
    pub fn wait(&mut self) -> Result<Vec<(usize, Answer)>, EnvError> {
        let answers = self.answers.iter_mut().enumerate();
        Ok(answers.filter_map(|(slot, answer)| Some((slot, answer.take()?))).collect())
    }
}
