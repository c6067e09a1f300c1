//! What can go wrong in an environment.

use std::path::PathBuf;

use album_data::DataError;

use crate::python::{PythonError, WorkerError};

/// Why an environment or an oracle could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnvError {
    /// There is no native environment for the task.
    #[error("{task}: album has no native environment for this task, expected a pointmaze task")]
    NotNative {
        /// The task's name.
        task: String,
    },

    /// The action has another length than the environment's.
    #[error("action: found {found} numbers, expected {expected}")]
    ActionLength {
        /// Numbers given.
        found: usize,
        /// Numbers of an action of this environment.
        expected: usize,
    },

    /// A policy gave NaN or infinity.
    #[error("action: component {component} is {found}, expected a finite number")]
    ActionValue {
        /// Which number of the action.
        component: usize,
        /// The number.
        found: f32,
    },

    /// A step was asked for outside of an episode.
    #[error("step: the episode is over or was never started, expected a reset before")]
    NoEpisode,

    /// A file could not be read or written.
    #[error(transparent)]
    Data(#[from] DataError),

    /// There is no Python to run OGBench with.
    #[error(transparent)]
    Python(#[from] PythonError),

    /// A worker process cannot be used.
    #[error(transparent)]
    Worker(#[from] WorkerError),

    /// There is a file already, and it holds something else. It is left alone.
    #[error("{}: found {found}, expected {expected}; move the file away or name another", .path.display())]
    OtherData {
        /// The file.
        path: PathBuf,
        /// What it holds.
        found: String,
        /// What was to be written there.
        expected: String,
    },
}
