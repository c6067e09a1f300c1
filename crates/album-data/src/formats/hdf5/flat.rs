//! D4RL's layout: parallel arrays with one row per step.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::arrays::{Array, arrays};
use super::{MAX_CACHE_BYTES, damaged, open_with_cache};
use crate::error::{DataError, Place};
use crate::parallel::{parallel, threads};
use crate::source::log::{Facts, Field, LogFile, Part, Stop, Values, Visit, part_rows};

pub(crate) struct FlatTable {
    place: Place,
    arrays: Vec<Array>,
    fields: Vec<Field>,
    rows: usize,
    warnings: Vec<String>,
}

impl FlatTable {
    pub fn open(path: &Path) -> Result<Self, DataError> {
        let place = Place::file(path);
        let all_arrays = |cache: usize| {
            let root = open_with_cache(path, cache)?.root_group().map_err(|e| damaged(&place, &e))?;
            let mut warnings = Vec::new();
            Ok::<_, DataError>((arrays(&root, &place, &mut warnings)?, warnings))
        };
        // Enough for the chunks at the edges of the parts that are read together.
        let edges = all_arrays(0)?.0.iter().map(Array::chunk_bytes).fold(0, usize::saturating_add);
        let (mut all, mut warnings) = all_arrays(edges.saturating_mul(threads() + 1).min(MAX_CACHE_BYTES))?;
        let is_action = |array: &&Array| array.field.name.to_lowercase().starts_with("act");
        let Some(rows) = all.iter().find(is_action).or(all.first()).map(|array| array.rows) else {
            return Err(DataError::NoTransitions { place });
        };
        all.retain(|array| {
            if array.rows == rows {
                return true;
            }
            // Nested arrays are metadata, such as the policy weights in D4RL files, and are skipped silently.
            if !array.field.name.contains('/') {
                let name = array.field.name.escape_debug();
                let sentence =
                    format!("array `{name}` is ignored: it has {} rows, others have {rows}", array.rows);
                warnings.push(sentence);
            }
            false
        });
        let fields = all.iter().map(|array| array.field.clone()).collect();
        Ok(Self { place, arrays: all, fields, rows, warnings })
    }
}

impl LogFile for FlatTable {
    fn place(&self) -> &Place {
        &self.place
    }

    fn fields(&self) -> &[Field] {
        &self.fields
    }

    fn facts(&self) -> Facts {
        Facts { warnings: self.warnings.clone(), ..Facts::default() }
    }

    fn visit(&self, fields: &[usize], each: Visit<'_>) -> Result<(), Stop> {
        let arrays: Vec<&Array> = fields.iter().map(|&i| &self.arrays[i]).collect();
        let step = part_rows(arrays.iter().map(|array| array.row_bytes()).sum());
        let readers = arrays.iter().map(|array| array.rows_in_order(&self.place).map(Mutex::new));
        let readers = readers.collect::<Result<Vec<_>, _>>()?;
        let reader = |i: usize| readers[i].lock().unwrap_or_else(PoisonError::into_inner);
        for first in (0..self.rows).step_by(step * threads()) {
            let starts: Vec<usize> = (first..self.rows).step_by(step).take(threads()).collect();
            let rows = |start: usize| step.min(self.rows - start);
            // Decompression dominates, so arrays are read in parallel, and also their parts where these can be read in any
            // order.
            let tasks: Vec<(usize, &[usize])> = (0..arrays.len())
                .flat_map(|i| {
                    starts
                        .chunks(if reader(i).in_bands() { starts.len() } else { 1 })
                        .map(move |part| (i, part))
                })
                .collect();
            let columns = parallel(tasks.len(), |task| {
                let (i, starts) = tasks[task];
                let of_part = |&start: &usize| match starts.len() {
                    1 if !reader(i).in_bands() => arrays[i].read(start, rows(start), &self.place),
                    _ => reader(i).read(start, rows(start), &self.place),
                };
                starts.iter().map(of_part).collect::<Result<Vec<_>, _>>()
            })?;
            let mut of_array: Vec<Vec<Values>> = arrays.iter().map(|_| Vec::new()).collect();
            for ((i, _), values) in tasks.iter().zip(columns) {
                of_array[*i].extend(values);
            }
            let mut columns: Vec<_> = of_array.into_iter().map(Vec::into_iter).collect();
            for first_row in starts {
                let columns = columns.iter_mut().filter_map(Iterator::next).collect();
                each(Part { first_row, rows: rows(first_row), columns })?;
            }
        }
        Ok(())
    }
}
