//! Task goals, and the rewards and masks they give to states.

use crate::ogbench::load::{Label, Needs, RowState};

/// When a task is solved, as a function of the state.
///
/// Rewards are 0 in solved states and negative in all others; masks are 0 in solved
/// states. Both belong to the state before the action, in data and environments.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Goal {
    /// Bring two neighbouring entries of `qpos`, the position of a robot or of a
    /// ball, near a point. The reward is -1 until then.
    Reach {
        /// Where `x` stands in `qpos`; `y` follows.
        qpos: usize,
        /// The point.
        xy: [f64; 2],
        /// How near, in metres.
        tolerance: f64,
    },
}

impl Goal {
    /// The columns that [`label`](Self::label) looks at.
    pub fn needs(&self) -> Needs {
        match self {
            Self::Reach { qpos, .. } => Needs { qpos: qpos + 2, ..Needs::default() },
        }
    }

    /// Reward and mask of a state.
    ///
    /// ```
    /// use album_data::ogbench::{Goal, Label, RowState};
    /// let goal = Goal::Reach { qpos: 0, xy: [20.0, 20.0], tolerance: 1.0 };
    /// let at = |qpos: &[f32]| goal.label(&RowState { observation: &[], qpos, button_states: &[] });
    /// assert_eq!(at(&[20.0, 19.0]), Label { reward: 0.0, mask: 0.0 });
    /// assert_eq!(at(&[20.0, 18.9]), Label { reward: -1.0, mask: 1.0 });
    /// ```
    ///
    /// # Panics
    ///
    /// If `qpos` is too short for this goal.
    pub fn label(&self, row: &RowState<'_>) -> Label {
        match *self {
            Self::Reach { qpos, xy, tolerance } => {
                let position = [f64::from(row.qpos[qpos]), f64::from(row.qpos[qpos + 1])];
                let solved = f32::from(u8::from(within(position, xy, tolerance)));
                Label { reward: solved - 1.0, mask: 1.0 - solved }
            }
        }
    }
}

/// Whether a point is at most `tolerance` away from another.
pub fn within(point: [f64; 2], other: [f64; 2], tolerance: f64) -> bool {
    let (dx, dy) = (point[0] - other[0], point[1] - other[1]);
    (dx * dx + dy * dy).sqrt() <= tolerance
}
