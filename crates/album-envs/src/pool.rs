//! Environments that run in parallel.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use album_data::ogbench::TaskName;

use crate::env::{EnvShape, Frame, Step};
use crate::error::EnvError;
use crate::native::{NativePool, PointMaze};
use crate::python::{Limits, Python, Suite, WorkerPool};
use crate::spec::EnvSpec;

/// The answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// An episode has started.
    Started {
        /// Its first observation.
        observation: Vec<f32>,
        /// A frame, if requested and the environment can render.
        frame: Option<Frame>,
    },
    /// A step was taken.
    Stepped(Step),
    /// The worker died or hung, and the episode is lost. Reset the slot with the same seed to repeat it; a
    /// new worker is already starting. Episodes in other slots of that worker are lost too.
    Lost {
        /// The reason.
        reason: String,
    },
}

/// Slots that each run one episode at a time.
///
/// [`reset`](Self::reset) and [`step`](Self::step) send a request to a slot; [`wait`](Self::wait) returns the
/// answers as they arrive, so no slot waits for another. An episode depends only on its seed and actions, not
/// on the slot, the number of slots or the other slots.
///
/// [`NativePool`] steps Rust environments in the calling thread, [`WorkerPool`] runs Python environments in
/// worker processes. Evaluation takes `&mut dyn EnvPool` and does not care which.
///
/// ```
/// use album_data::ogbench::TaskName;
/// use album_envs::{Answer, open_pool};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let task: TaskName = "pointmaze-medium-navigate-singletask-v0".parse()?;
/// let mut pool = open_pool(&task, 2, None)?;
/// for slot in 0..pool.slots() {
///     pool.reset(slot, 7, false)?;
/// }
/// for (slot, answer) in pool.wait()? {
///     assert!(matches!(answer, Answer::Started { .. }));
///     pool.step(slot, &[1.0, 0.0])?;
/// }
/// let answers = pool.wait()?;
/// assert_eq!(answers[0].1, answers[1].1);
/// # Ok(())
/// # }
/// ```
pub trait EnvPool: Send + fmt::Debug {
    /// The shape of the environment; all slots have the same.
    fn shape(&self) -> &EnvShape;

    /// Number of slots.
    fn slots(&self) -> usize;

    /// Versions of the environments' packages; empty for native ones.
    fn versions(&self) -> &BTreeMap<String, String>;

    /// The ids of the worker processes; empty for native environments. With `n` of them, slot `s` runs in process
    /// `s % n`.
    fn processes(&self) -> Vec<u32>;

    /// Number of processes that run episodes. Native environments run in this one.
    fn workers(&self) -> usize {
        self.processes().len().max(1)
    }

    /// Whether an idle slot should take one of the last `waiting` episodes. If not, another worker will be
    /// idle sooner and should take it.
    ///
    /// Slots share workers: a worker that took the last two episodes while another was idle would need twice
    /// as long.
    fn is_next(&self, slot: usize, waiting: usize) -> bool;

    /// Asks a slot to start an episode, aborting the current one. Equal seeds start equal episodes in any
    /// slot. With `frames`, the first, the last and every third step come with a frame, if the environment
    /// can render.
    fn reset(&mut self, slot: usize, seed: u64, frames: bool) -> Result<(), EnvError>;

    /// Asks a slot to take an action; its last request must have been answered.
    fn step(&mut self, slot: usize, action: &[f32]) -> Result<(), EnvError>;

    /// Waits until a slot has answered, and returns all available answers by slot.
    ///
    /// Returns empty if no request is pending, and after half a second, so that the caller can check whether
    /// to stop.
    fn wait(&mut self) -> Result<Vec<(usize, Answer)>, EnvError>;
}

/// Whether a task's environment is native, so that it needs no Python.
pub fn is_native(task: &TaskName) -> bool {
    task.environment().point_maze().is_some()
}

/// The environments to evaluate a task in: `count` native ones for pointmaze, else `count` worker processes
/// of the interpreter that [`Python::find`] finds.
pub fn open_pool(task: &TaskName, count: usize, python: Option<&Path>) -> Result<Box<dyn EnvPool>, EnvError> {
    Ok(match is_native(task) {
        true => Box::new(NativePool::cloned(&PointMaze::new(task)?, count)),
        false => {
            Box::new(WorkerPool::new(Suite::ogbench(task), count, &Python::find(python)?, Limits::default())?)
        }
    })
}

/// The environments of a [`EnvSpec`]: `count` worker processes of the interpreter that [`Python::find`] finds, with two
/// environments in each.
///
/// [`EnvPool::shape`] describes observations and actions; [`EnvShape::check_data`] compares them with data.
pub fn open_env(spec: &EnvSpec, count: usize, python: Option<&Path>) -> Result<Box<dyn EnvPool>, EnvError> {
    Ok(Box::new(WorkerPool::new(Suite::gymnasium(spec), count, &Python::find(python)?, Limits::default())?))
}
