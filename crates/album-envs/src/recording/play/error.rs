//! Errors of a recording.

use std::io;
use std::path::PathBuf;

use album_data::DataError;

use crate::error::EnvError;

/// Why a recording failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A file is in the way, or Python or its workers cannot be used.
    #[error(transparent)]
    Env(#[from] EnvError),

    /// A file cannot be read or written.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },

    /// A chunk failed in several processes.
    #[error("{}: {times} processes did not finish this chunk; the last one: {reason}", .part.display())]
    Lost {
        /// The chunk's file.
        part: PathBuf,
        /// Number of attempts.
        times: usize,
        /// How the last process ended, with its last lines.
        reason: String,
    },

    /// The packages differ from those that recorded the chunks, and could record other data.
    #[error(
        "{}: found chunks that were recorded with {found}, but this Python has {expected}; continue with the same \
         packages, or remove the folder to start over",
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

    /// A recording with a walking body needs an expert policy.
    #[error("{recipe}: needs an expert policy")]
    NoExpert {
        /// The recording.
        recipe: String,
    },

    /// Another process is working in the same folder.
    #[error("{}: another process is recording this dataset; wait for it, or choose another --out", .folder.display())]
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
    /// Whether the cause is I/O or a failing process.
    pub fn is_io(&self) -> bool {
        match self {
            Self::Env(e) => e.is_environment(),
            Self::OtherPackages { .. } | Self::NoExpert { .. } => false,
            Self::Io { .. } | Self::Lost { .. } | Self::Busy { .. } => true,
        }
    }

    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        |source| Self::Io { path, source }
    }
}
