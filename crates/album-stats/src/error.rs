//! Errors of statistics.

use thiserror::Error;

/// Why a statistic was refused. Runs and tasks are counted from 0.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum StatisticsError {
    /// No runs, or no tasks.
    #[error("there are no scores ({runs} runs of {tasks} tasks); give at least one run of one task")]
    Empty {
        /// Number of runs.
        runs: usize,
        /// Number of tasks of the first run.
        tasks: usize,
    },
    /// A run with a different number of tasks than the first.
    #[error(
        "run {run} has scores of {found} tasks, run 0 of {expected}; every run needs a score of every task: \
         finish the missing ones or leave the task out"
    )]
    Ragged {
        /// The run.
        run: usize,
        /// Number of its scores.
        found: usize,
        /// Number of scores of the first run.
        expected: usize,
    },
    /// A score that is not finite.
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
    /// Two matrices with different numbers of tasks.
    #[error("one method has scores on {left} tasks, the other on {right}; compare them on the same tasks")]
    TasksDiffer {
        /// Number of tasks of the first.
        left: usize,
        /// Number of tasks of the second.
        right: usize,
    },
    /// Thresholds of a profile that are not ascending.
    #[error("threshold {index} of the profile is {value}, after {previous}; give numbers in ascending order")]
    Thresholds {
        /// Its index.
        index: usize,
        /// The threshold.
        value: f64,
        /// The previous threshold.
        previous: f64,
    },
    /// A bootstrap without resamples.
    #[error("a bootstrap of 0 resamples says nothing; give at least 1 (50,000 is usual)")]
    NoResamples,
    /// A level outside (0, 1).
    #[error("the level of the interval is {0}, expected a number between 0 and 1 such as 0.95")]
    Level(f64),
}
