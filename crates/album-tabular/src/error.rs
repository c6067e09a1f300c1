//! Errors of tabular input and of solvers.

use album_data::DataError;

/// Errors of this crate: first those of input (exit code 3 of the command line), then those of solvers (exit code 4).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TabularError {
    /// The discount factor is not in `[0, 1)`.
    #[error("gamma is {0}; expected a number in [0, 1)")]
    Gamma(f64),
    /// The rollout length is not positive.
    #[error("K is {0}; expected a rollout length of at least 1")]
    RolloutLength(i64),
    /// A weight or penalty coefficient is invalid.
    #[error("{name} is {value}; expected a {expected}")]
    Coefficient {
        /// Its name.
        name: &'static str,
        /// The given value.
        value: f64,
        /// What was expected, e.g. "positive number".
        expected: &'static str,
    },
    /// Weights or rollouts that belong to another MDP.
    #[error("{what}: found {found}, but the MDP has {expected}")]
    OtherMdp {
        /// What does not match, such as "weights c_Q".
        what: &'static str,
        /// The number found.
        found: usize,
        /// The number expected.
        expected: usize,
    },
    /// A decision state without actions.
    #[error("state {state} has no action; states without actions are absorbing and must come last")]
    NoAction {
        /// The state.
        state: usize,
    },
    /// More decision states than states.
    #[error("{found} states have actions, but there are {states} in all")]
    TooFewStates {
        /// States with actions.
        found: usize,
        /// All states.
        states: usize,
    },
    /// An action without a finite reward or a valid distribution over successors.
    #[error(
        "state {state}, action {action}: found reward {reward} and probabilities that add up to {total}; \
         expected a finite reward and positive probabilities that add up to 1"
    )]
    Distribution {
        /// The state.
        state: usize,
        /// Its action.
        action: usize,
        /// The reward.
        reward: f64,
        /// The sum of the probabilities.
        total: f64,
    },
    /// A successor that does not exist.
    #[error("state {state}, action {action}: successor {next} does not exist, there are {states} states")]
    NoSuchState {
        /// The state.
        state: usize,
        /// Its action.
        action: usize,
        /// The missing successor.
        next: usize,
        /// All states.
        states: usize,
    },
    /// A pair has several successors where the method needs one.
    #[error(
        "the K-step repair iteration needs deterministic transitions; pair {pair} has several successors"
    )]
    Stochastic {
        /// The first such pair.
        pair: usize,
    },

    /// A log that cannot be read with these columns.
    #[error("{0}")]
    Log(String),
    /// Exact values need discrete actions.
    #[error("the actions are continuous; exact values of pairs and policies need discrete ones")]
    Continuous,
    /// A policy's output at a state is not a distribution over the actions.
    #[error(
        "the policy's probabilities at state {state} are {found:?}; expected {actions} numbers that add up to 1"
    )]
    Policy {
        /// The state.
        state: usize,
        /// The policy's output.
        found: Vec<f64>,
        /// Number of actions.
        actions: usize,
    },

    /// A file with an unknown array.
    #[error("{file}: unknown key `{key}`; expected exactly the keys {}", crate::KEYS.join(", "))]
    UnknownKey {
        /// The file.
        file: String,
        /// The key.
        key: String,
    },
    /// A file without a required array.
    #[error("{file}: key `{key}` is missing; expected the keys {}", crate::KEYS.join(", "))]
    MissingKey {
        /// The file.
        file: String,
        /// The key.
        key: &'static str,
    },
    /// An array that is not one-dimensional.
    #[error("{file}: key `{key}` has shape {shape:?}; expected one dimension")]
    Shape {
        /// The file.
        file: String,
        /// The key.
        key: &'static str,
        /// Its shape.
        shape: Vec<usize>,
    },
    /// Columns of different lengths.
    #[error("{file}: key `{key}` has {found} rows, but `states` has {rows}; expected equal lengths")]
    Length {
        /// The file, or a name for the data.
        file: String,
        /// The key.
        key: &'static str,
        /// Its length.
        found: usize,
        /// The length of `states`.
        rows: usize,
    },
    /// A dataset without transitions.
    #[error("{file}: the dataset is empty; expected at least one transition")]
    Empty {
        /// The file, or a name for the data.
        file: String,
    },
    /// A reward that is NaN or infinite.
    #[error("{file}: key `rewards`, row {row}: found {found}; expected a finite number")]
    Reward {
        /// The file, or a name for the data.
        file: String,
        /// The first such row.
        row: usize,
        /// The value found.
        found: f64,
    },
    /// A file that cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// More rows, or more possible pairs, than can be indexed.
    #[error("{found} {what}; at most {most} can be indexed")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// Their number.
        found: u128,
        /// The largest supported number.
        most: u64,
    },
    /// A rollout matrix too large to assemble.
    #[error(
        "the matrix of the K = {k} step rollout has more than {most} nonzeros on this data; choose a smaller K, or \
         a solver that does not assemble it (the default, without --mps)"
    )]
    RolloutMatrix {
        /// The rollout length.
        k: usize,
        /// The maximum number of nonzeros.
        most: usize,
    },
    /// This build lacks HiGHS.
    #[error(
        "this build has no HiGHS; build with `cargo build --release --features highs` (needs cmake, a C++ compiler \
         and libclang)"
    )]
    NoHighs,

    /// Values beyond the floating-point range.
    #[error("{what} is {found} at state {state}: the rewards are too large; scale them down")]
    NotFinite {
        /// The value's name.
        what: &'static str,
        /// The first such state.
        state: String,
        /// The value found.
        found: f64,
    },
    /// A result beyond the floating-point range.
    #[error("{what} is {found}; expected a finite number: the rewards are too large, scale them down")]
    Overflow {
        /// The result's name.
        what: &'static str,
        /// The value found.
        found: f64,
    },
    /// Policy iteration did not converge.
    #[error("bellman: policy iteration did not settle within {policies} policies")]
    PolicyIteration {
        /// Number of policies evaluated.
        policies: usize,
    },
    /// A linear programming solver stopped without a reliable answer.
    #[error("{solver}: stopped with status {status}")]
    Stopped {
        /// The solver.
        solver: &'static str,
        /// The solver's status.
        status: String,
    },
    /// A solver gave an impossible answer.
    #[error("{solver}: found {found}; expected an optimum, which this program always has")]
    NoOptimum {
        /// The solver.
        solver: &'static str,
        /// "infeasible" or "unbounded".
        found: &'static str,
    },
}

impl TabularError {
    /// Whether a solver failed, rather than the input being invalid.
    pub fn is_numerical(&self) -> bool {
        matches!(
            self,
            TabularError::NotFinite { .. }
                | TabularError::Overflow { .. }
                | TabularError::PolicyIteration { .. }
                | TabularError::Stopped { .. }
                | TabularError::NoOptimum { .. }
        )
    }
}
