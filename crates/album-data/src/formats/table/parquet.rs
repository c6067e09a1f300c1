//! Parquet files, column chunk by column chunk.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::column::page::PageReader;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetStatisticsPolicy;
use parquet::file::reader::{ChunkReader, FileReader, Length};
use parquet::file::serialized_reader::{ReadOptionsBuilder, SerializedFileReader};
use parquet::schema::types::{ColumnDescriptor, Type as SchemaType};

use super::data::{ColumnData, Dictionary, Kind};
use super::pages::Guard;
use crate::error::{DataError, Place};
use crate::formats::file::open_regular;
use crate::formats::npz::read_at;
use crate::limits::Limits;

/// An open file.
pub(super) struct ParquetFile {
    reader: SerializedFileReader<Positioned>,
    place: Place,
    limits: Limits,
    columns: Vec<(String, Kind)>,
    /// Rows of each row group.
    groups: Vec<usize>,
}

impl ParquetFile {
    pub(super) fn open(path: &Path, limits: &Limits) -> Result<Self, DataError> {
        let place = Place::file(path);
        let (file, size) = open_regular(path)?;
        check_footer(&file, size, &place)?;
        let options = ReadOptionsBuilder::new()
            .with_column_stats_policy(ParquetStatisticsPolicy::SkipAll)
            .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll)
            .build();
        let positioned = Positioned { file: Arc::new(file), size };
        let reader = guarded(&place, || SerializedFileReader::new_with_options(positioned, options))?;
        let metadata = reader.metadata();
        let schema = metadata.file_metadata().schema_descr();
        limit(&place, "the number of columns", schema.num_columns() as u64, limits.max_columns)?;
        let columns: Vec<(String, Kind)> =
            schema.columns().iter().map(|c| (name(schema.root_schema(), c), kind(c))).collect();
        let groups = metadata
            .row_groups()
            .iter()
            .map(|group| {
                usize::try_from(group.num_rows()).map_err(|_| damaged(&place, "a negative number of rows"))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let rows = groups.iter().try_fold(0u64, |sum, &rows| sum.checked_add(rows as u64));
        let rows = rows.ok_or_else(|| damaged(&place, "more rows than can be counted"))?;
        limit(&place, "the number of rows", rows, limits.max_array_bytes / 8)?;
        Ok(Self { reader, place, limits: limits.clone(), columns, groups })
    }

    pub(super) fn columns(&self) -> &[(String, Kind)] {
        &self.columns
    }

    pub(super) fn rows(&self) -> usize {
        self.groups.iter().sum()
    }

    /// Rows of each row group.
    pub(super) fn groups(&self) -> &[usize] {
        &self.groups
    }

    /// Starts to read one column of one row group.
    pub(super) fn chunk(&self, group: usize, column: usize) -> Result<Chunk<'_>, DataError> {
        let (name, kind) = &self.columns[column];
        if let Kind::Other(what) = kind {
            return Err(DataError::Column {
                place: self.place.clone(),
                column: name.clone(),
                problem: format!("holds {what}, expected flags, numbers, text or lists of numbers"),
            });
        }
        let metadata = self.reader.metadata().row_group(group).column(column);
        let rows = self.groups[group];
        let dictionary = metadata.dictionary_page_offset().unwrap_or(0);
        if metadata.data_page_offset().min(metadata.compressed_size()).min(dictionary) < 0 {
            return Err(damaged(&self.place, format!("column `{name}` starts or ends before the file")));
        }
        let values = u64::try_from(metadata.num_values()).unwrap_or(0);
        if *kind != Kind::List && values != rows as u64 {
            let problem = format!("column `{name}` has {values} values in a group of {rows} rows");
            return Err(damaged(&self.place, problem));
        }
        limit(&self.place, "the size of a column", values.saturating_mul(8), self.limits.max_array_bytes)?;
        let inflated = u64::try_from(metadata.uncompressed_size()).unwrap_or(u64::MAX);
        let inflated = inflated.max(self.limits.ratio_free_bytes);
        let reader = guarded(&self.place, || {
            let pages = self.reader.get_row_group(group)?.get_column_page_reader(column)?;
            let pages = Box::new(Guard::new(pages, values, inflated)) as Box<dyn PageReader>;
            Ok(get_column_reader(metadata.column_descr_ptr(), pages))
        })?;
        Ok(Chunk {
            file: self,
            reader,
            column,
            descriptor: metadata.column_descr_ptr(),
            row: self.groups[..group].iter().sum(),
            definitions: Vec::new(),
            repetitions: Vec::new(),
        })
    }
}

/// One column of one row group while it is read.
pub(super) struct Chunk<'a> {
    file: &'a ParquetFile,
    reader: ColumnReader,
    column: usize,
    descriptor: Arc<ColumnDescriptor>,
    /// The next row, counted in the whole file.
    row: usize,
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
}

/// What is wrong with a value: its row from the start of the portion, what was found and what was expected.
type Bad = (usize, String, &'static str);

const INTEGER: &str = "an integer within the range of int64";

impl Chunk<'_> {
    /// Appends the next `rows` rows.
    pub(super) fn read(
        &mut self,
        rows: usize,
        into: &mut ColumnData,
        dictionary: &mut Dictionary,
    ) -> Result<(), DataError> {
        let mut left = rows;
        while left > 0 {
            let portion = left.min(PORTION); // the crate's buffers stay small
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
                (R::FloatColumnReader(r), ColumnData::Float32(v)) => {
                    levels.flat(r, v, |x| Ok(x.copied().unwrap_or(f32::NAN)))?
                }
                (R::DoubleColumnReader(r), ColumnData::Float(v)) => {
                    levels.flat(r, v, |x| Ok(x.copied().unwrap_or(f64::NAN)))?
                }
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

/// Rows that are decoded at once.
const PORTION: usize = 1 << 14;

/// The nesting of a portion's values.
struct Levels<'a> {
    descriptor: &'a ColumnDescriptor,
    rows: usize,
    definitions: &'a mut Vec<i16>,
    repetitions: &'a mut Vec<i16>,
}

impl Levels<'_> {
    fn read<T: DataType>(&mut self, reader: &mut ColumnReaderImpl<T>) -> Result<Vec<T::T>, ParquetError> {
        let mut values = Vec::new();
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

    /// Appends one value a row, made of what is there or of nothing.
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
            let there = whole || self.definitions[row] == self.descriptor.max_def_level();
            match convert(if there { values.next() } else { None }) {
                Ok(value) => to.push(value),
                Err((found, expected)) => return Ok(Err((row, found, expected))),
            }
        }
        Ok(Ok(()))
    }

    /// Appends the lists, all of one length.
    fn lists<T: DataType>(
        &mut self,
        reader: &mut ColumnReaderImpl<T>,
        to: &mut super::data::Lists,
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

impl super::data::Lists {
    /// Checks the length of a row's list.
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

/// A column's name: the path to it without the parts that only make it a list.
fn name(root: &SchemaType, column: &ColumnDescriptor) -> String {
    let parts = column.path().parts();
    if column.max_rep_level() == 0 {
        return parts.join(".");
    }
    let mut node = root;
    for (i, part) in parts.iter().enumerate() {
        let is_list = node.get_basic_info().converted_type() == ConvertedType::LIST;
        let fields = if node.is_group() { node.get_fields() } else { &[] };
        let Some(field) = fields.iter().find(|field| field.name() == part) else { break };
        let info = field.get_basic_info();
        if info.has_repetition() && info.repetition() == Repetition::REPEATED {
            let own = if field.is_group() || is_list { i } else { i + 1 };
            let rest = parts.get(i + 2..).unwrap_or_default();
            return [&parts[..own], rest].concat().join(".");
        }
        node = field;
    }
    parts.join(".")
}

fn kind(column: &ColumnDescriptor) -> Kind {
    let scalar = match column.physical_type() {
        Physical::BOOLEAN => Kind::Bool,
        Physical::INT32 | Physical::INT64 if decimal(column).is_some() => Kind::Float,
        Physical::INT32 | Physical::INT64 | Physical::INT96 => Kind::Int,
        Physical::FLOAT => Kind::Float32,
        Physical::DOUBLE => Kind::Float,
        Physical::BYTE_ARRAY if decimal(column).is_some() => Kind::Other("decimals of any length"),
        Physical::BYTE_ARRAY => Kind::Text,
        Physical::FIXED_LEN_BYTE_ARRAY => Kind::Other("bytes of fixed length"),
    };
    match (column.max_rep_level(), scalar) {
        (0, scalar) => scalar,
        (1, Kind::Text) => Kind::Other("lists of text"),
        (1, Kind::Other(what)) => Kind::Other(what),
        (1, _) if decimal(column).is_some() => Kind::Other("lists of decimals"),
        (1, _) => Kind::List,
        _ => Kind::Other("lists of lists"),
    }
}

/// Digits after the point of a decimal number.
fn decimal(column: &ColumnDescriptor) -> Option<i32> {
    let is_decimal = matches!(column.logical_type_ref(), Some(LogicalType::Decimal(_)))
        || column.converted_type() == ConvertedType::DECIMAL;
    is_decimal.then(|| column.type_scale())
}

fn is_unsigned(column: &ColumnDescriptor) -> bool {
    use ConvertedType::{UINT_8, UINT_16, UINT_32, UINT_64};
    matches!(column.converted_type(), UINT_8 | UINT_16 | UINT_32 | UINT_64)
        || matches!(column.logical_type_ref(), Some(LogicalType::Integer(int)) if !int.is_signed)
}

/// Refuses a table of contents that is not there or larger than allowed, before it is parsed.
fn check_footer(file: &File, size: u64, place: &Place) -> Result<(), DataError> {
    let mut tail = [0; 8];
    let io_error = |source| DataError::Io { place: place.clone(), source };
    if size < 12 {
        return Err(damaged(place, format!("it has {size} bytes; the file is cut off")));
    }
    let n = read_at(file, &mut tail, size - 8).map_err(io_error)?;
    if n < 8 || !matches!(&tail[4..], b"PAR1" | b"PARE") {
        return Err(damaged(place, "its end is missing; the file is cut off or still being written"));
    }
    let footer = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
    if footer > size - 8 {
        return Err(damaged(place, format!("its table of contents claims {footer} of {size} bytes")));
    }
    limit(place, "the size of the table of contents", footer, MAX_FOOTER)
}

/// A row group of 1,000 columns takes about 100 kB.
const MAX_FOOTER: u64 = 256 << 20;

fn limit(place: &Place, what: &'static str, found: u64, limit: u64) -> Result<(), DataError> {
    if found <= limit { Ok(()) } else { Err(DataError::Limit { place: place.clone(), what, found, limit }) }
}

fn damaged(place: &Place, problem: impl Into<String>) -> DataError {
    DataError::DamagedTable { place: place.clone(), format: "Parquet", problem: problem.into() }
}

/// Runs the parquet crate on bytes that may be hostile: it reports most faults and panics at some.
fn guarded<T>(place: &Place, work: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, DataError> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(e)) => Err(damaged(place, e.to_string())),
        Err(_) => Err(damaged(place, "its pages contradict each other")),
    }
}

/// A file that several threads read at once.
struct Positioned {
    file: Arc<File>,
    size: u64,
}

impl Length for Positioned {
    fn len(&self) -> u64 {
        self.size
    }
}

impl ChunkReader for Positioned {
    type T = BufReader<Range>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(BufReader::new(Range { file: Arc::clone(&self.file), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        if start.checked_add(length as u64).is_none_or(|end| end > self.size) {
            return Err(ParquetError::EOF(format!("it claims {length} bytes at {start}, beyond its end")));
        }
        let mut bytes = vec![0; length];
        Range { file: Arc::clone(&self.file), at: start }.read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

/// A file from some place on.
pub(super) struct Range {
    file: Arc<File>,
    at: u64,
}

impl Read for Range {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = read_at(&self.file, buffer, self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}
