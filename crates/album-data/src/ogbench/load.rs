//! OGBench-layout npz files in, datasets out.

use std::path::Path;

use crate::array::Array;
use crate::dataset::{Dataset, FINITE, Rows, check};
use crate::error::{DataError, Place};
use crate::npz::Npz;
use crate::ogbench::TaskName;

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
/// its action. Columns that only the labels need are dropped before the large ones
/// are read, so that little more memory is used than the dataset takes.
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
    label: impl Fn(&RowState<'_>) -> Label,
) -> Result<Dataset, DataError> {
    let path = path.as_ref();
    let mut npz = Npz::open(path)?;
    let terminals = npz.read("terminals")?;
    if terminals.shape.len() != 1 {
        return Err(wrong_shape(terminals, "one flag per row".to_owned()));
    }
    let terminals = terminals.to_bools()?;
    let count = terminals.len();

    let mut rows = Rows { terminals, ..Rows::default() };
    let read_observations = |npz: &mut Npz, rows: &mut Rows| {
        (rows.observation_dim, rows.observations) =
            read_floats(npz, "observations", count, needs.observation)?;
        Ok::<_, DataError>(())
    };
    if needs.observation > 0 {
        read_observations(&mut npz, &mut rows)?;
    }
    {
        let (qpos_dim, qpos) =
            if needs.qpos > 0 { read_floats(&mut npz, "qpos", count, needs.qpos)? } else { (0, Vec::new()) };
        check(&Place::file(path), "qpos", &qpos, &[count, qpos_dim], f32::is_finite, FINITE)?;
        let (buttons, button_states) = if needs.button_states > 0 {
            let (buttons, array) = read_matrix(&mut npz, "button_states", count, needs.button_states)?;
            (buttons, array.to_integers()?)
        } else {
            (0, Vec::new())
        };
        let seen_dim = if needs.observation > 0 { rows.observation_dim } else { 0 };
        rows.rewards.reserve_exact(count);
        rows.masks.reserve_exact(count);
        for i in 0..count {
            let label = label(&RowState {
                observation: &rows.observations[i * seen_dim..(i + 1) * seen_dim],
                qpos: &qpos[i * qpos_dim..(i + 1) * qpos_dim],
                button_states: &button_states[i * buttons..(i + 1) * buttons],
            });
            rows.rewards.push(label.reward);
            rows.masks.push(label.mask);
        }
    }
    if needs.observation == 0 {
        read_observations(&mut npz, &mut rows)?;
    }
    (rows.action_dim, rows.actions) = read_floats(&mut npz, "actions", count, 1)?;
    Dataset::checked(rows, &Place::file(path))
}

/// Reads the file of a task: [`load_labelled`] with the task's goal, and the
/// dimensions must be those of its environment.
pub fn load_task(path: impl AsRef<Path>, task: &TaskName) -> Result<Dataset, DataError> {
    let goal = task.goal();
    let path = path.as_ref();
    let dataset = load_labelled(path, goal.needs(), |row| goal.label(row))?;
    let environment = task.environment();
    for (key, found, expected) in [
        ("observations", dataset.observation_dim(), environment.observation_dim),
        ("actions", dataset.action_dim(), environment.action_dim),
    ] {
        if found != expected {
            return Err(DataError::WrongShape {
                place: Place::file(path).array(key),
                found: vec![dataset.episodes().rows(), found],
                expected: format!("{expected} columns for {}", environment.name),
            });
        }
    }
    Ok(dataset)
}

/// A matrix with this many rows and at least so many columns, and its width.
fn read_matrix(npz: &mut Npz, key: &str, rows: usize, columns: usize) -> Result<(usize, Array), DataError> {
    let array = npz.read(key)?;
    let least = columns.max(1);
    match array.shape[..] {
        [found, width] if found == rows && width >= least => Ok((width, array)),
        _ => {
            let expected = format!("[{rows}, at least {least}], since there are {rows} `terminals`");
            Err(wrong_shape(array, expected))
        }
    }
}

fn read_floats(
    npz: &mut Npz,
    key: &str,
    rows: usize,
    columns: usize,
) -> Result<(usize, Vec<f32>), DataError> {
    let (width, array) = read_matrix(npz, key, rows, columns)?;
    Ok((width, array.into_f32()?))
}

fn wrong_shape(array: Array, expected: String) -> DataError {
    DataError::WrongShape { place: array.place, found: array.shape, expected }
}
