//! What a command can fail with, and the exit code that says so.

use album_data::DataError;
use album_envs::EnvError;
use album_tabular::TabularError;
use std::path::Path;

/// A failed command.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Options that do not go together.
    #[error("{0}")]
    Usage(String),
    /// Tabular input or solvers.
    #[error(transparent)]
    Tabular(#[from] TabularError),
    /// A file that cannot be read or written.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A file or stream that cannot be written.
    #[error("{what}: {source}")]
    Io {
        /// The file, or what stands for it.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// Checks that did not pass, or numbers that are not what they must be.
    #[error("{0}")]
    Numerical(String),
    /// A configuration or task that cannot be.
    #[error("{0}")]
    Config(String),
    /// No place for files.
    #[error(transparent)]
    NoHome(#[from] album_base::cache::NoHome),
    /// Data that cannot be loaded or made.
    #[error("{0}")]
    Load(String),
    /// Training, checkpoints, run directories.
    #[error(transparent)]
    Train(#[from] album_train::TrainError),
    /// Environments and the Python they need.
    #[error(transparent)]
    Env(#[from] EnvError),
    /// A signal ended the command; what it says is how to go on.
    #[error("{0}")]
    Stopped(String),
    /// Runs of an experiment that failed, with the exit code of the first.
    #[error("{message}")]
    Runs {
        /// Which, why, and where their logs are.
        message: String,
        /// The exit code.
        code: u8,
    },
    /// Another program that is needed did not do its part.
    #[error("{0}")]
    Tool(String),
}

impl Failure {
    /// The exit code of the command line contract.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Tabular(TabularError::Data(e)) | Failure::Data(e) => match e {
                DataError::Io { .. } => 5,
                _ => 3,
            },
            Failure::Tabular(e) if e.is_numerical() => 4,
            Failure::Tabular(_) => 3,
            Failure::Numerical(_) => 4,
            Failure::Config(_) | Failure::NoHome(_) | Failure::Load(_) => 3,
            Failure::Train(e) if e.is_numerical() => 4,
            Failure::Train(e) if e.is_io() => 5,
            Failure::Train(_) => 3,
            Failure::Env(EnvError::Data(DataError::Io { .. })) => 5,
            Failure::Env(EnvError::Python(e)) if e.is_io() => 5,
            Failure::Env(_) => 3,
            Failure::Stopped(_) => 75,
            Failure::Runs { code, .. } => *code,
            Failure::Io { .. } | Failure::Tool(_) => 5,
        }
    }

    /// An input/output failure on a file.
    pub fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Failure {
        let what = path.display().to_string();
        move |source| Failure::Io { what, source }
    }
}

impl From<album_agents::AgentError> for Failure {
    fn from(error: album_agents::AgentError) -> Self {
        Failure::Config(error.to_string())
    }
}

impl From<album_experiments::ExperimentError> for Failure {
    fn from(error: album_experiments::ExperimentError) -> Self {
        match error {
            album_experiments::ExperimentError::Io { place, source } => Failure::Io { what: place, source },
            other => Failure::Config(other.to_string()),
        }
    }
}
