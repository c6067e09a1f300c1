//! Requirements on the numbers of a column.

use std::cmp::Ordering;

use super::ACTION_LIMIT;
use crate::action_space::ActionSpace;
use crate::load::checks::{Problem, clip};

pub(crate) const UNFINISHED: &str = "true: the last row of the data ends an episode";

/// The role of a column, which determines what its numbers must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    State,
    Action,
    Reward,
    Mask,
}

impl Role {
    /// Clears meaningless entries in the last rows of episodes. States are always meaningful.
    pub fn clear(self, data: &mut [f32], width: usize, last: &[bool]) {
        let unused = match self {
            Self::State => return,
            Self::Action | Self::Reward => 0.0,
            Self::Mask => 1.0,
        };
        for (row, _) in last.iter().enumerate().filter(|(_, last)| **last) {
            data[row * width..(row + 1) * width].fill(unused);
        }
    }

    /// Whether training refuses a number.
    pub fn is_bad(self, x: f32) -> bool {
        match self {
            Self::State | Self::Reward => !x.is_finite(),
            // Rounding explains slightly more than 1. NaN compares as bad.
            Self::Action => {
                !matches!(x.abs().partial_cmp(&(2.0 - ACTION_LIMIT)), Some(Ordering::Less | Ordering::Equal))
            }
            Self::Mask => x != 0.0 && x != 1.0,
        }
    }

    /// What is wrong with a bad number.
    pub fn problem(self, bad: f32) -> Problem {
        match self {
            Self::Mask => Problem::NotAMask,
            Self::Action if bad.is_finite() => Problem::OutOfRange,
            _ => Problem::NotFinite,
        }
    }

    /// The index of the first bad number.
    pub fn first_bad(self, data: &[f32]) -> Option<usize> {
        // Without an early exit the inner loop is vectorised.
        let part =
            data.chunks(4096).position(|part| part.iter().fold(false, |bad, &x| bad | self.is_bad(x)))?;
        data[part * 4096..].iter().position(|&x| self.is_bad(x)).map(|i| part * 4096 + i)
    }
}

/// Converts physical actions to internal ones, clipping continuous ones. The error is the index of an invalid
/// choice.
pub(crate) fn take_in(space: &ActionSpace, actions: &mut [f32]) -> Result<(), usize> {
    match space {
        ActionSpace::Continuous { .. } => {
            space.from_physical(actions);
            clip(actions);
            Ok(())
        }
        ActionSpace::Discrete { n } => {
            let bad = |x: &f32| !(*x >= 0.0 && (*x as usize) < *n && x.fract() == 0.0);
            actions.iter().position(bad).map_or(Ok(()), Err)
        }
    }
}
