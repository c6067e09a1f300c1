//! What can be wrong with tabular input, or with a solution.

use album_data::DataError;

/// Errors of this crate. The first group is about input (exit code 3 of the command line), the second about
/// numbers (exit code 4).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TabularError {
    /// The discount factor is not in `[0, 1)`.
    #[error("gamma is {0}; expected a number in [0, 1)")]
    Gamma(f64),
    /// The rollout length is not positive.
    #[error("K is {0}; expected a rollout length of at least 1")]
    RolloutLength(usize),
    /// A weight or penalty coefficient is not usable.
    #[error("{name} is {value}; expected a {expected}")]
    Coefficient {
        /// Which one.
        name: &'static str,
        /// What was given.
        value: f64,
        /// What would do, e.g. "positive number".
        expected: &'static str,
    },
    /// An MDP that does not hold together.
    #[error("not an MDP: {0}")]
    Mdp(String),
    /// A dataset that does not hold together.
    #[error("{file}: {what}")]
    Dataset {
        /// The file, or what stands for it.
        file: String,
        /// What was found, what was expected, in which key and row.
        what: String,
    },
    /// A file that cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A program too large to build.
    #[error("{0}")]
    TooLarge(String),
    /// This build lacks an optional part.
    #[error("{0}")]
    NotBuilt(String),

    /// A solver did not deliver.
    #[error("{solver}: {what}")]
    Solver {
        /// Which solver.
        solver: &'static str,
        /// What it said.
        what: String,
    },
}

impl TabularError {
    /// Whether the numbers failed rather than the input.
    pub fn is_numerical(&self) -> bool {
        matches!(self, TabularError::Solver { .. })
    }
}
