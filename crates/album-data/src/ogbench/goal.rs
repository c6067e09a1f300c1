//! Task goals, and the rewards and masks they give to states.

/// How many numbers of each array a [`Goal`] looks at, at least. An array of which it needs 0 is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs {
    /// Of the simulator's positions.
    pub qpos: usize,
    /// Of the states of the buttons.
    pub button_states: usize,
}

/// The simulator's state, as far as [`Needs`] asks for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowState<'a> {
    /// The simulator's positions.
    pub qpos: &'a [f32],
    /// The state of every button.
    pub button_states: &'a [i64],
}

/// What a task says about a state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Label {
    /// The reward of acting in this state.
    pub reward: f32,
    /// 0 if the task is solved in this state, else 1.
    pub mask: f32,
}

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
    /// Bring every part of a robot arm's table into its place. The reward is minus
    /// the number of parts that are not there.
    Arrange {
        /// Where each cube's centre belongs.
        cubes: &'static [[f64; 3]],
        /// What each button shows: one `0` or `1` for each.
        buttons: &'static str,
        /// How far drawer and window are open, where there are any.
        slides: &'static [f32],
    },
}

/// Where the first cube stands in the `qpos` of a robot arm; seven numbers each, then
/// one for each button, then one for each slide.
const CUBES: usize = 14;
const CUBE_LENGTH: usize = 7;

/// How near a cube, the drawer and the window must be.
const NEAR: f64 = 0.04;

impl Goal {
    /// The columns that [`label`](Self::label) looks at.
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
    /// If the row has less than [`needs`](Self::needs) asks for.
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
                // In single precision, unlike the cubes: so does the package, whose goals are plain numbers here.
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

/// The label of a state in which so many parts are solved.
fn label(solved: usize, parts: usize) -> Label {
    // A difference, not a negation: the reward of a solved state is 0 and not -0, as in the package.
    Label { reward: solved as f32 - parts as f32, mask: f32::from(u8::from(solved < parts)) }
}

/// Whether a point is at most `tolerance` away from another.
pub fn within<const N: usize>(point: [f64; N], other: [f64; N], tolerance: f64) -> bool {
    let squares = std::array::from_fn::<f64, N, _>(|axis| (point[axis] - other[axis]).powi(2));
    squares.iter().sum::<f64>().sqrt() <= tolerance
}
