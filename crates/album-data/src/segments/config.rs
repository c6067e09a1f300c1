//! Configuration of windows.

#[cfg(doc)]
use crate::batch::Batch;
use serde::{Deserialize, Serialize};

/// Treatment of windows cut short by the end of their episode.
///
/// These are the last `K - 1` windows of every episode. No rule affects the one-step part of a row; they
/// differ in the K-step part and its weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KStepTail {
    /// The window has the remaining `h < K` steps, and the bootstrap factor is `gamma^h` with this `h`: a
    /// correct target of a shorter horizon. Weight 1.
    #[default]
    Truncate,
    /// The row has weight 0, and the others are scaled up so that a batch mean is the mean over the rows that
    /// count. A window that reaches the goal before the end ([`AfterGoal::Stop`]) is not cut short and
    /// counts.
    Drop,
    /// The row has weight 0 and the others 1, as in the Q-chunking code: a batch mean still divides by the
    /// full batch size. Goals do not matter here.
    ///
    /// Together with [`AfterGoal::QcSum`], a window inside one episode equals that of Q-chunking: all `K`
    /// rewards, the bootstrap factor `gamma^K` times the smallest mask, and weight 1, also if its last step
    /// is the episode's last. The differences:
    ///
    /// - There, a window that straddles two episodes continues with the rewards, masks and states of the next
    ///   one; here it ends with its own. Both have weight 0, so no K-step loss sees it.
    /// - There, an action chunk continues with the actions of the next episode; here it repeats its last one.
    ///   Both are 0 in [`Batch::valids`], so they are not targets; but a network whose input is the whole
    ///   chunk, such as a flow over chunks, sees them beside the valid ones.
    /// - There, the last `K - 1` transitions of the data are never drawn; here they are, with weight 0.
    QcValid,
}

/// Treatment of a window after a state in which the task is solved (mask 0).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterGoal {
    /// The window ends with the reward of that state; nothing follows, and the bootstrap factor is 0.
    #[default]
    Stop,
    /// The rewards of the whole window are summed, including those after the goal, as in the Q-chunking code.
    /// The bootstrap factor is 0.
    QcSum,
}

/// The configuration of windows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SegmentConfig {
    /// Number of steps in a window, at least 1. Default 10.
    pub k: usize,
    /// Number of consecutive actions in a chunk, at least 1, independent of `k`. Default 1.
    pub chunk: usize,
    /// Discount factor per step, above 0 and at most 1. Default 0.99.
    pub gamma: f64,
    /// Treatment of windows cut short by the end of an episode.
    pub tail: KStepTail,
    /// Treatment of rewards after a solved task.
    pub after_goal: AfterGoal,
}

impl Default for SegmentConfig {
    fn default() -> Self {
        let (tail, after_goal) = (KStepTail::default(), AfterGoal::default());
        Self { k: 10, chunk: 1, gamma: 0.99, tail, after_goal }
    }
}

/// Why a [`SegmentConfig`] or its data was refused.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// The window has no steps or too many.
    #[error("k: found {0}, expected 1 to 1000000 steps")]
    Steps(usize),
    /// A chunk has no actions or too many.
    #[error("chunk: found {0}, expected 1 to 1000000 actions")]
    Chunk(usize),
    /// The discount is invalid.
    #[error("gamma: found {0}, expected a discount above 0 and at most 1")]
    Discount(f64),
    /// The episodes are too short.
    #[error(
        "no episode is long enough: the longest has {longest} steps, the window needs {needed}; shorten the \
         window or use data with longer episodes"
    )]
    Short {
        /// Length of the longest episode.
        longest: usize,
        /// Required length of a window or chunk.
        needed: usize,
    },
}
