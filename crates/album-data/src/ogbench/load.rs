//! OGBench-layout npz files in, datasets out.
//!
//! # Own data
//!
//! Files with an array `rewards` bring their own labels and are read by [`load_own`]. Two layouts are
//! understood. Actions are within ±1 in both, and a reward belongs to the state and action of its row.
//!
//! **Rows**, as OGBench has them: an episode of T transitions has T + 1 rows, and `terminals` is true on its
//! last row, which has a state and nothing else. `masks` is 0 where the task is solved in the row's own state,
//! so that no value follows, and 1 elsewhere; without it nothing ends.
//!
//! ```python
//! np.savez_compressed(
//!     "own.npz",
//!     observations=observations,  # float32 [rows, n]: s_0 ... s_T of each episode
//!     actions=actions,            # float32 [rows, m]: a_0 ... a_{T-1}, then anything
//!     rewards=rewards,            # float32 [rows]
//!     masks=masks,                # float32 [rows], 0 or 1; may be left out
//!     terminals=terminals,        # bool [rows]: true on the row of s_T
//! )
//! ```
//!
//! **Transitions**, as D4RL and most replay buffers have them: one row for each transition. A file has this layout
//! if it has `next_observations` or `timeouts`. `terminals` is true where the task ended with the transition,
//! so that no value follows (the mask is 0); `timeouts` is true where only the recording ended. An episode also
//! ends where the next row does not start in the state that this one led to, and at the end of the file. Without
//! `next_observations` the row of a time-out counts only as the state that its episode ends in, since what
//! followed was not recorded.
//!
//! ```python
//! np.savez_compressed(
//!     "own.npz",
//!     observations=observations,            # float32 [transitions, n]
//!     actions=actions,                      # float32 [transitions, m]
//!     rewards=rewards,                      # float32 [transitions]
//!     next_observations=next_observations,  # float32 [transitions, n]; may be left out if `timeouts` is there
//!     terminals=terminals,                  # bool [transitions]
//!     timeouts=timeouts,                    # bool [transitions]; may be left out if `next_observations` is there
//! )
//! ```

use std::path::Path;

use crate::column::Column;
use crate::columns;
use crate::dataset::{
    Dataset, FINITE, Labels, episodes, first_not_finite, settle_labels, settle_recorded_actions,
};
use crate::episodes::Episodes;
use crate::error::{DataError, Place};
use crate::matrix::{matrix, only_finite, read_matrix, read_terminals, reserve};
use crate::npz::Npz;
use crate::ogbench::raw::Raw;
use crate::ogbench::{TaskName, fit};
use crate::row_reader::RowReader;

/// What a labelling function looks at: how many numbers of each kind a row must
/// have at least. A column of which it needs 0 is not read for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs {
    /// Of the observation.
    pub observation: usize,
    /// Of the simulator's positions.
    pub qpos: usize,
    /// Of the states of the buttons.
    pub button_states: usize,
}

/// One row of a file, as a labelling function sees it. A column that was not
/// asked for in [`Needs`] is empty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowState<'a> {
    /// What an agent sees.
    pub observation: &'a [f32],
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

/// Reads an OGBench-layout file and labels each row with reward and mask.
///
/// The file holds `observations`, `actions` and `terminals`, one entry per row, and
/// the columns that `needs` asks for. An episode's last row has `terminals` true and
/// an action without meaning. Every label is made from the row's own state, before
/// its action. Columns that only the labels need pass by in parts, so that little more
/// memory is used than the dataset takes, while another thread reads the observations.
///
/// In place of a file there may be a folder that [`columns::import`] made of one or
/// several: its observations and actions stay on the disk.
///
/// ```
/// use album_data::ogbench::{Label, Needs, load_labelled};
/// use album_data::NpzWriter;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("walk.npz");
/// # let mut writer = NpzWriter::create(&path, true)?;
/// # writer.array_f32("observations", &[3, 1], &[0.0, 1.0, 2.0])?;
/// # writer.array_f32("actions", &[3, 1], &[1.0, 1.0, 0.0])?;
/// # writer.array_bool("terminals", &[3], &[false, false, true])?;
/// # writer.finish()?;
/// // The task is to be beyond 0.5.
/// let needs = Needs { observation: 1, ..Needs::default() };
/// let dataset = load_labelled(&path, needs, |row| {
///     let solved = if row.observation[0] > 0.5 { 1.0 } else { 0.0 };
///     Label { reward: solved - 1.0, mask: 1.0 - solved }
/// })?;
/// assert_eq!((dataset.reward(0), dataset.mask(0)), (-1.0, 1.0));
/// assert_eq!((dataset.reward(1), dataset.mask(1)), (0.0, 0.0));
/// # Ok(())
/// # }
/// ```
pub fn load_labelled(
    path: impl AsRef<Path>,
    needs: Needs,
    label: impl Fn(&RowState<'_>) -> Label + Sync,
) -> Result<Dataset, DataError> {
    let path = path.as_ref();
    if path.is_dir() {
        return load_columns(path, needs, &label);
    }
    let place = Place::file(path);
    let npz = Npz::open(path)?;
    let terminals = read_terminals(&npz)?;
    let episodes = episodes(&terminals, &place)?;
    let count = terminals.len();
    let read_observations =
        || read_matrix(matrix(&npz, "observations", count, needs.observation)?, only_finite);
    let read_others = |observations: (&[f32], usize)| {
        let actions = read_matrix(matrix(&npz, "actions", count, 1)?, |first, chunk, dim| {
            settle_recorded_actions(chunk, dim, &terminals[first..first + chunk.len() / dim])
        })?;
        let wanted = |key, columns| (columns > 0).then(|| matrix(&npz, key, count, columns)).transpose();
        let states = States {
            observations,
            qpos: wanted("qpos", needs.qpos)?,
            button_states: wanted("button_states", needs.button_states)?,
        };
        Ok((actions, states.label(&episodes, &place, &label)?))
    };
    let ((observation_dim, observations), ((action_dim, actions), labels)) = if needs.observation > 0 {
        let observations = read_observations()?;
        let others = read_others((&observations.1, observations.0))?;
        (observations, others)
    } else {
        let (observations, others) = both(read_observations, || read_others((&[], 0)));
        (observations?, others?)
    };
    let dims = [observation_dim, action_dim];
    let data: [Column; 2] = [observations.into(), actions.into()];
    Ok(Dataset::from_columns(dims, data, labels, episodes))
}

/// [`load_labelled`] for a folder of columns.
fn load_columns(
    path: &Path,
    needs: Needs,
    label: &(impl Fn(&RowState<'_>) -> Label + Sync),
) -> Result<Dataset, DataError> {
    let folder = columns::Folder::open(path)?;
    let (episodes, dims) = (folder.episodes()?, [folder.width("observations")?, folder.width("actions")?]);
    let data = [folder.map("observations")?, folder.map("actions")?];
    let wanted = |key, columns| (columns > 0).then(|| folder.rows(key, columns)).transpose();
    let states = States {
        observations: if needs.observation > 0 { (&data[0], dims[0]) } else { (&[], 0) },
        qpos: wanted("qpos", needs.qpos)?,
        button_states: wanted("button_states", needs.button_states)?,
    };
    let labels = states.label(&episodes, &Place::file(path), label)?;
    Ok(Dataset::from_columns(dims, data, labels, episodes))
}

/// Reads the file or folder of a task: [`load_labelled`] with the task's goal, and the widths
/// of all columns must be those of its environment.
pub fn load_task(path: impl AsRef<Path>, task: &TaskName) -> Result<Dataset, DataError> {
    let (path, goal) = (path.as_ref(), task.goal());
    fit::check(path, task.environment())?;
    load_labelled(path, goal.needs(), |row| goal.label(row))
}

/// Reads a file that has `rewards` of its own, in one of the two layouts of own data: rows, with `masks`
/// or without, or transitions.
///
/// ```
/// use album_data::NpzWriter;
/// use album_data::ogbench::load_own;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("own.npz");
/// let mut writer = NpzWriter::create(&path, true)?;
/// writer.array_f32("observations", &[3, 1], &[0.0, 1.0, 2.0])?;
/// writer.array_f32("actions", &[3, 1], &[1.0, 1.0, 0.0])?;
/// writer.array_f32("rewards", &[3], &[-1.0, 0.0, 0.0])?;
/// writer.array_f32("masks", &[3], &[1.0, 0.0, 1.0])?;
/// writer.array_bool("terminals", &[3], &[false, false, true])?;
/// writer.finish()?;
/// let dataset = load_own(&path)?;
/// assert_eq!((dataset.len(), dataset.reward(1), dataset.mask(1)), (2, 0.0, 0.0));
/// # Ok(())
/// # }
/// ```
pub fn load_own(path: impl AsRef<Path>) -> Result<Dataset, DataError> {
    let path = path.as_ref();
    Raw::own(path)?.own_dataset(path)
}

/// Does both, on two threads if there can be a second one.
fn both<A: Send, B>(first: impl Fn() -> A + Sync, second: impl FnOnce() -> B) -> (A, B) {
    std::thread::scope(|scope| match std::thread::Builder::new().spawn_scoped(scope, &first) {
        Ok(thread) => {
            let second = second();
            (thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), second)
        }
        Err(_) => (first(), second()),
    })
}

/// The columns that labels are made of.
struct States<'a> {
    /// And the numbers in each; 0 where none are needed.
    observations: (&'a [f32], usize),
    qpos: Option<RowReader<'a>>,
    button_states: Option<RowReader<'a>>,
}

impl States<'_> {
    /// Labels every row.
    fn label(
        mut self,
        episodes: &Episodes,
        place: &Place,
        label: &impl Fn(&RowState<'_>) -> Label,
    ) -> Result<Labels, DataError> {
        let count = episodes.rows();
        let (seen, seen_dim) = self.observations;
        let width = |reader: &Option<RowReader<'_>>| reader.as_ref().map_or(0, RowReader::width);
        let (qpos_dim, buttons) = (width(&self.qpos), width(&self.button_states));
        let readers = self.qpos.iter().chain(&self.button_states);
        let step = readers.map(RowReader::chunk_rows).min().unwrap_or(count);
        let mut labels = Labels { rewards: reserve(count, place)?, masks: reserve(count, place)? };
        let (mut qpos, mut button_states) = (Vec::new(), Vec::new());
        for first in (0..count).step_by(step) {
            let rows = step.min(count - first);
            if let Some(reader) = &mut self.qpos {
                qpos.clear();
                reader.append_f32(rows, &mut qpos)?;
                if let Some(i) = first_not_finite(&qpos) {
                    return Err(reader.value_error(rows, i, qpos[i], FINITE));
                }
            }
            if let Some(reader) = &mut self.button_states {
                button_states = reader.integers(rows)?;
            }
            for i in 0..rows {
                let label = label(&RowState {
                    observation: &seen[(first + i) * seen_dim..(first + i + 1) * seen_dim],
                    qpos: &qpos[i * qpos_dim..(i + 1) * qpos_dim],
                    button_states: &button_states[i * buttons..(i + 1) * buttons],
                });
                labels.rewards.push(label.reward);
                labels.masks.push(label.mask);
            }
        }
        for reader in [self.qpos, self.button_states].into_iter().flatten() {
            reader.finish()?;
        }
        settle_labels(&mut labels.rewards, &mut labels.masks, episodes, place)?;
        Ok(labels)
    }
}
