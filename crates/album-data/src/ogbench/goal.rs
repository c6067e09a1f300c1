//! Task goals, and the rewards and masks that follow from them.

/// How many numbers of each array a [`Goal`] needs, at least. An array with 0 is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs {
    /// Of the simulator's positions.
    pub qpos: usize,
    /// Of the button states.
    pub button_states: usize,
}

/// The simulator's state, as far as [`Needs`] requires it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowState<'a> {
    /// The simulator's positions.
    pub qpos: &'a [f32],
    /// The state of every button.
    pub button_states: &'a [i64],
}

/// The label of a state under a task.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Label {
    /// The reward of acting in this state.
    pub reward: f32,
    /// 0 if the task is solved in this state, else 1.
    pub mask: f32,
}

/// When a task is solved, as a function of the state.
///
/// Rewards are 0 in solved states and negative in all others; masks are 0 in solved states. Both refer to the
/// state before the action, in data and environments.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Goal {
    /// Bring two neighbouring entries of `qpos`, the position of a robot or a ball, close to a point. The
    /// reward is -1 until then.
    Reach {
        /// Index of `x` in `qpos`; `y` follows.
        qpos: usize,
        /// The point.
        xy: [f64; 2],
        /// The maximum distance in metres.
        tolerance: f64,
    },
    /// Bring every part of a robot arm's table to its target. The reward is minus the number of parts that
    /// are not there.
    Arrange {
        /// The target of each cube's centre.
        cubes: &'static [[f64; 3]],
        /// The target state of each button: one `0` or `1` each.
        buttons: &'static str,
        /// The target positions of drawer and window, if there are any.
        slides: &'static [f32],
    },
}

/// Index of the first cube in the `qpos` of a robot arm; seven numbers per cube, then one per button, then
/// one per slide.
const CUBES: usize = 14;
const CUBE_LENGTH: usize = 7;

/// The maximum distance of a cube, the drawer and the window from their targets.
const NEAR: f64 = 0.04;

impl Goal {
    /// The columns that [`label`](Self::label) needs.
    pub fn needs(&self) -> Needs {
        match self {
            Self::Reach { qpos, .. } => Needs { qpos: qpos + 2, ..Needs::default() },
            Self::Arrange { cubes, buttons, slides } => Needs {
                qpos: if cubes.is_empty() && slides.is_empty() {
                    0
                } else {
                    CUBES
                        + CUBE_LENGTH * cubes.len()
                        + if slides.is_empty() { 0 } else { buttons.len() + slides.len() }
                },
                button_states: buttons.len(),
            },
        }
    }

    /// Reward and mask of a state.
    ///
    /// ```
    /// use album_data::ogbench::{Goal, Label, RowState};
    /// let goal = Goal::Reach { qpos: 0, xy: [20.0, 20.0], tolerance: 1.0 };
    /// let at = |qpos: &[f32]| goal.label(&RowState { qpos, button_states: &[] });
    /// assert_eq!(at(&[20.0, 19.0]), Label { reward: 0.0, mask: 0.0 });
    /// assert_eq!(at(&[20.0, 18.9]), Label { reward: -1.0, mask: 1.0 });
    /// ```
    ///
    /// # Panics
    ///
    /// If the row has fewer numbers than [`needs`](Self::needs) requires.
    pub fn label(&self, row: &RowState<'_>) -> Label {
        match *self {
            Self::Reach { qpos, xy, tolerance } => {
                let position = [f64::from(row.qpos[qpos]), f64::from(row.qpos[qpos + 1])];
                label(usize::from(within(position, xy, tolerance)), 1)
            }
            Self::Arrange { cubes, buttons, slides } => {
                let first_slide = CUBES + CUBE_LENGTH * cubes.len() + buttons.len();
                let cubes_there = cubes.iter().enumerate().filter(|&(i, goal)| {
                    let at = CUBES + CUBE_LENGTH * i;
                    within([0, 1, 2].map(|axis| f64::from(row.qpos[at + axis])), *goal, NEAR)
                });
                let buttons_there = buttons
                    .bytes()
                    .zip(row.button_states)
                    .filter(|&(goal, &state)| i64::from(goal - b'0') == state);
                // In single precision, unlike the cubes: as in the package, where these goals are plain Python numbers.
                let slides_there = slides
                    .iter()
                    .enumerate()
                    .filter(|&(i, goal)| (row.qpos[first_slide + i] - goal).abs() <= NEAR as f32);
                let solved = cubes_there.count() + buttons_there.count() + slides_there.count();
                label(solved, cubes.len() + buttons.len() + slides.len())
            }
        }
    }
}

/// The label of a state in which this many parts are solved.
fn label(solved: usize, parts: usize) -> Label {
    // A difference, not a negation: the reward of a solved state is 0, not -0, as in the package.
    Label { reward: solved as f32 - parts as f32, mask: f32::from(u8::from(solved < parts)) }
}

/// Whether a point is at most `tolerance` away from another.
pub fn within<const N: usize>(point: [f64; N], other: [f64; N], tolerance: f64) -> bool {
    let squares = std::array::from_fn::<f64, N, _>(|axis| (point[axis] - other[axis]).powi(2));
    squares.iter().sum::<f64>().sqrt() <= tolerance
}
