//! What can go wrong while recording.

use std::io;
use std::path::PathBuf;

use album_data::DataError;

use crate::error::EnvError;
use crate::python::WorkerError;

/// Why there is no recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A file that is in the way, or no Python.
    #[error(transparent)]
    Env(#[from] EnvError),

    /// A file cannot be read or written.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// One chunk could not be recorded, again and again.
    #[error("{}: {times} processes did not finish this chunk; the last one: {reason}", .part.display())]
    Lost {
        /// The chunk's file.
        part: PathBuf,
        /// How often it was tried.
        times: usize,
        /// How the last process ended, and its last lines.
        reason: String,
    },

    /// Other packages than those that recorded the chunks would give other data.
    #[error(
        "{}: found chunks that were recorded with {found}, but this Python has {expected}; go on with the packages of \
         before, or remove the folder to start over",
        .folder.display()
    )]
    OtherPackages {
        /// The work folder.
        folder: PathBuf,
        /// Packages of the chunks.
        found: String,
        /// Packages of the interpreter.
        expected: String,
    },

    /// Another process works in the same folder.
    #[error("{}: another process records this dataset already; wait for it, or choose another --out", .folder.display())]
    Busy {
        /// The work folder.
        folder: PathBuf,
    },
}

impl From<DataError> for RecordError {
    fn from(error: DataError) -> Self {
        Self::Env(error.into())
    }
}

impl RecordError {
    /// Whether the cause is input or output, or a program that did not do its part.
    pub fn is_io(&self) -> bool {
        match self {
            Self::Env(EnvError::Data(DataError::Io { .. })) => true,
            Self::Env(EnvError::Python(e)) => e.is_io(),
            Self::Env(EnvError::Worker(WorkerError::NotStarted { .. })) => true,
            Self::Env(_) | Self::OtherPackages { .. } => false,
            Self::Io { .. } | Self::Lost { .. } | Self::Busy { .. } => true,
        }
    }

    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        |source| Self::Io { path, source }
    }
}
