//! What can be wrong with an experiment.

use thiserror::Error;

/// An experiment that cannot be read or does not exist.
#[derive(Debug, Error)]
pub enum ExperimentError {
    /// No experiment of that name.
    #[error("there is no experiment `{name}`{hint} (`album reproduce --list` shows all)")]
    Unknown {
        /// What was asked for.
        name: String,
        /// Names that are near.
        hint: String,
    },
    /// A file that is not an experiment.
    #[error("{place}: {reason}")]
    Invalid {
        /// The file.
        place: String,
        /// What was found and what was expected.
        reason: String,
    },
    /// A file that cannot be read.
    #[error("{place}: {source}")]
    Io {
        /// The file.
        place: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A choice of tasks, seeds or variants that the experiment does not have.
    #[error("{0}")]
    Choice(String),
}
