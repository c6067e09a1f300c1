//! Environments written in Rust. They need neither Python nor MuJoCo.

use std::collections::BTreeMap;

use crate::env::{Env, EnvSpec};
use crate::error::EnvError;
use crate::pool::{Answer, EnvPool};

/// Native environments, one per slot, stepped in the calling thread.
#[derive(Debug)]
pub struct NativePool {
    envs: Vec<Box<dyn Env>>,
    /// Until [`wait`](EnvPool::wait) fetches them.
    answers: Vec<(usize, Answer)>,
    versions: BTreeMap<String, String>,
}

impl NativePool {
    /// One slot for each environment. All must have the same [`EnvSpec`].
    pub fn new(envs: Vec<Box<dyn Env>>) -> Self {
        Self { envs, answers: Vec::new(), versions: BTreeMap::new() }
    }

    /// `slots` copies of an environment.
    pub fn cloned(env: &(impl Env + Clone + 'static), slots: usize) -> Self {
        Self::new((0..slots).map(|_| Box::new(env.clone()) as Box<dyn Env>).collect())
    }
}

impl EnvPool for NativePool {
    fn spec(&self) -> EnvSpec {
        self.envs.first().map_or_else(EnvSpec::default, |env| env.spec())
    }

    fn slots(&self) -> usize {
        self.envs.len()
    }

    fn versions(&self) -> &BTreeMap<String, String> {
        &self.versions
    }

    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    fn is_next(&self, _slot: usize, waiting: usize) -> bool {
        waiting > 0
    }

    fn reset(&mut self, slot: usize, seed: u64, _frames: bool) -> Result<(), EnvError> {
        let observation = self.envs[slot].reset(seed)?;
        // An answer that nobody fetched belongs to the episode that this reset replaces.
        self.answers.retain(|&(other, _)| other != slot);
        self.answers.push((slot, Answer::Started { observation, frame: None }));
        Ok(())
    }

    fn step(&mut self, slot: usize, action: &[f32]) -> Result<(), EnvError> {
        let step = self.envs[slot].step(action)?;
        self.answers.push((slot, Answer::Stepped(step)));
        Ok(())
    }

    fn wait(&mut self) -> Result<Vec<(usize, Answer)>, EnvError> {
        self.answers.sort_by_key(|&(slot, _)| slot);
        Ok(std::mem::take(&mut self.answers))
    }
}
