//! Scores that statistics cannot be made of.

use thiserror::Error;

/// Why a statistic was refused. Runs and tasks are counted from 0.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum StatisticsError {
    /// No runs, or runs of no tasks.
    #[error("there are no scores ({runs} runs of {tasks} tasks); give at least one run of one task")]
    Empty {
        /// Runs given.
        runs: usize,
        /// Tasks of the first run.
        tasks: usize,
    },
    /// A run that does not have as many tasks as the first.
    #[error(
        "run {run} has scores of {found} tasks, run 0 of {expected}; every run needs a score of every task: \
         finish the missing ones or leave the task out"
    )]
    Ragged {
        /// The run.
        run: usize,
        /// Its scores.
        found: usize,
        /// Scores of the first run.
        expected: usize,
    },
    /// A score that is not a number.
    #[error(
        "the score of run {run} on task {task} is {value}, expected a finite number; finish the run or leave \
         the task out"
    )]
    NotFinite {
        /// The run.
        run: usize,
        /// The task.
        task: usize,
        /// The score.
        value: f64,
    },
    /// Two matrices to compare have different tasks.
    #[error("one method has scores on {left} tasks, the other on {right}; compare them on the same tasks")]
    TasksDiffer {
        /// Tasks of the first.
        left: usize,
        /// Tasks of the second.
        right: usize,
    },
    /// Thresholds of a profile that do not rise.
    #[error("threshold {index} of the profile is {value}, after {previous}; give numbers in ascending order")]
    Thresholds {
        /// Its place.
        index: usize,
        /// The threshold.
        value: f64,
        /// The one before it.
        previous: f64,
    },
    /// A bootstrap without resamples.
    #[error("a bootstrap of 0 resamples says nothing; give at least 1 (50,000 is usual)")]
    NoResamples,
    /// A level outside of (0, 1).
    #[error("the level of the interval is {0}, expected a number between 0 and 1 such as 0.95")]
    Level(f64),
}
