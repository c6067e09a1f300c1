//! Reading arrays a few rows at a time, so that files may be larger than memory.

use std::fs::File;
use std::path::Path;

use crate::error::{DataError, Place};
use crate::formats::file::open_regular;
use crate::formats::npz::EntryReader;
use crate::formats::npz::array::{Array, DType, Data, value_error};
use crate::formats::npz::npy::{Layout, fill, read_elements, read_layout};
use crate::limits::Limits;
use crate::load::{BadNumbers, Problem};
use crate::source::lent::LentArray;
use crate::source::log::{FieldType, Values};

/// Target size of a chunk in bytes.
const CHUNK_BYTES: usize = 256 << 10;

/// Reads the rows of an array in order.
///
/// The array may be an archive entry, a file of raw elements or borrowed from the caller. Creating a reader
/// reads at most the header. An entry in Fortran order is loaded as a whole when the first row is requested,
/// since its rows are complete only at its end.
pub(crate) struct RowReader<'a> {
    source: Source<'a>,
    place: Place,
    dtype: DType,
    shape: Vec<usize>,
    /// Rows read so far.
    done: usize,
    buffer: Vec<u8>,
}

enum Source<'a> {
    Entry(EntryReader<'a>),
    File(File),
    /// Becomes [`Source::Whole`] when the first row is requested.
    Fortran(Option<(EntryReader<'a>, Layout)>),
    Whole(Array),
    Lent(&'a LentArray<'a>),
}

impl<'a> RowReader<'a> {
    /// Reads an archive entry of `size` bytes.
    pub fn of_entry(
        mut entry: EntryReader<'a>,
        size: u64,
        place: Place,
        limits: &Limits,
    ) -> Result<Self, DataError> {
        let layout = read_layout(&mut entry, size, &place, limits)?;
        let (dtype, shape) = (layout.dtype, layout.shape.clone());
        let source =
            if layout.fortran { Source::Fortran(Some((entry, layout))) } else { Source::Entry(entry) };
        Ok(Self { source, place, dtype, shape, done: 0, buffer: Vec::new() })
    }

    /// Reads a file of raw elements. The caller has checked its size.
    pub fn of_file(file: File, dtype: DType, shape: Vec<usize>, place: Place) -> Self {
        Self { source: Source::File(file), place, dtype, shape, done: 0, buffer: Vec::new() }
    }

    /// Reads an npy file.
    pub fn of_npy(path: &Path, limits: &Limits) -> Result<Self, DataError> {
        let place = Place::file(path);
        let (mut file, size) = open_regular(path)?;
        if size > limits.max_array_bytes {
            let (what, limit) = ("the size of the file in bytes", limits.max_array_bytes);
            return Err(DataError::Limit { place, what, found: size, limit });
        }
        let layout = read_layout(&mut file, size, &place, limits)?;
        let (dtype, shape) = (layout.dtype, layout.shape.clone());
        let source = if layout.fortran {
            Source::Whole(read_elements(&mut file, layout, &place)?)
        } else {
            Source::File(file)
        };
        Ok(Self { source, place, dtype, shape, done: 0, buffer: Vec::new() })
    }

    /// Reads an array in memory. Fails if the shape does not match the number of elements.
    pub fn of_lent(array: &'a LentArray<'a>) -> Result<Self, DataError> {
        let place = Place::default().array(&array.name);
        let (found, shape) = (array.elements.len(), array.shape.clone());
        if shape.iter().try_fold(1usize, |n, &axis| n.checked_mul(axis)) != Some(found) {
            return Err(DataError::ShapeMismatch { place, found, shape });
        }
        let dtype = array.elements.dtype();
        Ok(Self { source: Source::Lent(array), place, dtype, shape, done: 0, buffer: Vec::new() })
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The type of the array as a field of a log.
    pub fn kind(&self) -> FieldType {
        match (&self.source, self.dtype) {
            (Source::Lent(array), _) if array.elements.text(0..0).is_some() => FieldType::Text,
            (_, DType::Bool) => FieldType::Bool,
            (_, DType::F32 | DType::F64) => FieldType::Float,
            _ => FieldType::Integer,
        }
    }

    /// The next rows in their own type; integers are widened to `i64`.
    pub fn values(&mut self, rows: usize) -> Result<Values, DataError> {
        if let Source::Lent(array) = &self.source
            && let Some(text) = array.elements.text(self.done..self.done + rows)
        {
            self.done += rows;
            return Ok(Values::Text(text));
        }
        Ok(match self.dtype {
            DType::F32 => {
                let mut values = Vec::with_capacity(rows * self.width());
                self.append_f32(rows, &mut values)?;
                Values::F32(values)
            }
            DType::F64 => match self.read(rows)?.data {
                Data::F64(values) => Values::F64(values),
                _ => Values::F64(Vec::new()),
            },
            DType::Bool => Values::Bool(self.bools(rows)?),
            _ => Values::I64(self.integers(rows)?),
        })
    }

    /// Length of each axis. Scalars have no rows: callers check for an axis before they read.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The file and name of the array.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Elements per row.
    pub fn width(&self) -> usize {
        self.shape.iter().skip(1).product()
    }

    /// Number of rows to read at a time.
    pub fn chunk_rows(&self) -> usize {
        (CHUNK_BYTES / (self.width() * self.dtype.size()).max(1)).max(1)
    }

    /// Appends the next rows as `f32`, with the checks of [`Array::into_f32`].
    pub fn append_f32(&mut self, rows: usize, to: &mut Vec<f32>) -> Result<(), DataError> {
        if self.dtype != DType::F32 || !matches!(self.source, Source::Entry(_) | Source::File(_)) {
            let chunk = self.read(rows)?;
            to.extend(self.located(rows, chunk.into_f32())?);
            return Ok(());
        }
        let bytes = rows * self.width() * 4;
        self.buffer.resize(bytes, 0);
        let found = match &mut self.source {
            Source::Entry(entry) => fill(entry, &mut self.buffer, &self.place)?,
            Source::File(file) => fill(file, &mut self.buffer, &self.place)?,
            Source::Fortran(_) | Source::Whole(_) | Source::Lent(_) => 0,
        };
        if found < bytes {
            return Err(self.too_short(found as u64));
        }
        to.extend(self.buffer.as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four)));
        self.done += rows;
        Ok(())
    }

    /// The next rows as integers, with the checks of [`Array::into_integers`].
    pub fn integers(&mut self, rows: usize) -> Result<Vec<i64>, DataError> {
        let chunk = self.read(rows)?;
        self.located(rows, chunk.into_integers())
    }

    /// The next rows as flags, with the checks of [`Array::into_bools`].
    pub fn bools(&mut self, rows: usize) -> Result<Vec<bool>, DataError> {
        let chunk = self.read(rows)?;
        self.located(rows, chunk.into_bools())
    }

    /// The error for an element of the last `rows` rows read, by its index within them.
    pub fn value_error(
        &self,
        rows: usize,
        index: usize,
        found: impl std::fmt::Display,
        expected: &'static str,
    ) -> DataError {
        let index = (self.done - rows) * self.width() + index;
        value_error(self.place.clone(), &self.shape, index, found, expected)
    }

    /// Records an invalid number in the last `rows` rows read, as the first of its kind.
    pub fn bad_number(&self, rows: usize, index: usize, value: f32, problem: Problem) -> BadNumbers {
        let index = (self.done - rows) * self.width() + index;
        let (row, column) = (index / self.width(), index % self.width());
        BadNumbers {
            array: self.place.key.clone().unwrap_or_default(),
            count: 1,
            row,
            column: (self.shape.len() > 1).then_some(column),
            value: value.to_string(),
            problem,
        }
    }

    /// The error for an unexpected shape.
    pub fn wrong_shape(&self, expected: String) -> DataError {
        DataError::WrongShape { place: self.place.clone(), found: self.shape.clone(), expected }
    }

    /// Verifies the checksum after the last row.
    pub fn finish(self) -> Result<(), DataError> {
        match self.source {
            Source::Entry(entry) => entry.finish(&self.place),
            Source::File(_) | Source::Fortran(_) | Source::Whole(_) | Source::Lent(_) => Ok(()),
        }
    }

    /// Loads an array in Fortran order as a whole.
    fn turn(&mut self) -> Result<(), DataError> {
        let Source::Fortran(unread) = &mut self.source else { return Ok(()) };
        let Some((mut entry, layout)) = unread.take() else { return Ok(()) };
        // Always the default limit: callers raise theirs for streaming, but this array has to fit in memory.
        let limit = Limits::default().max_array_bytes;
        if layout.bytes > limit {
            let what = "the size in bytes in Fortran order, in which it must fit in memory,";
            return Err(DataError::Limit { place: self.place.clone(), what, found: layout.bytes, limit });
        }
        let array = read_elements(&mut entry, layout, &self.place)?;
        entry.finish(&self.place)?;
        self.source = Source::Whole(array);
        Ok(())
    }

    fn read(&mut self, rows: usize) -> Result<Array, DataError> {
        self.turn()?;
        let mut shape = self.shape.clone();
        shape[0] = rows;
        let count = rows * self.width();
        let bytes = (count * self.dtype.size()) as u64;
        let layout = Layout { dtype: self.dtype, shape, fortran: false, count, bytes };
        let chunk = match &mut self.source {
            Source::Entry(entry) => read_elements(entry, layout, &self.place),
            Source::File(file) => read_elements(file, layout, &self.place),
            // Reached only if reading goes on after an error.
            Source::Fortran(_) => return Err(self.too_short(0)),
            Source::Lent(array) => {
                let start = self.done * (count / rows.max(1));
                let data = array.elements.range(start..start + count);
                Ok(Array { shape: layout.shape, data, place: self.place.clone() })
            }
            Source::Whole(array) => {
                let start = self.done * (count / rows.max(1));
                let data = array.data.range(start..start + count);
                Ok(Array { shape: layout.shape, data, place: self.place.clone() })
            }
        };
        let chunk = match chunk {
            Err(DataError::Length { found, .. }) => return Err(self.too_short(found)),
            other => self.located(0, other)?,
        };
        self.done += rows;
        Ok(chunk)
    }

    /// Shifts the row of an error from the last chunk of `rows` rows, already counted in `done`, to the whole
    /// array.
    fn located<T>(&self, rows: usize, result: Result<T, DataError>) -> Result<T, DataError> {
        result.map_err(|error| match error {
            DataError::Value { place, row, column, found, expected } => {
                DataError::Value { place, row: row + self.done - rows, column, found, expected }
            }
            other => other,
        })
    }

    fn too_short(&self, found: u64) -> DataError {
        let row_bytes = (self.width() * self.dtype.size()) as u64;
        DataError::Length {
            place: self.place.clone(),
            shape: self.shape.clone(),
            found: self.done as u64 * row_bytes + found,
            expected: self.shape[0] as u64 * row_bytes,
        }
    }
}
