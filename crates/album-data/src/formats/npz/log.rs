//! Arrays with one row per step as a log: an npz file, a folder of npy files or arrays in memory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::{DataError, Place};
use crate::formats::npz::Npz;
use crate::formats::npz::row_reader::RowReader;
use crate::limits::Limits;
use crate::load::ignored::is_note;
use crate::source::lent::LentArray;
use crate::source::log::{
    END_STATE, Facts, Field, FieldType, LogFile, MAX_WIDTH, Part, Stop, Values, Visit, part_rows,
};

enum Files<'a> {
    Npz(Npz),
    Folder(PathBuf, Limits),
    Lent(&'a [LentArray<'a>]),
}

impl Files<'_> {
    fn open(&self, name: &str) -> Result<RowReader<'_>, DataError> {
        match self {
            Self::Npz(npz) => npz.rows(name),
            Self::Folder(folder, limits) => RowReader::of_npy(&folder.join(format!("{name}.npy")), limits),
            Self::Lent(arrays) => match arrays.iter().find(|array| array.name == name) {
                Some(array) => RowReader::of_lent(array),
                None => {
                    let available = arrays.iter().map(|array| array.name.clone()).collect();
                    Err(DataError::Missing { place: Place::default().array(name), available })
                }
            },
        }
    }
}

/// Arrays with one row per step. State arrays may be longer by one row per episode, its final state.
pub(crate) struct ArraysTable<'a> {
    files: Files<'a>,
    place: Place,
    fields: Vec<Field>,
    /// Whether a field includes the final states.
    long: Vec<bool>,
    /// Number of steps: rows of fields without final states.
    steps: usize,
    /// Marks the last step of every episode, if any field includes final states.
    ends: Vec<bool>,
    warnings: Vec<String>,
}

impl<'a> ArraysTable<'a> {
    pub fn lent(arrays: &'a [LentArray<'a>]) -> Result<Self, DataError> {
        let names = arrays.iter().map(|array| array.name.clone()).collect();
        Self::new(Files::Lent(arrays), names, Place::default())
    }

    pub fn npz(path: &Path, limits: &Limits) -> Result<Self, DataError> {
        let npz = Npz::open_with(path, limits)?;
        let names = npz.names().to_vec();
        Self::new(Files::Npz(npz), names, Place::file(path))
    }

    pub fn folder(path: &Path, limits: &Limits) -> Result<Self, DataError> {
        let io_error = |source| DataError::Io { place: Place::file(path), source };
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path).map_err(io_error)? {
            let name = entry.map_err(io_error)?.file_name().to_string_lossy().into_owned();
            if let Some(name) = name.strip_suffix(".npy").filter(|name| !name.starts_with('.')) {
                names.push(name.to_owned());
            }
            if names.len() as u64 > limits.max_entries {
                let what = "the number of arrays";
                let (found, limit) = (names.len() as u64, limits.max_entries);
                return Err(DataError::Limit { place: Place::file(path), what, found, limit });
            }
        }
        names.sort();
        Self::new(Files::Folder(path.to_path_buf(), limits.clone()), names, Place::file(path))
    }

    fn new(files: Files<'a>, names: Vec<String>, place: Place) -> Result<Self, DataError> {
        let mut warnings = Vec::new();
        let mut found = Vec::new();
        for name in names {
            let reader = match files.open(&name) {
                Ok(reader) => reader,
                // Not an error: the array may not be needed.
                Err(error @ DataError::Dtype { .. }) => {
                    warnings.push(format!("not read: {error}"));
                    continue;
                }
                Err(error) => return Err(error),
            };
            let (Some(&rows), width) = (reader.shape().first(), reader.width()) else {
                continue; // a scalar, such as a version
            };
            if width > MAX_WIDTH {
                let (what, found, limit) = ("the numbers in a row", width as u64, MAX_WIDTH as u64);
                return Err(DataError::Limit { place: reader.place().clone(), what, found, limit });
            }
            if width > 0 {
                found.push((Field::new(name, reader.kind(), width), rows));
            }
        }
        let mut lengths: BTreeMap<usize, usize> = BTreeMap::new();
        found.iter().for_each(|(_, rows)| *lengths.entry(*rows).or_default() += 1);
        let most = lengths.iter().max_by_key(|(rows, count)| (**count, std::cmp::Reverse(**rows)));
        let steps = most.map_or(0, |(rows, _)| *rows);
        let mut table =
            Self { files, place, fields: Vec::new(), long: Vec::new(), steps, ends: Vec::new(), warnings };
        let longer = found.iter().any(|(field, rows)| is_state(&field.name) && *rows > steps);
        if longer {
            table.ends = table.find_ends(&found)?;
        }
        let episodes = table.ends.iter().filter(|end| **end).count();
        for (field, rows) in found {
            let long = longer && rows == steps + episodes && is_state(&field.name);
            if rows != steps && !long {
                if is_state(&field.name) {
                    let extra =
                        if episodes > 0 { format!(" or {}", steps + episodes) } else { String::new() };
                    return Err(DataError::WrongShape {
                        place: table.place.array(&field.name),
                        found: vec![rows, field.width],
                        expected: format!("{steps} rows{extra}, as the other arrays have"),
                    });
                }
                if is_note(&field.name) {
                    continue;
                }
                let sentence = format!(
                    "array `{}` is ignored: it has {rows} rows, others have {steps}",
                    field.name.escape_debug()
                );
                table.warnings.push(sentence);
                continue;
            }
            table.fields.push(field);
            table.long.push(long);
        }
        if longer {
            table.fields.push(Field::new(END_STATE, FieldType::Bool, 1));
            table.long.push(true);
        }
        Ok(table)
    }

    /// Finds the last step of every episode, from flags or episode ids.
    fn find_ends(&self, found: &[(Field, usize)]) -> Result<Vec<bool>, DataError> {
        let mut ends = vec![false; self.steps];
        for (field, rows) in found.iter().filter(|(field, rows)| field.width == 1 && *rows == self.steps) {
            let name = field.name.to_lowercase();
            let is_id = name.starts_with("episode") && field.kind == FieldType::Integer;
            let is_flag = ["term", "trunc", "timeout", "done"].iter().any(|start| name.starts_with(start));
            if !is_id && !is_flag {
                continue;
            }
            let mut reader = self.files.open(&field.name)?;
            if is_id {
                let ids = reader.integers(*rows)?;
                (1..*rows).for_each(|row| ends[row - 1] |= ids[row] != ids[row - 1]);
            } else {
                let flags = match reader.values(*rows)? {
                    Values::Bool(flags) => flags,
                    Values::I64(v) => v.iter().map(|&x| x != 0).collect(),
                    Values::F32(v) => v.iter().map(|&x| x != 0.0).collect(),
                    Values::F64(v) => v.iter().map(|&x| x != 0.0).collect(),
                    Values::Text(_) => continue,
                };
                ends.iter_mut().zip(flags).for_each(|(end, flag)| *end |= flag);
            }
        }
        if let Some(last) = ends.last_mut() {
            *last = true;
        }
        Ok(ends)
    }
}

/// Whether this is a state array: only these can include final states.
fn is_state(name: &str) -> bool {
    ["obs", "state"].iter().any(|start| name.to_lowercase().starts_with(start))
}

impl LogFile for ArraysTable<'_> {
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
        // Reader, whether the field includes final states, and width; `None` for the end-state flags.
        let mut readers: Vec<Option<(RowReader<'_>, bool, usize)>> = Vec::new();
        let mut row_bytes = 0;
        for &i in fields {
            let field = &self.fields[i];
            row_bytes += 4 * field.width;
            readers.push(match field.name.as_str() {
                END_STATE => None,
                name => Some((self.files.open(name)?, self.long[i], field.width)),
            });
        }
        let (part_steps, mut row) = (part_rows(row_bytes), 0);
        for step in (0..self.steps).step_by(part_steps) {
            let steps = part_steps.min(self.steps - step);
            let ends: &[bool] = self.ends.get(step..step + steps).unwrap_or(&[]);
            let rows = steps + ends.iter().filter(|end| **end).count();
            let mut columns = Vec::new();
            for reader in &mut readers {
                columns.push(match reader {
                    None => Values::Bool(
                        ends.iter().flat_map(|&end| [Some(false), end.then_some(true)]).flatten().collect(),
                    ),
                    Some((reader, true, _)) => reader.values(rows)?,
                    Some((reader, false, width)) => spread(reader.values(steps)?, ends, *width),
                });
            }
            each(Part { first_row: row, rows, columns })?;
            row += rows;
        }
        for (reader, ..) in readers.into_iter().flatten() {
            reader.finish()?;
        }
        Ok(())
    }
}

/// Inserts a row of zeros after the last step of every episode.
fn spread(values: Values, ends: &[bool], width: usize) -> Values {
    if !ends.contains(&true) {
        return values;
    }
    fn spread<T: Copy + Default>(all: &[T], ends: &[bool], width: usize) -> Vec<T> {
        let mut spread = Vec::with_capacity(all.len() + ends.len());
        for (row, &end) in all.chunks_exact(width).zip(ends) {
            spread.extend_from_slice(row);
            if end {
                spread.resize(spread.len() + width, T::default());
            }
        }
        spread
    }
    match values {
        Values::F32(v) => Values::F32(spread(&v, ends, width)),
        Values::F64(v) => Values::F64(spread(&v, ends, width)),
        Values::I64(v) => Values::I64(spread(&v, ends, width)),
        Values::Bool(v) => Values::Bool(spread(&v, ends, width)),
        Values::Text(mut v) => {
            v.codes = spread(&v.codes, ends, width);
            Values::Text(v)
        }
    }
}
