//! Datasets by recipe: equal recipes record equal files.

pub mod navigate;
pub mod play;
pub mod rollouts;
mod stamp;
mod work;

/// Which of the two datasets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// Agents learn from it.
    Train,
    /// Held out, to check them on.
    Validation,
}
