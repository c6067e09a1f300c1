//! Statistics of score matrices (runs x tasks), with their uncertainty.
//!
//! - [`mean`], [`fn@median`] and [`deviation`] of a list, the last by both divisors;
//! - [`Scores`], a complete matrix; its [`Scores::mean`], [`Scores::median`], [`Scores::iqm`] and
//!   [`Scores::optimality_gap`];
//! - [`improvement`], the probability that a run of one method beats a run of another;
//! - [`profile`], the share of scores above each threshold;
//! - [`Bootstrap`], intervals for all of them by resampling the runs of each task.
//!
//! The definitions are those of Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical
//! Precipice" (2021), and of its package rliable; `tests/rliable.rs` compares the two implementations.
//!
//! ```
//! use album_stats::{Bootstrap, Scores};
//!
//! // Two tasks, three runs of each.
//! let scores = Scores::new(&[[90.0, 10.0], [94.0, 30.0], [92.0, 20.0]])?;
//! assert_eq!(scores.mean(), 56.0);
//! let interval = Bootstrap::new(0).interval(&scores, Scores::mean)?;
//! assert!(interval.low > 50.0 && interval.high < 62.0);
//! # Ok::<(), album_stats::StatisticsError>(())
//! ```

mod bootstrap;
mod error;
mod improvement;
mod profile;
mod scores;
mod summary;

pub use bootstrap::{Bootstrap, Interval};
pub use error::StatisticsError;
pub use improvement::improvement;
pub use profile::profile;
pub use scores::Scores;
pub use summary::{Divisor, deviation, mean, median};
