//! Errors of policy files and of calls to a policy.

use std::path::PathBuf;

/// Why a policy cannot be loaded or cannot act.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The file cannot be read.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Not a policy file, or a damaged one.
    #[error("not a policy that this version reads: {0}")]
    Damaged(String),
    /// A policy file of another version.
    #[error("a policy file of version {found}; expected {expected}: export it again, or update album-policy")]
    Version {
        /// The file's version.
        found: String,
        /// The version that this crate reads.
        expected: u32,
    },
    /// A slice of the wrong length.
    #[error("{what}: found {found} numbers; expected {expected}")]
    Length {
        /// Name of the slice.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The expected length.
        expected: String,
    },
    /// NaN or infinity in an observation.
    #[error("row {row} of the observations: `{name}` is {found}; expected a finite number")]
    NotFinite {
        /// The row, from 0.
        row: usize,
        /// Name of the observation dimension.
        name: String,
        /// The value found.
        found: f32,
    },
    /// Overflow of single precision between observation and action.
    #[error(
        "row {row}: the action is not a number; is the observation far from what the policy was trained on?"
    )]
    Overflow {
        /// The row, from 0.
        row: usize,
    },
}

impl PolicyError {
    pub(crate) fn damaged(what: impl Into<String>) -> Self {
        PolicyError::Damaged(what.into())
    }
}
