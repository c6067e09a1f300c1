//! Environments side by side.

use std::collections::BTreeMap;
use std::path::Path;

use album_data::ogbench::{Family, TaskName};

use crate::env::{Env, Frame, Step, make};
use crate::error::EnvError;
use crate::ogbench::{Limits, Pool};
use crate::python::Python;

/// What came of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// An episode has started.
    Started {
        /// Its first state.
        observation: Vec<f32>,
        /// A picture of it, where frames were asked for and the environment can draw.
        frame: Option<Frame>,
    },
    /// A step was taken.
    Stepped(Step),
    /// The worker was lost and with it the episode, which has to be run again from its
    /// start with the same seed. The slot has a new worker. Episodes in other slots of the
    /// worker are lost too.
    Lost {
        /// What happened.
        reason: String,
    },
}

/// Slots that each run an episode at a time, side by side.
///
/// [`reset`](Self::reset) and [`step`](Self::step) ask a slot for something, and
/// [`wait`](Self::wait) gives the answers as they come. Native environments answer at
/// once; those of OGBench run in worker processes, and none waits for another.
///
/// ```
/// use album_data::ogbench::TaskName;
/// use album_envs::{Answer, make_envs};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let task: TaskName = "pointmaze-medium-navigate-singletask-v0".parse()?;
/// let mut envs = make_envs(&task, 2, None)?;
/// for slot in 0..envs.len() {
///     envs.reset(slot, 7, false)?;
/// }
/// for (slot, answer) in envs.wait()? {
///     assert!(matches!(answer, Answer::Started { .. }));
///     envs.step(slot, &[1.0, 0.0])?;
/// }
/// let answers = envs.wait()?;
/// assert_eq!(answers[0].1, answers[1].1);
/// # Ok(())
/// # }
/// ```
pub struct Envs(Kind);

enum Kind {
    Native { envs: Vec<Box<dyn Env>>, answers: Vec<(usize, Answer)>, versions: BTreeMap<String, String> },
    Ogbench(Pool),
}

/// The environments that a task is evaluated in: so many native ones for pointmaze, else so many workers
/// of the interpreter that [`Python::find`] finds.
pub fn make_envs(task: &TaskName, count: usize, python: Option<&Path>) -> Result<Envs, EnvError> {
    match task.environment().family {
        Family::PointMaze(_) => {
            let envs: Result<Vec<_>, _> = (0..count).map(|_| make(task)).collect();
            Ok(Envs::native(envs?))
        }
        _ => Envs::ogbench(task, count, &Python::find(python)?, Limits::default()),
    }
}

impl Envs {
    /// Environments that are stepped where they are asked.
    pub fn native(envs: Vec<Box<dyn Env>>) -> Self {
        Self(Kind::Native { envs, answers: Vec::new(), versions: BTreeMap::new() })
    }

    /// Workers that run the package `ogbench`, with two slots each. Returns when all are ready.
    pub fn ogbench(
        task: &TaskName,
        workers: usize,
        python: &Python,
        limits: Limits,
    ) -> Result<Self, EnvError> {
        Ok(Self(Kind::Ogbench(Pool::new(task, workers, python, limits)?)))
    }

    /// Number of slots.
    pub fn len(&self) -> usize {
        match &self.0 {
            Kind::Native { envs, .. } => envs.len(),
            Kind::Ogbench(pool) => pool.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Numbers in one observation.
    pub fn observation_dim(&self) -> usize {
        match &self.0 {
            Kind::Native { envs, .. } => envs.first().map_or(0, |env| env.observation_dim()),
            Kind::Ogbench(pool) => pool.environment().observation_dim,
        }
    }

    /// Numbers in one action. Each counts from -1 to 1 and is clipped to that.
    pub fn action_dim(&self) -> usize {
        match &self.0 {
            Kind::Native { envs, .. } => envs.first().map_or(0, |env| env.action_dim()),
            Kind::Ogbench(pool) => pool.environment().action_dim,
        }
    }

    /// Steps after which an episode is truncated.
    pub fn horizon(&self) -> usize {
        match &self.0 {
            Kind::Native { envs, .. } => envs.first().map_or(0, |env| env.horizon()),
            Kind::Ogbench(pool) => pool.environment().horizon,
        }
    }

    /// Versions of what the environments run in (`ogbench`, `mujoco`, `gymnasium`, `numpy`,
    /// `python`); nothing for native ones.
    pub fn versions(&self) -> &BTreeMap<String, String> {
        match &self.0 {
            Kind::Native { versions, .. } => versions,
            Kind::Ogbench(pool) => pool.versions(),
        }
    }

    /// Whether a slot should take one of the last `waiting` episodes, now that it has none. If not, other workers
    /// will sooner have nothing to do, and a slot of theirs takes it.
    ///
    /// Slots share workers. A worker that took the last two episodes while another is about to run out of work would
    /// be at them for twice as long.
    pub fn is_next(&self, slot: usize, waiting: usize) -> bool {
        match &self.0 {
            Kind::Native { .. } => waiting > 0,
            Kind::Ogbench(pool) => pool.is_next(slot, waiting),
        }
    }

    /// Processes that the environments run in; native ones run in this one.
    pub fn workers(&self) -> usize {
        match &self.0 {
            Kind::Native { .. } => 1,
            Kind::Ogbench(pool) => pool.processes().len(),
        }
    }

    /// The worker processes; nothing for native environments. With `n` of them, slot `s` is in the one with number
    /// `s % n`.
    pub fn processes(&self) -> Vec<u32> {
        match &self.0 {
            Kind::Native { .. } => Vec::new(),
            Kind::Ogbench(pool) => pool.processes(),
        }
    }

    /// Asks a slot to start an episode, whatever it is at. Equal seeds start equal episodes,
    /// in any slot. With `frames`, answers come with pictures now and then, if the
    /// environment can draw.
    pub fn reset(&mut self, slot: usize, seed: u64, frames: bool) -> Result<(), EnvError> {
        match &mut self.0 {
            Kind::Native { envs, answers, .. } => {
                let observation = envs[slot].reset(seed)?;
                // An answer that nobody fetched is to a request that is void now.
                answers.retain(|&(other, _)| other != slot);
                answers.push((slot, Answer::Started { observation, frame: None }));
            }
            Kind::Ogbench(pool) => pool.reset(slot, seed, frames),
        }
        Ok(())
    }

    /// Asks a slot to take an action, after its last request was answered.
    pub fn step(&mut self, slot: usize, action: &[f32]) -> Result<(), EnvError> {
        match &mut self.0 {
            Kind::Native { envs, answers, .. } => {
                let step = envs[slot].step(action)?;
                answers.push((slot, Answer::Stepped(step)));
                Ok(())
            }
            Kind::Ogbench(pool) => pool.step(slot, action),
        }
    }

    /// Waits until a slot has answered, and returns the answers of all that have, by slot.
    ///
    /// Returns without any if nothing was asked for, and after half a second, so that the
    /// caller can look whether it is to stop.
    pub fn wait(&mut self) -> Result<Vec<(usize, Answer)>, EnvError> {
        match &mut self.0 {
            Kind::Native { answers, .. } => {
                answers.sort_by_key(|&(slot, _)| slot);
                Ok(std::mem::take(answers))
            }
            Kind::Ogbench(pool) => pool.wait(),
        }
    }
}
