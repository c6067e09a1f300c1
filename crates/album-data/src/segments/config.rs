//! The rules by which windows are cut.

#[cfg(doc)]
use crate::batch::Batch;
use serde::{Deserialize, Serialize};

/// What happens to a window that the end of its episode cuts short.
///
/// Such windows are the last `K - 1` of every episode. Every rule leaves the
/// one-step part of a row alone; they differ in the K-step part and its weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KStepTail {
    /// The window has the `h < K` steps that are left, and the bootstrap factor is
    /// `gamma^h` with this `h`: a correct target of a shorter horizon. Weight 1.
    #[default]
    Truncate,
    /// The row has weight 0, and the others are weighted up so that a mean over the
    /// batch is the mean over the rows that count. A window that reached the goal
    /// before the end ([`AfterGoal::Stop`]) is not cut short and counts.
    Drop,
    /// The row has weight 0 and the others 1, as in the Q-chunking code: a mean over
    /// the batch still divides by its full size. Goals do not matter here.
    ///
    /// Together with [`AfterGoal::QcSum`] a window inside one episode is that of
    /// Q-chunking: all `K` rewards, the bootstrap factor `gamma^K` times the least mask,
    /// and weight 1, also where its last step is the episode's last. What differs:
    ///
    /// - A window that straddles two episodes goes on there with the rewards, masks and
    ///   states of the next one; ours ends with its own. Both have weight 0, so that no
    ///   K-step loss sees it.
    /// - A chunk of actions goes on there with those of the next episode; ours repeats its
    ///   last one. Both are 0 in [`Batch::valids`], so that they are no targets; but a
    ///   network whose input is the whole chunk, such as a flow over chunks, sees them
    ///   beside the valid ones.
    /// - Their draws leave out the last `K - 1` transitions of the data. Ours have them, as
    ///   all others, with weight 0.
    QcValid,
}

/// What happens in a window after a state in which the task is solved (mask 0).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterGoal {
    /// The window ends with the reward of that state; nothing follows, the
    /// bootstrap factor is 0.
    #[default]
    Stop,
    /// The rewards of the whole window are summed, those after the goal too, as in
    /// the Q-chunking code. The bootstrap factor is 0.
    QcSum,
}

/// The options of windows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SegmentConfig {
    /// Steps in a window, at least 1. Default 10.
    pub k: usize,
    /// Consecutive actions in a row, at least 1, whatever `k` is. Default 1.
    pub chunk: usize,
    /// Discount of one step, above 0 and at most 1. Default 0.99.
    pub gamma: f64,
    /// The rule for windows that an episode's end cuts short.
    pub tail: KStepTail,
    /// The rule for what follows a solved task.
    pub after_goal: AfterGoal,
}

impl Default for SegmentConfig {
    fn default() -> Self {
        let (tail, after_goal) = (KStepTail::default(), AfterGoal::default());
        Self { k: 10, chunk: 1, gamma: 0.99, tail, after_goal }
    }
}

/// Why a [`SegmentConfig`] was refused, or the data for it.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// The window has no or too many steps.
    #[error("k: found {0}, expected 1 to 1000000 steps")]
    Steps(usize),
    /// A row has no or too many actions.
    #[error("chunk: found {0}, expected 1 to 1000000 actions")]
    Chunk(usize),
    /// The discount is impossible.
    #[error("gamma: found {0}, expected a discount above 0 and at most 1")]
    Discount(f64),
    /// The episodes are too short.
    #[error(
        "no episode is long enough: the longest has {longest} steps, the window needs {needed}; shorten the \
         window or use data with longer episodes"
    )]
    Short {
        /// Transitions of the longest episode.
        longest: usize,
        /// Transitions that a window or a chunk has.
        needed: usize,
    },
}
