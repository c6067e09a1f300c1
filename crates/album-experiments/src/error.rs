//! Errors of experiments and reports.

use std::path::{Path, PathBuf};
use thiserror::Error;

/// An experiment that cannot be read or does not exist.
#[derive(Debug, Error)]
pub enum ExperimentError {
    /// No experiment of that name.
    #[error("there is no experiment `{name}`{hint} (`album reproduce --list` shows all)")]
    Unknown {
        /// The requested name.
        name: String,
        /// Suggestions.
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
        /// The system's error.
        source: std::io::Error,
    },
    /// A choice of tasks, seeds or variants that the experiment does not have.
    #[error("{0}")]
    Choice(String),
}

/// A report that cannot be written.
#[derive(Debug, Error)]
pub enum ReportError {
    /// A file that cannot be read or written.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The report's folder is an existing file.
    #[error("{} is a file; a report is a folder: choose another name", .0.display())]
    NotAFolder(PathBuf),
    /// An SVG file not drawn by album.
    #[error("{} is not a figure that album drew, so it is not put on the page; remove it", .0.display())]
    Figure(PathBuf),
    /// Invalid published numbers.
    #[error(transparent)]
    Published(#[from] crate::published::PublishedError),
}

impl ReportError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> ReportError {
        let path = path.to_path_buf();
        move |source| ReportError::Io { path, source }
    }
}

impl From<ExperimentError> for album::Error {
    fn from(error: ExperimentError) -> Self {
        match error {
            ExperimentError::Io { place, source } => album::Error::Io { what: place, source },
            other => album::Error::Config(other.to_string()),
        }
    }
}

impl From<ReportError> for album::Error {
    fn from(error: ReportError) -> Self {
        match error {
            ReportError::Io { path, source } => album::Error::io(&path)(source),
            ReportError::NotAFolder(_) => album::Error::Usage(error.to_string()),
            ReportError::Figure(_) | ReportError::Published(_) => album::Error::Load(error.to_string()),
        }
    }
}
