//! Errors of the library.

use album_base::files;
use album_data::DataError;
use album_envs::EnvError;
use album_tabular::TabularError;
use std::path::Path;

/// An error. Messages say what was found, what was expected, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Contradictory arguments.
    #[error("{0}")]
    Usage(String),
    /// Invalid tabular input, or a failed solver.
    #[error(transparent)]
    Tabular(Box<TabularError>),
    /// A file that cannot be read or written.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A failed input or output operation.
    #[error("{what}: {source}")]
    Io {
        /// The file or stream.
        what: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// A failed check, or NaN or infinity where a finite number is required.
    #[error("{0}")]
    Numerical(String),
    /// An invalid configuration or task.
    #[error("{0}")]
    Config(String),
    /// No home directory, and so no cache.
    #[error(transparent)]
    NoHome(#[from] album_base::cache::NoHome),
    /// Data that cannot be loaded or recorded.
    #[error("{0}")]
    Load(String),
    /// A failure of training, checkpoints or run directories.
    #[error(transparent)]
    Train(Box<album_train::TrainError>),
    /// A failure of environments or their Python.
    #[error(transparent)]
    Env(#[from] EnvError),
    /// Stopped by a signal; the message says how to resume.
    #[error("{0}")]
    Stopped(String),
    /// Failed runs of an experiment, with the exit code of the first.
    #[error("{message}")]
    Runs {
        /// Which runs failed, why, and where their logs are.
        message: String,
        /// The exit code of the first failed run.
        code: u8,
    },
    /// An external program failed.
    #[error("{0}")]
    Tool(String),
}

impl Error {
    /// The exit code of the command line, which an experiment also records for a failed run.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Usage(_) => 2,
            Error::Data(e) if e.is_io() => 5,
            Error::Data(DataError::Undecided { .. }) => 2,
            Error::Data(_) => 3,
            Error::Tabular(e) => match &**e {
                TabularError::Data(e) if e.is_io() => 5,
                e if e.is_numerical() => 4,
                _ => 3,
            },
            Error::Numerical(_) => 4,
            Error::Config(_) | Error::NoHome(_) | Error::Load(_) => 3,
            Error::Train(e) if e.is_numerical() => 4,
            Error::Train(e) if e.is_io() => 5,
            Error::Train(_) => 3,
            Error::Env(EnvError::BadSpec(_)) => 2,
            Error::Env(e) if e.is_environment() => 5,
            Error::Env(_) => 3,
            Error::Stopped(_) => 75,
            Error::Runs { code, .. } => *code,
            Error::Io { source, .. } if files::is_wrong_kind(source) => 3,
            Error::Io { .. } | Error::Tool(_) => 5,
        }
    }

    /// An input/output failure on a file.
    pub fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        let what = path.display().to_string();
        move |source| Error::Io { what, source }
    }
}

impl From<TabularError> for Error {
    fn from(error: TabularError) -> Self {
        Error::Tabular(Box::new(error))
    }
}

impl From<album_train::TrainError> for Error {
    fn from(error: album_train::TrainError) -> Self {
        Error::Train(Box::new(error))
    }
}

impl From<album_xla::XlaError> for Error {
    fn from(error: album_xla::XlaError) -> Self {
        use album_xla::XlaError::{Compile, OutOfMemory, Plugin};
        match error {
            OutOfMemory { .. } | Compile { .. } | Plugin { .. } => Error::Tool(error.to_string()),
            _ => Error::Config(error.to_string()),
        }
    }
}

impl From<album_agents::AgentError> for Error {
    fn from(error: album_agents::AgentError) -> Self {
        match error {
            album_agents::AgentError::Device(error) => error.into(),
            error => Error::Config(error.to_string()),
        }
    }
}
