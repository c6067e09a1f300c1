//! Requirements on the numbers of each array, and reading them accordingly.

use serde::Serialize;

use crate::dataset::{ACTION_LIMIT, Role};
use crate::error::DataError;
use crate::formats::npz::row_reader::RowReader;
use crate::load::arrays::reserve;

/// Numbers of an array that training refuses.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BadNumbers {
    /// The array.
    pub array: String,
    /// Number of them.
    pub count: usize,
    /// Row of the first.
    pub row: usize,
    /// Column of the first, if the array has columns.
    pub column: Option<usize>,
    /// Value of the first.
    pub value: String,
    /// What is wrong with them.
    pub problem: Problem,
}

/// Why training refuses a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Problem {
    /// NaN or infinite.
    NotFinite,
    /// An action beyond ±1.
    OutOfRange,
    /// A mask that is neither 0 nor 1.
    NotAMask,
}

impl Problem {
    /// What was expected.
    pub fn expected(self) -> &'static str {
        match self {
            Self::NotFinite => "a finite number",
            Self::OutOfRange => "an action within [-1, 1]",
            Self::NotAMask => "0 or 1",
        }
    }
}

/// How bad numbers are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnBad {
    /// The first is an error.
    Refuse,
    /// They are counted and kept.
    Count,
}

/// A matrix that was read.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    pub width: usize,
    pub data: Vec<f32>,
    pub bad: Vec<BadNumbers>,
}

/// Reads a whole array. Meaningless entries in `last` rows are cleared; actions are clipped.
pub(crate) fn read(
    mut reader: RowReader<'_>,
    role: Role,
    last: &[bool],
    on_bad: OnBad,
) -> Result<Numbers, DataError> {
    let (count, width, step) = (reader.shape()[0], reader.width(), reader.chunk_rows());
    let mut data: Vec<f32> = reserve(count * width, reader.place())?;
    let mut bad = Vec::new();
    for first in (0..count).step_by(step) {
        let rows = step.min(count - first);
        let start = data.len();
        reader.append_f32(rows, &mut data)?;
        let chunk = &mut data[start..];
        role.clear(chunk, width, &last[first..first + rows]);
        check(&reader, role, rows, chunk, on_bad, &mut bad)?;
        if role == Role::Action && on_bad == OnBad::Refuse {
            clip(chunk);
        }
    }
    reader.finish()?;
    Ok(Numbers { width, data, bad })
}

/// Checks the rows that were read last.
pub(crate) fn check(
    reader: &RowReader<'_>,
    role: Role,
    rows: usize,
    chunk: &[f32],
    on_bad: OnBad,
    bad: &mut Vec<BadNumbers>,
) -> Result<(), DataError> {
    let Some(first) = role.first_bad(chunk) else { return Ok(()) };
    if on_bad == OnBad::Refuse {
        return Err(reader.value_error(rows, first, chunk[first], role.problem(chunk[first]).expected()));
    }
    for (i, &x) in chunk.iter().enumerate().skip(first).filter(|(_, x)| role.is_bad(**x)) {
        let problem = role.problem(x);
        match bad.iter_mut().find(|known| known.problem == problem) {
            Some(known) => known.count += 1,
            None => bad.push(reader.bad_number(rows, i, x, problem)),
        }
    }
    Ok(())
}

/// Clips actions to the limits of a squashed policy.
pub(crate) fn clip(actions: &mut [f32]) {
    for action in actions {
        *action = action.clamp(-ACTION_LIMIT, ACTION_LIMIT);
    }
}
