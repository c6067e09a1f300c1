//! Errors of environments and recordings.

use std::path::PathBuf;

use album_data::DataError;

use crate::python::{PythonError, WorkerError};

/// Why an environment cannot run or a dataset cannot be recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnvError {
    /// There is no native environment for the task.
    #[error("{task}: album has no native environment for this task; expected a pointmaze task")]
    NotNative {
        /// The task's name.
        task: String,
    },

    /// The action has the wrong length.
    #[error("action: found {found} numbers, expected {expected}")]
    ActionLength {
        /// Length of the given action.
        found: usize,
        /// Action dimension of this environment.
        expected: usize,
    },

    /// The action contains NaN or infinity.
    #[error("action: component {component} is {found}, expected a finite number")]
    ActionValue {
        /// Index of the component.
        component: usize,
        /// Its value.
        found: f32,
    },

    /// The action index is out of range.
    #[error("action: found {found}, expected a whole number from 0 to {}", .n - 1)]
    ActionIndex {
        /// The given value.
        found: f32,
        /// Number of actions.
        n: usize,
    },

    /// The environment does not match the data.
    #[error(
        "{environment}: found {found}, expected {expected} as in the data; name the environment of the data"
    )]
    OtherSpaces {
        /// The environment.
        environment: String,
        /// What the environment has.
        found: String,
        /// What the data has.
        expected: String,
    },

    /// The name of an environment is invalid.
    #[error("{0}")]
    BadSpec(String),

    /// An environment in the caller's process failed.
    #[error("{0}")]
    Failed(String),

    /// A step outside an episode.
    #[error("step: the episode is over or was never started; reset the environment first")]
    NoEpisode,

    /// A file could not be read or written.
    #[error(transparent)]
    Data(#[from] DataError),

    /// There is no Python to run workers with.
    #[error(transparent)]
    Python(#[from] PythonError),

    /// A worker process cannot be used.
    #[error(transparent)]
    Worker(#[from] WorkerError),

    /// A recording does not fit into memory.
    #[error(transparent)]
    Memory(#[from] album_base::machine::NotEnough),

    /// The file exists with other contents. It is left untouched.
    #[error("{}: found {found}, expected {expected}; move the file away or choose another name", .path.display())]
    OtherData {
        /// The file.
        path: PathBuf,
        /// What the file contains.
        found: String,
        /// What was to be written.
        expected: String,
    },
}

impl EnvError {
    /// Whether the environment or its runtime is at fault: a failed worker, or spaces that do not match the
    /// data.
    pub fn is_environment(&self) -> bool {
        match self {
            EnvError::Worker(_) | EnvError::OtherSpaces { .. } | EnvError::Failed(_) => true,
            EnvError::Data(e) => e.is_io(),
            EnvError::Python(e) => e.is_io(),
            _ => false,
        }
    }
}
