//! The arrays of an OGBench-layout file: one row for each state, read in parts and checked on the way.

use crate::dataset::{FINITE, Refused, first_not_finite};
use crate::error::{DataError, Place};
use crate::npz::Npz;
use crate::row_reader::RowReader;

/// The flags that end episodes, one per row.
pub(crate) fn terminals(npz: &Npz) -> Result<RowReader<'_>, DataError> {
    let reader = npz.rows("terminals")?;
    if reader.shape().len() != 1 {
        return Err(wrong_shape(&reader, "one flag per row".to_owned()));
    }
    Ok(reader)
}

/// Reads all of [`terminals`].
pub(crate) fn read_terminals(npz: &Npz) -> Result<Vec<bool>, DataError> {
    let mut reader = terminals(npz)?;
    let count = reader.shape()[0];
    let mut terminals = reserve(count, reader.place())?;
    while terminals.len() < count {
        terminals.extend(reader.bools(reader.chunk_rows().min(count - terminals.len()))?);
    }
    reader.finish()?;
    Ok(terminals)
}

/// A matrix with this many rows and at least so many columns.
pub(crate) fn matrix<'a>(
    npz: &'a Npz,
    key: &str,
    rows: usize,
    columns: usize,
) -> Result<RowReader<'a>, DataError> {
    let reader = npz.rows(key)?;
    let least = columns.max(1);
    match reader.shape()[..] {
        [found, width] if found == rows && width >= least => Ok(reader),
        _ => {
            let expected = format!("[{rows}, at least {least}], since there are {rows} `terminals`");
            Err(wrong_shape(&reader, expected))
        }
    }
}

/// Reads a matrix; `settle` is given every part with its first row and the width, and tells which number
/// it refuses.
pub(crate) fn read_matrix(
    mut reader: RowReader<'_>,
    settle: impl Fn(usize, &mut [f32], usize) -> Result<(), Refused>,
) -> Result<(usize, Vec<f32>), DataError> {
    let (count, width, step) = (reader.shape()[0], reader.width(), reader.chunk_rows());
    let mut all: Vec<f32> = reserve(count * width, reader.place())?;
    for first in (0..count).step_by(step) {
        let rows = step.min(count - first);
        let start = all.len();
        reader.append_f32(rows, &mut all)?;
        if let Err((i, expected)) = settle(first, &mut all[start..], width) {
            return Err(reader.value_error(rows, i, all[start + i], expected));
        }
    }
    reader.finish()?;
    Ok((width, all))
}

/// The `settle` of a matrix that must be finite and nothing else.
pub(crate) fn only_finite(_first: usize, chunk: &mut [f32], _width: usize) -> Result<(), Refused> {
    first_not_finite(chunk).map_or(Ok(()), |i| Err((i, FINITE)))
}

/// Room for exactly so many elements.
pub(crate) fn reserve<T>(count: usize, place: &Place) -> Result<Vec<T>, DataError> {
    let mut all = Vec::new();
    match all.try_reserve_exact(count) {
        Ok(()) => Ok(all),
        Err(_) => Err(DataError::Memory { place: place.clone(), bytes: (count * size_of::<T>()) as u64 }),
    }
}

fn wrong_shape(reader: &RowReader<'_>, expected: String) -> DataError {
    DataError::WrongShape { place: reader.place().clone(), found: reader.shape().to_vec(), expected }
}
