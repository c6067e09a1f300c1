//! Transitions as the neural agents use them, in memory or in mapped files.

use std::cmp::Ordering;
use std::ops::Range;

use album_base::hex::hex;
use album_base::rng;
use sha2::{Digest, Sha256};

use crate::action_space::ActionSpace;
use crate::column::{Column, sha256};
use crate::episodes::{Episodes, Location};
use crate::error::{DataError, Place};
use crate::formats::npz::array::value_error;
use crate::load::checks::{Problem, clip};
use crate::returns::suffix_returns;
use crate::view::View;

/// Actions are clipped to plus or minus this, as the published baselines do.
pub const ACTION_LIMIT: f32 = 1.0 - 1e-5;

/// The columns of a dataset, one entry for every *row*: an episode of `T`
/// transitions has `T + 1` rows, and of its last row only the observation counts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    /// Numbers in one observation.
    pub observation_dim: usize,
    /// Numbers in one action.
    pub action_dim: usize,
    /// The states, row by row.
    pub observations: Vec<f32>,
    /// The action taken in each state: within ±1, or as [`Dataset::in_space`] says.
    pub actions: Vec<f32>,
    /// The reward of each state and action.
    pub rewards: Vec<f32>,
    /// 0 where the task is solved in this state, so that nothing follows; else 1.
    pub masks: Vec<f32>,
    /// Whether this row is the last of its episode.
    pub terminals: Vec<bool>,
}

/// Logged transitions of one task.
///
/// States are kept once. The next state of a transition is the following row, so
/// that each episode has one row more than transitions:
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
/// This is the layout of OGBench files, so that columns are taken over as they
/// are read. The dots are unused and hold action 0, reward 0, mask 1. Compared
/// with an array of next states it halves the memory, and the rows `t` and `t + 1`
/// are neighbours.
///
/// Observations and actions of data that was imported into a folder of columns stay in
/// files that are mapped into memory, see [`columns`](crate::columns); all methods are
/// the same.
///
/// *Masks* say where the task is solved: there is no future value. *Terminals*
/// only say where a recording ends: its last state has a value like any other.
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

/// Why a dataset cannot be split into training and held-out episodes.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HoldOutError {
    /// The share is impossible.
    #[error("found a held-out share of {0}, expected one above 0 and below 1")]
    Share(f64),
    /// One of the two parts would have no transition.
    #[error("found {0} episode(s) with transitions, expected at least 2 to hold some of them out")]
    TooFew(usize),
}

impl Dataset {
    /// Checks rows made in memory and takes them over. Actions are those of the box [-1, 1] and are clipped.
    pub fn from_rows(rows: Rows) -> Result<Self, DataError> {
        let space = ActionSpace::unit(rows.action_dim);
        Self::in_space(rows, space)
    }

    /// [`from_rows`](Self::from_rows) with the actions of a space: in its physical units, or the index of a choice.
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
            // Actions out of range are clipped, those that are no numbers are not.
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

    /// Puts together columns that were checked while they were read.
    pub(crate) fn from_columns(
        [observation_dim, action_dim]: [usize; 2],
        [observations, actions, rewards, masks]: [Column; 4],
        episodes: Episodes,
    ) -> Self {
        let action_space = ActionSpace::unit(action_dim);
        Self { observation_dim, action_dim, observations, actions, rewards, masks, episodes, action_space }
    }

    /// Says what the actions are, which were brought inside already.
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

    /// Numbers in one observation.
    pub fn observation_dim(&self) -> usize {
        self.observation_dim
    }

    /// Numbers in one action.
    pub fn action_dim(&self) -> usize {
        self.action_dim
    }

    /// What the actions are outside: bounds in physical units, or a number of choices.
    pub fn action_space(&self) -> &ActionSpace {
        &self.action_space
    }

    /// Where the episodes begin and end.
    pub fn episodes(&self) -> &Episodes {
        &self.episodes
    }

    /// The states of an episode, its last one included: one row more than transitions.
    pub fn episode_states(&self, episode: usize) -> View<'_> {
        let rows = self.episodes.rows_of(episode);
        View::new(of_rows(&self.observations, &rows, self.observation_dim), rows.len(), self.observation_dim)
    }

    /// The actions of an episode, one row for each transition.
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

    /// All states: those of each episode in order, its last one included.
    pub fn states(&self) -> impl Iterator<Item = &[f32]> + Clone {
        (0..self.episodes.len()).flat_map(|episode| self.episode_states(episode).iter())
    }

    /// Splits off a share of the episodes, for validation: `(training, held out)`.
    ///
    /// Episodes stay whole and in their order. Which ones are held out is drawn from the stream
    /// `hold_out` of the seed: the nearest whole number to the share, at least one, and at least
    /// one stays. Both parts share the columns of this dataset; nothing is copied.
    ///
    /// ```
    /// # use album_data::{Dataset, Rows};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let rows = Rows {
    /// #     observation_dim: 1,
    /// #     action_dim: 1,
    /// #     observations: (0..20).map(|x| x as f32).collect(),
    /// #     actions: vec![0.0; 20],
    /// #     rewards: vec![0.0; 20],
    /// #     masks: vec![1.0; 20],
    /// #     terminals: (0..20).map(|row| row % 2 == 1).collect(),
    /// # };
    /// let dataset = Dataset::from_rows(rows)?; // ten episodes
    /// let (training, held_out) = dataset.hold_out(0.2, 7)?;
    /// assert_eq!((training.episodes().len(), held_out.episodes().len()), (8, 2));
    /// # Ok(())
    /// # }
    /// ```
    pub fn hold_out(&self, share: f64, seed: u64) -> Result<(Self, Self), HoldOutError> {
        if !(share > 0.0 && share < 1.0) {
            return Err(HoldOutError::Share(share));
        }
        // An episode without a transition teaches and tests nothing: it is left out of both parts.
        let mut episodes: Vec<usize> =
            (0..self.episodes.len()).filter(|&episode| self.episodes.length(episode) > 0).collect();
        let count = episodes.len();
        if count < 2 {
            return Err(HoldOutError::TooFew(count));
        }
        let held = ((share * count as f64).round() as usize).clamp(1, count - 1);
        let mut draw = rng::stream(seed, "hold_out");
        for i in 0..held {
            episodes.swap(i, i + rng::below(&mut draw, (count - i) as u64) as usize);
        }
        let (held_out, training) = episodes.split_at_mut(held);
        let part = |episodes: &mut [usize]| {
            episodes.sort_unstable();
            Self { episodes: self.episodes.part(episodes), ..self.clone() }
        };
        Ok((part(training), part(held_out)))
    }

    /// The state of a transition.
    pub fn observation(&self, transition: usize) -> &[f32] {
        self.state(self.row(transition))
    }

    /// The state that follows.
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

    /// The discounted return of what was recorded from each transition on, up to the end of its episode or a
    /// mask of 0.
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

    /// SHA-256 of the contents as 64 hexadecimal digits: of the dimensions, the
    /// episode lengths, the SHA-256 of each column and an action space that is not the box [-1, 1]. Equal data has an equal hash,
    /// whatever file it came from and on every machine. Takes about a second for a
    /// gigabyte in memory; mapped columns bring theirs from their import.
    pub fn content_hash(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(b"album dataset 2");
        let mut count = |n: usize| hash.update((n as u64).to_le_bytes());
        count(self.observation_dim);
        count(self.action_dim);
        count(self.episodes.len());
        for episode in 0..self.episodes.len() {
            count(self.episodes.length(episode));
        }
        // A part of the columns has another hash than the whole, which may be known.
        let whole = self.episodes.rows() * self.observation_dim == self.observations.len();
        for (column, width) in self.columns() {
            let slices =
                || (0..self.episodes.len()).map(|e| of_rows(column, &self.episodes.rows_of(e), width));
            hash.update(column.known_sha256().filter(|_| whole).unwrap_or_else(|| sha256(slices())));
        }
        match &self.action_space {
            unit if unit.is_unit() => {}
            ActionSpace::Continuous { low, high } => {
                hash.update(b"box");
                low.iter().chain(high).for_each(|x| hash.update(x.to_le_bytes()));
            }
            ActionSpace::Discrete { n } => {
                hash.update(b"discrete");
                hash.update((*n as u64).to_le_bytes());
            }
        }
        hex(&hash.finalize())
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

    /// Rewards by row.
    pub(crate) fn rewards(&self) -> &[f32] {
        &self.rewards
    }

    /// Masks by row.
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

    /// The columns and the numbers in a row of each, in the order of the hash.
    pub(crate) fn columns(&self) -> [(&Column, usize); 4] {
        [
            (&self.observations, self.observation_dim),
            (&self.actions, self.action_dim),
            (&self.rewards, 1),
            (&self.masks, 1),
        ]
    }
}

/// Equal contents, in whichever rows they stand.
impl PartialEq for Dataset {
    fn eq(&self, other: &Self) -> bool {
        let lengths =
            |data: &Self| (0..data.episodes.len()).map(|e| data.episodes.length(e)).collect::<Vec<_>>();
        let equal = |episode: usize| {
            self.columns().iter().zip(other.columns()).all(|(&(a, width), (b, _))| {
                of_rows(a, &self.episodes.rows_of(episode), width)
                    == of_rows(b, &other.episodes.rows_of(episode), width)
            })
        };
        [self.observation_dim, self.action_dim] == [other.observation_dim, other.action_dim]
            && self.action_space == other.action_space
            && lengths(self) == lengths(other)
            && (0..self.episodes.len()).all(equal)
    }
}

/// Brings physical actions inside, and clips those of a box. The position of one that is no choice is the error.
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

fn of_rows<'a>(column: &'a [f32], rows: &Range<usize>, width: usize) -> &'a [f32] {
    &column[rows.start * width..rows.end * width]
}

pub(crate) const UNFINISHED: &str = "true: the last row of the data ends an episode";

/// What a column is for, and so what its numbers must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    State,
    Action,
    Reward,
    Mask,
}

impl Role {
    /// Clears what means nothing in the last rows of episodes. States always mean something.
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
            // Rounding explains a little more than 1. NaN compares as bad.
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

    /// Where the first bad number is.
    pub fn first_bad(self, data: &[f32]) -> Option<usize> {
        // Without an early exit the inner loop becomes vector instructions.
        let part =
            data.chunks(4096).position(|part| part.iter().fold(false, |bad, &x| bad | self.is_bad(x)))?;
        data[part * 4096..].iter().position(|&x| self.is_bad(x)).map(|i| part * 4096 + i)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Rows {
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

    #[test]
    fn the_hash_is_of_the_contents() {
        let data = Dataset::from_rows(rows()).unwrap();
        let hash = data.content_hash();
        assert_eq!(hash, data.clone().content_hash());
        // Must never change: checkpoints hold it. Computed by another program.
        assert_eq!(hash, "45bba9edf218e64512242ce2f8930755b6888f97ad8f5490f65b960c6b818cb8");
        let mut unused = rows();
        unused.actions[5] = 3.0;
        assert_eq!(Dataset::from_rows(unused).unwrap().content_hash(), hash);
        let mut other = rows();
        other.masks[0] = 0.0;
        assert_ne!(Dataset::from_rows(other).unwrap().content_hash(), hash);
        let mut other = rows();
        other.terminals[2] = false;
        other.actions[2] = 0.0;
        other.rewards[2] = 0.0;
        other.masks[2] = 1.0;
        assert_ne!(Dataset::from_rows(other).unwrap().content_hash(), hash);
    }

    /// Episodes of 1 to 20 transitions; every state is its row.
    fn twenty_episodes() -> Dataset {
        let terminals: Vec<bool> =
            (1..=20).flat_map(|length| (0..=length).map(move |step| step == length)).collect();
        let count = terminals.len();
        Dataset::from_rows(Rows {
            observation_dim: 1,
            action_dim: 2,
            observations: (0..count).map(|row| row as f32).collect(),
            actions: vec![0.5; 2 * count],
            rewards: (0..count).map(|row| -(row as f32)).collect(),
            masks: vec![1.0; count],
            terminals,
        })
        .unwrap()
    }

    #[test]
    fn held_out_episodes_are_whole_and_in_one_part() {
        let data = twenty_episodes();
        let (training, held_out) = data.hold_out(0.25, 3).unwrap();
        assert_eq!((training.episodes().len(), held_out.episodes().len()), (15, 5));
        let mut starts: Vec<f32> = [&training, &held_out]
            .iter()
            .flat_map(|part| (0..part.episodes().len()).map(|e| part.episode_states(e).row(0)[0]))
            .collect();
        starts.sort_by(f32::total_cmp);
        let all: Vec<f32> = (0..20).map(|e| data.episode_states(e).row(0)[0]).collect();
        assert_eq!(starts, all);
        for part in [&training, &held_out] {
            for transition in 0..part.len() {
                let state = part.observation(transition)[0];
                assert_eq!(part.next_observation(transition), [state + 1.0]);
                assert_eq!(part.reward(transition), -state);
            }
            let episode = part.episodes().len() - 1;
            assert_eq!(part.episode_states(episode).rows(), part.episode_actions(episode).rows() + 1);
            assert_eq!(part.episode_rewards(episode).len(), part.episodes().length(episode));
        }
        assert_eq!(data.hold_out(0.25, 3).unwrap(), (training.clone(), held_out));
        assert_ne!(data.hold_out(0.25, 4).unwrap().0, training);
    }

    #[test]
    fn a_part_has_the_hash_of_its_contents() {
        let (training, _) = twenty_episodes().hold_out(0.25, 3).unwrap();
        let lengths = (0..training.episodes().len()).map(|e| training.episodes().length(e));
        let terminals: Vec<bool> =
            lengths.flat_map(|length| (0..=length).map(move |step| step == length)).collect();
        let observations: Vec<f32> = training.states().flatten().copied().collect();
        let copy = Dataset::from_rows(Rows {
            observation_dim: 1,
            action_dim: 2,
            rewards: observations.iter().map(|x| -x).collect(),
            actions: vec![0.5; 2 * observations.len()],
            masks: vec![1.0; observations.len()],
            observations,
            terminals,
        })
        .unwrap();
        assert_eq!(copy, training);
        assert_eq!(copy.content_hash(), training.content_hash());
    }

    #[test]
    fn what_cannot_be_held_out() {
        let data = Dataset::from_rows(rows()).unwrap();
        for share in [0.0, 1.0, -0.5, f64::NAN] {
            assert!(data.hold_out(share, 0).unwrap_err().to_string().contains("above 0 and below 1"));
        }
        let (one, _) = data.hold_out(0.01, 0).unwrap();
        assert_eq!(one.episodes().len(), 1);
        assert_eq!(one.hold_out(0.5, 0), Err(HoldOutError::TooFew(1)));
    }
}
