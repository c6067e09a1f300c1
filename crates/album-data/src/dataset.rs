//! Transitions for neural agents, in memory or in memory-mapped files.

mod content;
mod hold_out;
mod role;

use std::ops::Range;

use crate::action_space::ActionSpace;
use crate::column::Column;
use crate::episodes::{Episodes, Location};
use crate::error::{DataError, Place};
use crate::formats::npz::array::value_error;
use crate::returns::suffix_returns;
use crate::view::View;

pub use hold_out::HoldOutError;
pub(crate) use role::{Role, UNFINISHED, take_in};

/// Actions are clipped to plus or minus this, as in the published baselines.
pub const ACTION_LIMIT: f32 = 1.0 - 1e-5;

/// The columns of a dataset, one entry per *row*: an episode of `T` transitions has `T + 1` rows, and only
/// the observation of its last row counts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    /// Dimension of an observation.
    pub observation_dim: usize,
    /// Dimension of an action.
    pub action_dim: usize,
    /// The states, row by row.
    pub observations: Vec<f32>,
    /// The action taken in each state: within ±1, or as in [`Dataset::in_space`].
    pub actions: Vec<f32>,
    /// The reward of each state and action.
    pub rewards: Vec<f32>,
    /// 0 if the task is solved in this state, so that nothing follows; else 1.
    pub masks: Vec<f32>,
    /// Whether this row is the last of its episode.
    pub terminals: Vec<bool>,
}

/// Logged transitions of one task.
///
/// States are stored once. The next state of a transition is the following row, so each episode has one row
/// more than transitions:
///
/// ```text
///                 |<---- episode 0 ---->|  |<- episode 1 ->|
/// row               0    1    2    3    4    5    6    7
/// ---------------------------------------------------------
/// observations     s0   s1   s2   s3   s4   s0   s1   s2
/// actions          a0   a1   a2   a3    .   a0   a1    .
/// rewards          r0   r1   r2   r3    .   r0   r1    .
/// masks            m0   m1   m2   m3    .   m0   m1    .
/// ---------------------------------------------------------
/// transition        0    1    2    3         4    5
/// terminal                         *              *
/// ```
///
/// This is the layout of OGBench files, so columns are used as they are read. The dots are unused and hold
/// action 0, reward 0, mask 1. Compared with a separate array of next states it halves the memory, and the
/// rows `t` and `t + 1` are neighbours.
///
/// Observations and actions of data imported into a folder of columns stay in memory-mapped files, see
/// [`columns`](crate::columns); all methods are the same.
///
/// *Masks* mark where the task is solved: there is no future value. *Terminals* only mark where a recording
/// ends: its last state has a value like any other.
///
/// ```
/// use album_data::{Dataset, Rows};
///
/// # fn main() -> Result<(), album_data::DataError> {
/// let dataset = Dataset::from_rows(Rows {
///     observation_dim: 1,
///     action_dim: 1,
///     observations: vec![0.0, 1.0, 2.0, 10.0, 11.0],
///     actions: vec![0.5, 3.0, 0.0, -0.5, 0.0],
///     rewards: vec![-1.0, 0.0, 0.0, -1.0, 0.0],
///     masks: vec![1.0, 0.0, 1.0, 1.0, 1.0],
///     terminals: vec![false, false, true, false, true],
/// })?;
/// assert_eq!(dataset.len(), 3);
/// assert_eq!(dataset.observation(2), [10.0]);
/// assert_eq!(dataset.next_observation(2), [11.0]);
/// assert_eq!(dataset.action(1), [1.0 - 1e-5]); // clipped
/// assert!(dataset.terminal(1) && !dataset.terminal(0));
/// # Ok(())
/// # }
/// ```
///
/// Clones and the two parts of [`hold_out`](Self::hold_out) share the columns.
#[derive(Debug, Clone)]
pub struct Dataset {
    observation_dim: usize,
    action_dim: usize,
    observations: Column,
    actions: Column,
    rewards: Column,
    masks: Column,
    episodes: Episodes,
    action_space: ActionSpace,
}

impl Dataset {
    /// Checks and takes over rows created in memory. Actions are those of the box [-1, 1] and are clipped.
    pub fn from_rows(rows: Rows) -> Result<Self, DataError> {
        let space = ActionSpace::unit(rows.action_dim);
        Self::in_space(rows, space)
    }

    /// [`from_rows`](Self::from_rows) with the actions of a space: in physical units, or the index of a
    /// choice.
    ///
    /// ```
    /// use album_data::{ActionSpace, Dataset, Rows};
    ///
    /// # fn main() -> Result<(), album_data::DataError> {
    /// let rows = Rows {
    ///     observation_dim: 1,
    ///     action_dim: 1,
    ///     observations: vec![0.0, 1.0, 2.0],
    ///     actions: vec![0.0, 3.0, 0.0],
    ///     rewards: vec![0.0; 3],
    ///     masks: vec![1.0; 3],
    ///     terminals: vec![false, false, true],
    /// };
    /// let choices = Dataset::in_space(rows.clone(), ActionSpace::Discrete { n: 4 })?;
    /// assert_eq!(choices.action(1), [3.0]);
    /// let volts = ActionSpace::Continuous { low: vec![0.0], high: vec![4.0] };
    /// assert_eq!(Dataset::in_space(rows, volts)?.action(1), [0.5]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn in_space(rows: Rows, space: ActionSpace) -> Result<Self, DataError> {
        let Rows { observation_dim, action_dim, terminals, .. } = rows;
        let (count, place) = (terminals.len(), Place::default());
        if terminals.last() == Some(&false) {
            return Err(value_error(place.array("terminals"), &[count], count - 1, false, UNFINISHED));
        }
        let episodes = Episodes::from_last_rows(&terminals);
        if episodes.transitions() == 0 {
            return Err(DataError::NoTransitions { place });
        }
        let checked = |name: &str, mut data: Vec<f32>, width: usize, role: Role| {
            if count.checked_mul(width) != Some(data.len()) {
                let (found, expected) = (vec![data.len()], format!("[{count} rows x {width}]"));
                return Err(DataError::WrongShape { place: place.array(name), found, expected });
            }
            role.clear(&mut data, width, &terminals);
            // Actions out of range are clipped, but NaN and infinity are refused.
            let must = if role == Role::Action { Role::State } else { role };
            if let Some(i) = must.first_bad(&data) {
                let shape: &[usize] =
                    if matches!(role, Role::Reward | Role::Mask) { &[count] } else { &[count, width] };
                return Err(value_error(
                    place.array(name),
                    shape,
                    i,
                    data[i],
                    must.problem(data[i]).expected(),
                ));
            }
            if role == Role::Action {
                if space.dim() != width {
                    let (found, expected) = (vec![count, width], format!("[{count}, {}]", space.dim()));
                    return Err(DataError::WrongShape { place: place.array(name), found, expected });
                }
                take_in(&space, &mut data).map_err(|i| {
                    value_error(place.array(name), &[count, width], i, data[i], "the index of a choice")
                })?;
                role.clear(&mut data, width, &terminals);
            }
            Ok(Column::from(data))
        };
        let columns = [
            checked("observations", rows.observations, observation_dim, Role::State)?,
            checked("actions", rows.actions, action_dim, Role::Action)?,
            checked("rewards", rows.rewards, 1, Role::Reward)?,
            checked("masks", rows.masks, 1, Role::Mask)?,
        ];
        Ok(Self::from_columns([observation_dim, action_dim], columns, episodes).with_action_space(space))
    }

    /// Assembles columns that were checked while being read.
    pub(crate) fn from_columns(
        [observation_dim, action_dim]: [usize; 2],
        [observations, actions, rewards, masks]: [Column; 4],
        episodes: Episodes,
    ) -> Self {
        let action_space = ActionSpace::unit(action_dim);
        Self { observation_dim, action_dim, observations, actions, rewards, masks, episodes, action_space }
    }

    /// Sets the action space of actions that are already internal.
    pub(crate) fn with_action_space(self, action_space: ActionSpace) -> Self {
        Self { action_space, ..self }
    }

    /// Number of transitions.
    pub fn len(&self) -> usize {
        self.episodes.transitions()
    }

    /// Whether there are no transitions. Never true: such data is refused.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Dimension of an observation.
    pub fn observation_dim(&self) -> usize {
        self.observation_dim
    }

    /// Dimension of an action.
    pub fn action_dim(&self) -> usize {
        self.action_dim
    }

    /// The action space: bounds in physical units, or a number of choices.
    pub fn action_space(&self) -> &ActionSpace {
        &self.action_space
    }

    /// The episode index.
    pub fn episodes(&self) -> &Episodes {
        &self.episodes
    }

    /// The states of an episode, including its last one: one row more than transitions.
    pub fn episode_states(&self, episode: usize) -> View<'_> {
        let rows = self.episodes.rows_of(episode);
        View::new(of_rows(&self.observations, &rows, self.observation_dim), rows.len(), self.observation_dim)
    }

    /// The actions of an episode, one row per transition.
    pub fn episode_actions(&self, episode: usize) -> View<'_> {
        let rows = self.acting_rows(episode);
        View::new(of_rows(&self.actions, &rows, self.action_dim), rows.len(), self.action_dim)
    }

    /// The rewards of an episode's transitions.
    pub fn episode_rewards(&self, episode: usize) -> &[f32] {
        &self.rewards[self.acting_rows(episode)]
    }

    /// The masks of an episode's transitions.
    pub fn episode_masks(&self, episode: usize) -> &[f32] {
        &self.masks[self.acting_rows(episode)]
    }

    /// All states, episode by episode, including the last of each.
    pub fn states(&self) -> impl Iterator<Item = &[f32]> + Clone {
        (0..self.episodes.len()).flat_map(|episode| self.episode_states(episode).iter())
    }

    /// The state of a transition.
    pub fn observation(&self, transition: usize) -> &[f32] {
        self.state(self.row(transition))
    }

    /// The next state of a transition.
    pub fn next_observation(&self, transition: usize) -> &[f32] {
        self.state(self.row(transition) + 1)
    }

    /// The action of a transition: within ±[`ACTION_LIMIT`], or the index of a choice.
    pub fn action(&self, transition: usize) -> &[f32] {
        self.action_of_row(self.row(transition))
    }

    /// The reward of a transition.
    pub fn reward(&self, transition: usize) -> f32 {
        self.rewards[self.row(transition)]
    }

    /// 0 if the task is solved in the transition's state, else 1.
    pub fn mask(&self, transition: usize) -> f32 {
        self.masks[self.row(transition)]
    }

    /// Whether a transition is the last of its episode.
    pub fn terminal(&self, transition: usize) -> bool {
        self.episodes.locate(transition).left == 1
    }

    /// The discounted recorded return from each transition on, up to the end of its episode or a mask of 0.
    pub fn returns_to_go(&self, gamma: f64) -> Vec<f64> {
        let mut returns = Vec::with_capacity(self.len());
        for episode in 0..self.episodes.len() {
            let wide = |numbers: &[f32]| numbers.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
            let (rewards, masks) = (wide(self.episode_rewards(episode)), wide(self.episode_masks(episode)));
            // Nothing follows the last transition.
            returns.extend(suffix_returns(&rewards, Some(&masks), &vec![false; rewards.len()], gamma));
        }
        returns
    }

    pub(crate) fn locate(&self, transition: usize) -> Location {
        self.episodes.locate(transition)
    }

    pub(crate) fn state(&self, row: usize) -> &[f32] {
        &self.observations[row * self.observation_dim..][..self.observation_dim]
    }

    pub(crate) fn action_of_row(&self, row: usize) -> &[f32] {
        &self.actions[row * self.action_dim..][..self.action_dim]
    }

    /// The rewards by row.
    pub(crate) fn rewards(&self) -> &[f32] {
        &self.rewards
    }

    /// The masks by row.
    pub(crate) fn masks(&self) -> &[f32] {
        &self.masks
    }

    fn row(&self, transition: usize) -> usize {
        self.episodes.locate(transition).row
    }

    /// The rows of an episode that have an action.
    fn acting_rows(&self, episode: usize) -> Range<usize> {
        let rows = self.episodes.rows_of(episode);
        rows.start..rows.end - 1
    }

    /// The columns and their widths, in the order of the hash.
    pub(crate) fn columns(&self) -> [(&Column, usize); 4] {
        [
            (&self.observations, self.observation_dim),
            (&self.actions, self.action_dim),
            (&self.rewards, 1),
            (&self.masks, 1),
        ]
    }
}

fn of_rows<'a>(column: &'a [f32], rows: &Range<usize>, width: usize) -> &'a [f32] {
    &column[rows.start * width..rows.end * width]
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn rows() -> Rows {
        Rows {
            observation_dim: 2,
            action_dim: 1,
            observations: (0..12).map(|x| x as f32).collect(),
            actions: vec![0.1, -2.0, f32::NAN, 0.4, 0.5, 9.0],
            rewards: vec![-1.0, -1.0, f32::NAN, 0.0, -1.0, -1.0],
            masks: vec![1.0, 1.0, 0.5, 0.0, 1.0, 1.0],
            terminals: vec![false, false, true, false, false, true],
        }
    }

    #[test]
    fn rows_become_transitions() {
        let data = Dataset::from_rows(rows()).unwrap();
        assert_eq!((data.len(), data.episodes().len()), (4, 2));
        assert_eq!(data.observation(2), [6.0, 7.0]);
        assert_eq!(data.next_observation(1), [4.0, 5.0]);
        assert_eq!(data.action(1), [-ACTION_LIMIT]);
        assert_eq!([0, 1, 2, 3].map(|t| data.reward(t)), [-1.0, -1.0, 0.0, -1.0]);
        assert_eq!([0, 1, 2, 3].map(|t| data.mask(t)), [1.0, 1.0, 0.0, 1.0]);
        assert_eq!([0, 1, 2, 3].map(|t| data.terminal(t)), [false, true, false, true]);
    }

    #[test]
    fn problems_are_located() {
        let message = |change: fn(&mut Rows)| {
            let mut rows = rows();
            change(&mut rows);
            Dataset::from_rows(rows).unwrap_err().to_string()
        };
        assert_eq!(
            message(|rows| rows.observations[9] = f32::INFINITY),
            "array in memory: array `observations`: row 4, column 1: found inf, expected a finite number"
        );
        assert_eq!(
            message(|rows| rows.actions[1] = f32::NAN),
            "array in memory: array `actions`: row 1, column 0: found NaN, expected a finite number"
        );
        assert_eq!(
            message(|rows| rows.masks[4] = 0.5),
            "array in memory: array `masks`: row 4: found 0.5, expected 0 or 1"
        );
        assert_eq!(
            message(|rows| rows.rewards.truncate(5)),
            "array in memory: array `rewards`: found shape [5], expected [6 rows x 1]"
        );
        assert_eq!(
            message(|rows| rows.terminals[5] = false),
            "array in memory: array `terminals`: row 5: found false, expected true: the last row of the data \
             ends an episode"
        );
        assert_eq!(
            message(|rows| rows.terminals.fill(true)),
            "array in memory: found no transition, expected an episode of at least two rows"
        );
        assert!(message(|rows| *rows = Rows::default()).contains("found no transition"));
    }
}
