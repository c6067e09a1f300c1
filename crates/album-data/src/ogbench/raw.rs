//! Files as they are: for the doctor, and for own data, which is not large enough to be read in parts.

use std::path::Path;

use crate::array::{Array, value_error};
use crate::dataset::{Dataset, Rows, WITHIN_ONE, first_outside};
use crate::error::{DataError, Place};
use crate::npz::Npz;
use crate::ogbench::load::{Label, Needs, RowState};
use crate::ogbench::{TaskName, fit, transitions};

/// A file's columns: shapes are as they must be, numbers are as they are.
#[derive(Debug)]
pub struct Raw {
    /// The columns.
    pub rows: Rows,
    /// The first number of `qpos` that is NaN or infinite: its row, its column and what it is.
    pub bad_qpos: Option<(usize, usize, f32)>,
}

impl Raw {
    /// Labels every row.
    pub fn labelled(
        path: &Path,
        needs: Needs,
        label: impl Fn(&RowState<'_>) -> Label,
    ) -> Result<Self, DataError> {
        let mut npz = Npz::open(path)?;
        let terminals = read_flags(&mut npz, "terminals")?;
        let count = terminals.len();
        let mut rows = Rows { terminals, ..Rows::default() };
        let bad_qpos;
        {
            let (qpos_dim, qpos) = if needs.qpos > 0 {
                read_floats(&mut npz, "qpos", count, needs.qpos)?
            } else {
                (0, Vec::new())
            };
            bad_qpos =
                qpos.iter().position(|x| !x.is_finite()).map(|i| (i / qpos_dim, i % qpos_dim, qpos[i]));
            let (buttons, button_states) = if needs.button_states > 0 {
                let (buttons, array) = read_matrix(&mut npz, "button_states", count, needs.button_states)?;
                (buttons, array.to_integers()?)
            } else {
                (0, Vec::new())
            };
            for i in 0..count {
                let label = label(&RowState {
                    observation: &[],
                    qpos: &qpos[i * qpos_dim..(i + 1) * qpos_dim],
                    button_states: &button_states[i * buttons..(i + 1) * buttons],
                });
                rows.rewards.push(label.reward);
                rows.masks.push(label.mask);
            }
        }
        (rows.observation_dim, rows.observations) = read_floats(&mut npz, "observations", count, 1)?;
        (rows.action_dim, rows.actions) = read_floats(&mut npz, "actions", count, 1)?;
        Ok(Self { rows, bad_qpos })
    }

    /// Labels every row by a task's goal.
    pub fn task(path: &Path, task: &TaskName) -> Result<Self, DataError> {
        let goal = task.goal();
        fit::check(path, task.environment())?;
        Self::labelled(path, goal.needs(), |row| goal.label(row))
    }

    /// Takes the labels from the file.
    pub fn own(path: &Path) -> Result<Self, DataError> {
        let mut npz = Npz::open(path)?;
        let rows = if npz.contains("next_observations") || npz.contains("timeouts") {
            transitions::read(&mut npz)?
        } else {
            let rows = Self::unlabelled(path)?.rows;
            let count = rows.terminals.len();
            let rewards = read_numbers(&mut npz, "rewards", count)?;
            let masks = if npz.contains("masks") {
                read_numbers(&mut npz, "masks", count)?
            } else {
                vec![1.0; count]
            };
            Rows { rewards, masks, ..rows }
        };
        Ok(Self { rows, bad_qpos: None })
    }

    /// Leaves rewards and masks empty.
    pub fn unlabelled(path: &Path) -> Result<Self, DataError> {
        let label = |_: &RowState<'_>| Label { reward: 0.0, mask: 1.0 };
        let mut raw = Self::labelled(path, Needs::default(), label)?;
        raw.rows.rewards.clear();
        raw.rows.masks.clear();
        Ok(raw)
    }

    /// The dataset, if there is nothing wrong with the numbers.
    pub fn own_dataset(self, path: &Path) -> Result<Dataset, DataError> {
        let place = Place::file(path);
        let Rows { action_dim, actions, terminals, .. } = &self.rows;
        // Without a last row that is marked as such, which is refused below, it is not known whose actions count.
        if terminals.last() == Some(&true)
            && let Some(i) = first_outside(actions, *action_dim, terminals)
        {
            let shape = [terminals.len(), *action_dim];
            return Err(value_error(place.array("actions"), &shape, i, actions[i], WITHIN_ONE));
        }
        Dataset::checked(self.rows, &place)
    }
}

/// A matrix with this many rows and at least so many columns, and its width.
fn read_matrix(npz: &mut Npz, key: &str, rows: usize, least: usize) -> Result<(usize, Array), DataError> {
    let array = npz.read(key)?;
    match array.shape[..] {
        [found, width] if found == rows && width >= least => Ok((width, array)),
        _ => {
            let expected = format!("[{rows}, at least {least}], since there are {rows} `terminals`");
            Err(wrong_shape(array, expected))
        }
    }
}

pub(super) fn read_floats(
    npz: &mut Npz,
    key: &str,
    rows: usize,
    least: usize,
) -> Result<(usize, Vec<f32>), DataError> {
    let (width, array) = read_matrix(npz, key, rows, least)?;
    Ok((width, array.into_f32()?))
}

/// One number per row.
pub(super) fn read_numbers(npz: &mut Npz, key: &str, rows: usize) -> Result<Vec<f32>, DataError> {
    let array = npz.read(key)?;
    if array.shape != [rows] {
        return Err(wrong_shape(array, format!("[{rows}], since there are {rows} `terminals`")));
    }
    array.into_f32()
}

/// One flag per row.
pub(super) fn read_flags(npz: &mut Npz, key: &str) -> Result<Vec<bool>, DataError> {
    let array = npz.read(key)?;
    if array.shape.len() != 1 {
        return Err(wrong_shape(array, "one flag per row".to_owned()));
    }
    array.to_bools()
}

pub(super) fn wrong_shape(array: Array, expected: String) -> DataError {
    DataError::WrongShape { place: array.place, found: array.shape, expected }
}
