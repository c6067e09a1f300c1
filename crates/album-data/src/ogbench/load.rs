//! OGBench-layout npz files in, datasets out.

use std::path::Path;

use crate::column::Column;
use crate::columns;
use crate::dataset::{Dataset, FINITE, Labels, episodes, first_not_finite, settle_actions, settle_labels};
use crate::episodes::Episodes;
use crate::error::{DataError, Place};
use crate::matrix::{matrix, only_finite, read_matrix, read_terminals, reserve};
use crate::npz::Npz;
use crate::ogbench::{Environment, TaskName};
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
            settle_actions(chunk, dim, &terminals[first..first + chunk.len() / dim])
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
    let data = [Column::Owned(observations), Column::Owned(actions)];
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

/// Reads the file or folder of a task: [`load_labelled`] with the task's goal, and the
/// dimensions must be those of its environment.
pub fn load_task(path: impl AsRef<Path>, task: &TaskName) -> Result<Dataset, DataError> {
    let goal = task.goal();
    let path = path.as_ref();
    let dataset = load_labelled(path, goal.needs(), |row| goal.label(row))?;
    let dims = [dataset.observation_dim(), dataset.action_dim()];
    check_dims(task.environment(), path, dataset.episodes().rows(), dims)?;
    Ok(dataset)
}

/// Refuses data of other dimensions than the environment's.
pub(crate) fn check_dims(
    environment: &Environment,
    path: &Path,
    rows: usize,
    [observation_dim, action_dim]: [usize; 2],
) -> Result<(), DataError> {
    for (key, found, expected) in [
        ("observations", observation_dim, environment.observation_dim),
        ("actions", action_dim, environment.action_dim),
    ] {
        if found != expected {
            return Err(DataError::WrongShape {
                place: Place::file(path).array(key),
                found: vec![rows, found],
                expected: format!("{expected} columns for {}", environment.name),
            });
        }
    }
    Ok(())
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
