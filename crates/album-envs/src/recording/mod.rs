//! Recording datasets: what the recipes have in common.

pub mod navigate;
pub mod play;
mod stamp;

/// Which of the two datasets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// Agents learn from it.
    Train,
    /// Held out, to check them on.
    Validation,
}
