//! Datasets by recipe: equal recipes record equal files.

pub mod navigate;
pub mod play;
pub mod rollouts;
mod stamp;
mod work;

/// One of the two splits of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// The training data.
    Train,
    /// The held-out data.
    Validation,
}
