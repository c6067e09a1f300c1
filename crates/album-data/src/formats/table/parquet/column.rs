//! Decoding of column chunks.

use std::sync::Arc;

use parquet::basic::Type as Physical;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::schema::types::ColumnDescriptor;

use super::ParquetFile;
use super::file::{guarded, limit};
use super::schema::{decimal, is_unsigned};
use crate::error::DataError;
use crate::formats::table::data::{ColumnData, Dictionary, Lists};

/// A reader of one column of one row group.
pub(in crate::formats::table) struct Chunk<'a> {
    pub(super) file: &'a ParquetFile,
    pub(super) reader: ColumnReader,
    pub(super) column: usize,
    pub(super) descriptor: Arc<ColumnDescriptor>,
    /// The index of the next row in the file.
    pub(super) row: usize,
    pub(super) definitions: Vec<i16>,
    pub(super) repetitions: Vec<i16>,
}

/// An invalid value: its row within the portion, what was found and what was expected.
type Bad = (usize, String, &'static str);

const INTEGER: &str = "an integer within the range of int64";

impl Chunk<'_> {
    /// Appends the next `rows` rows.
    pub(in crate::formats::table) fn read(
        &mut self,
        rows: usize,
        into: &mut ColumnData,
        dictionary: &mut Dictionary,
    ) -> Result<(), DataError> {
        let mut left = rows;
        while left > 0 {
            let portion = left.min(PORTION); // keeps the crate's buffers small
            self.portion(portion, into, dictionary)?;
            left -= portion;
            if dictionary.bytes() > self.file.limits.max_array_bytes {
                let (found, bound) = (dictionary.bytes(), self.file.limits.max_array_bytes);
                return limit(&self.file.place, "the size of a column's labels", found, bound);
            }
        }
        if let ColumnData::Text(text) = into {
            text.categories = dictionary.categories();
        }
        Ok(())
    }

    fn portion(
        &mut self,
        rows: usize,
        into: &mut ColumnData,
        dictionary: &mut Dictionary,
    ) -> Result<(), DataError> {
        let descriptor = &self.descriptor;
        let (definitions, repetitions) = (&mut self.definitions, &mut self.repetitions);
        definitions.clear();
        repetitions.clear();
        let mut levels = Levels { descriptor, rows, definitions, repetitions };
        let scale = decimal(descriptor).map_or(1.0, |scale| 10f64.powi(scale));
        let unsigned = is_unsigned(descriptor);
        let place = &self.file.place;
        let reader = &mut self.reader;
        use ColumnReader as R;
        let done: Result<(), Bad> = guarded(place, || {
            Ok(match (reader, into) {
                (R::BoolColumnReader(r), ColumnData::Bool(v)) => {
                    levels.flat(r, v, |x| x.copied().ok_or(("nothing".into(), "a flag")))?
                }
                (R::Int32ColumnReader(r), ColumnData::Float(v)) => {
                    levels.flat(r, v, |x| Ok(x.map_or(f64::NAN, |&x| f64::from(x) / scale)))?
                }
                (R::Int64ColumnReader(r), ColumnData::Float(v)) => {
                    levels.flat(r, v, |x| Ok(x.map_or(f64::NAN, |&x| x as f64 / scale)))?
                }
                (R::Int32ColumnReader(r), ColumnData::Int(v)) => levels.flat(r, v, |x| {
                    let x = *x.ok_or(("nothing".into(), INTEGER))?;
                    Ok(if unsigned { i64::from(x as u32) } else { i64::from(x) })
                })?,
                (R::Int64ColumnReader(r), ColumnData::Int(v)) => levels.flat(r, v, |x| match x {
                    Some(&x) if unsigned && x < 0 => Err(((x as u64).to_string(), INTEGER)),
                    Some(&x) => Ok(x),
                    None => Err(("nothing".into(), INTEGER)),
                })?,
                (R::Int96ColumnReader(r), ColumnData::Int(v)) => {
                    levels.flat(r, v, |x| Ok(x.ok_or(("nothing".into(), INTEGER))?.to_nanos()))?
                }
                (R::FloatColumnReader(r), ColumnData::Float32(v)) => levels.same(r, v, f32::NAN)?,
                (R::DoubleColumnReader(r), ColumnData::Float(v)) => levels.same(r, v, f64::NAN)?,
                (R::ByteArrayColumnReader(r), ColumnData::Text(text)) => {
                    levels.flat(r, &mut text.codes, |x| {
                        let label = std::str::from_utf8(x.map_or(&[], |x| x.data()));
                        let label = label.map_err(|_| ("bytes that are not UTF-8".to_owned(), "text"))?;
                        Ok(dictionary.code(label))
                    })?
                }
                (R::BoolColumnReader(r), ColumnData::List(to)) => {
                    levels.lists(r, to, |&x| f64::from(u8::from(x)))?
                }
                (R::Int32ColumnReader(r), ColumnData::List(to)) => levels.lists(r, to, |&x| f64::from(x))?,
                (R::Int64ColumnReader(r), ColumnData::List(to)) => levels.lists(r, to, |&x| x as f64)?,
                (R::FloatColumnReader(r), ColumnData::List(to)) => levels.lists(r, to, |&x| f64::from(x))?,
                (R::DoubleColumnReader(r), ColumnData::List(to)) => levels.lists(r, to, |&x| x)?,
                _ => return Err(ParquetError::General("the schema changed while reading".into())),
            })
        })?;
        done.map_err(|(row, found, expected)| DataError::Cell {
            place: Box::new(place.clone()),
            column: self.file.columns[self.column].0.clone(),
            row: format!("row {}", self.row + row),
            found,
            expected,
        })?;
        self.row += rows;
        Ok(())
    }
}

/// Rows decoded at a time.
const PORTION: usize = 1 << 14;

/// Definition and repetition levels of a portion.
struct Levels<'a> {
    descriptor: &'a ColumnDescriptor,
    rows: usize,
    definitions: &'a mut Vec<i16>,
    repetitions: &'a mut Vec<i16>,
}

impl Levels<'_> {
    fn read<T: DataType>(&mut self, reader: &mut ColumnReaderImpl<T>) -> Result<Vec<T::T>, ParquetError> {
        let mut values = Vec::with_capacity(self.rows);
        let mut rows = 0;
        while rows < self.rows {
            let (read, ..) = reader.read_records(
                self.rows - rows,
                Some(self.definitions),
                Some(self.repetitions),
                &mut values,
            )?;
            if read == 0 {
                return Err(ParquetError::General("a column ends before its group of rows does".into()));
            }
            rows += read;
        }
        Ok(values)
    }

    /// Like [`flat`](Self::flat), for values that are stored as they are wanted.
    fn same<T: DataType>(
        &mut self,
        reader: &mut ColumnReaderImpl<T>,
        to: &mut Vec<T::T>,
        null: T::T,
    ) -> Result<Result<(), Bad>, ParquetError> {
        let values = self.read(reader)?;
        if values.len() == self.rows {
            if to.is_empty() && to.capacity() <= self.rows {
                *to = values;
            } else {
                to.extend(values);
            }
            return Ok(Ok(()));
        }
        if self.definitions.len() != self.rows {
            return Err(ParquetError::General("a column has more values than rows".into()));
        }
        let mut values = values.into_iter();
        let most = self.descriptor.max_def_level();
        let value =
            |&level: &i16| if level == most { values.next() } else { None }.unwrap_or_else(|| null.clone());
        to.extend(self.definitions.iter().map(value));
        Ok(Ok(()))
    }

    /// Appends one value per row, converted from the stored value or from a null.
    fn flat<T: DataType, U>(
        &mut self,
        reader: &mut ColumnReaderImpl<T>,
        to: &mut Vec<U>,
        mut convert: impl FnMut(Option<&T::T>) -> Result<U, (String, &'static str)>,
    ) -> Result<Result<(), Bad>, ParquetError> {
        let values = self.read(reader)?;
        let whole = values.len() == self.rows;
        let mut values = values.iter();
        for row in 0..self.rows {
            let present = whole || self.definitions[row] == self.descriptor.max_def_level();
            match convert(if present { values.next() } else { None }) {
                Ok(value) => to.push(value),
                Err((found, expected)) => return Ok(Err((row, found, expected))),
            }
        }
        Ok(Ok(()))
    }

    /// Appends lists, all of the same length.
    fn lists<T: DataType>(
        &mut self,
        reader: &mut ColumnReaderImpl<T>,
        to: &mut Lists,
        number: impl Fn(&T::T) -> f64,
    ) -> Result<Result<(), Bad>, ParquetError> {
        let integers = !matches!(T::get_physical_type(), Physical::FLOAT | Physical::DOUBLE);
        let values = self.read(reader)?;
        let mut values = values.iter();
        let slot = self.descriptor.repeated_ancestor_def_level();
        let (mut row, mut width) = (0, 0);
        for (i, &level) in self.definitions.iter().enumerate() {
            if i > 0 && self.repetitions[i] == 0 {
                if let Err(found) = to.accept(width) {
                    return Ok(Err((row, found, LISTS)));
                }
                (row, width) = (row + 1, 0);
            }
            if level < slot {
                continue;
            }
            let value = if level == self.descriptor.max_def_level() { values.next() } else { None };
            let x = value.map_or(f64::NAN, &number);
            let fits = if integers { x.abs() <= f64::from(1 << 24) } else { (x as f32).is_finite() };
            if x.is_finite() && !fits {
                return Ok(Err((row, x.to_string(), "a number in the range of float32")));
            }
            to.values.push(x as f32);
            width += 1;
        }
        Ok(to.accept(width).map_err(|found| (row, found, LISTS)))
    }
}

const LISTS: &str = "lists of one length";

impl Lists {
    /// Checks that a list is as long as those before.
    fn accept(&mut self, width: usize) -> Result<(), String> {
        if width == 0 {
            return Err("an empty list".into());
        }
        if self.width == 0 {
            self.width = width;
        }
        if self.width == width {
            Ok(())
        } else {
            Err(format!("a list of {width} after lists of {}", self.width))
        }
    }
}
