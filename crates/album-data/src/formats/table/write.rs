//! Writing tables as Parquet, CSV or npz, by file extension.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use album_base::atomic::AtomicFile;
use album_base::text::cell;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};

use super::data::ColumnData;
use crate::NpzWriter;
use crate::error::{DataError, Place};

/// A complete table in a temporary file, moved into place by [`commit`](Self::commit).
#[must_use = "a table that is not committed leaves no file"]
pub struct TableWriter {
    place: Place,
    file: Format,
}

enum Format {
    Plain(AtomicFile),
    Npz(Box<NpzWriter>),
}

impl std::fmt::Debug for TableWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableWriter").field("place", &self.place).finish_non_exhaustive()
    }
}

impl TableWriter {
    /// Writes columns of equal length to a temporary file next to `path`, which ends in `.parquet`, `.csv` or
    /// `.npz`.
    pub fn write(path: &Path, columns: &[(String, ColumnData)]) -> Result<Self, DataError> {
        let place = Place::file(path);
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let io_error = |source| DataError::Io { place: place.clone(), source };
        let file = match extension.to_ascii_lowercase().as_str() {
            "npz" => Format::Npz(Box::new(npz(path, columns)?)),
            "csv" => {
                let file = AtomicFile::create(path).map_err(io_error)?;
                Format::Plain(csv(file, columns).map_err(io_error)?)
            }
            "parquet" => {
                let file = AtomicFile::create(path).map_err(io_error)?;
                let written = parquet(BufWriter::with_capacity(1 << 20, file), columns);
                let file = written.map_err(|e| io_error(std::io::Error::other(e.to_string())))?;
                Format::Plain(file)
            }
            _ => {
                return Err(DataError::WrongFileKind {
                    place,
                    found: format!("a name that ends in `.{}`", extension.escape_debug()),
                    expected: "a name that ends in .parquet, .csv or .npz",
                });
            }
        };
        Ok(Self { place, file })
    }

    /// Moves the file into place.
    pub fn commit(self) -> Result<(), DataError> {
        let place = self.place;
        match self.file {
            Format::Plain(file) => file.commit().map_err(|source| DataError::Io { place, source }),
            Format::Npz(npz) => npz.finish(),
        }
    }
}

fn npz(path: &Path, columns: &[(String, ColumnData)]) -> Result<NpzWriter, DataError> {
    let mut npz = NpzWriter::create(path)?;
    for (name, data) in columns {
        let rows = data.len();
        match data {
            ColumnData::Bool(v) => npz.array_bool(name, &[rows], v)?,
            ColumnData::Int(v) => npz.array_i64(name, &[rows], v)?,
            ColumnData::Float(v) => npz.array_f64(name, &[rows], v)?,
            ColumnData::Float32(v) => npz.array_f32(name, &[rows], v)?,
            ColumnData::Text(text) => {
                npz.array_text(name, text.codes.iter().map(|&code| text.categories[code as usize].as_str()))?;
            }
            ColumnData::List(lists) => npz.array_f32(name, &[rows, lists.width], &lists.values)?,
        }
    }
    Ok(npz)
}

fn csv(file: AtomicFile, columns: &[(String, ColumnData)]) -> std::io::Result<AtomicFile> {
    let mut writer = ::csv::WriterBuilder::new().buffer_capacity(1 << 20).from_writer(file);
    writer.write_record(columns.iter().map(|(name, _)| cell(name).into_owned()))?;
    for row in 0..columns.first().map_or(0, |(_, data)| data.len()) {
        for (_, data) in columns {
            match data {
                ColumnData::Text(text) => {
                    writer.write_field(&*cell(&text.categories[text.codes[row] as usize]))?;
                }
                _ => writer.write_field(data.label(row))?,
            }
        }
        writer.write_record(None::<&[u8]>)?;
    }
    writer.into_inner().map_err(|e| e.into_error())
}

fn parquet(out: BufWriter<AtomicFile>, columns: &[(String, ColumnData)]) -> Result<AtomicFile, ParquetError> {
    let fields = columns.iter().map(|(name, data)| field(name, data)).collect::<Result<Vec<_>, _>>()?;
    let schema = Arc::new(Type::group_type_builder("schema").with_fields(fields).build()?);
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
    let rows = columns.first().map_or(0, |(_, data)| data.len());
    for start in (0..rows).step_by(GROUP) {
        let end = rows.min(start + GROUP);
        let mut group = writer.next_row_group()?;
        for (_, data) in columns {
            let Some(mut column) = group.next_column()? else { break };
            match (column.untyped(), data) {
                (ColumnWriter::BoolColumnWriter(w), ColumnData::Bool(v)) => {
                    w.write_batch(&v[start..end], None, None)?
                }
                (ColumnWriter::Int64ColumnWriter(w), ColumnData::Int(v)) => {
                    w.write_batch(&v[start..end], None, None)?
                }
                (ColumnWriter::DoubleColumnWriter(w), ColumnData::Float(v)) => {
                    w.write_batch(&v[start..end], None, None)?
                }
                (ColumnWriter::FloatColumnWriter(w), ColumnData::Float32(v)) => {
                    w.write_batch(&v[start..end], None, None)?
                }
                (ColumnWriter::ByteArrayColumnWriter(w), ColumnData::Text(text)) => {
                    let labels: Vec<ByteArray> =
                        text.categories.iter().map(|label| ByteArray::from(label.as_str())).collect();
                    let codes = text.codes[start..end].iter();
                    let values: Vec<ByteArray> = codes.map(|&code| labels[code as usize].clone()).collect();
                    w.write_batch(&values, None, None)?
                }
                (ColumnWriter::FloatColumnWriter(w), ColumnData::List(lists)) => {
                    let width = lists.width;
                    let values = &lists.values[start * width..end * width];
                    let repetitions: Vec<i16> =
                        (0..values.len()).map(|i| i16::from(i % width != 0)).collect();
                    w.write_batch(values, Some(&vec![1; values.len()]), Some(&repetitions))?
                }
                _ => return Err(ParquetError::General("a column of another type than its schema".into())),
            };
            column.close()?;
        }
        group.close()?;
    }
    let mut out = writer.into_inner()?;
    out.flush()?;
    out.into_inner().map_err(|e| e.into_error().into())
}

/// Rows per row group.
const GROUP: usize = 1 << 20;

fn field(name: &str, data: &ColumnData) -> Result<TypePtr, ParquetError> {
    let leaf = |name: &str, physical: Physical, logical: Option<LogicalType>| {
        let leaf = Type::primitive_type_builder(name, physical).with_repetition(Repetition::REQUIRED);
        leaf.with_logical_type(logical).build().map(Arc::new)
    };
    match data {
        ColumnData::Bool(_) => leaf(name, Physical::BOOLEAN, None),
        ColumnData::Int(_) => leaf(name, Physical::INT64, None),
        ColumnData::Float(_) => leaf(name, Physical::DOUBLE, None),
        ColumnData::Float32(_) => leaf(name, Physical::FLOAT, None),
        ColumnData::Text(_) => leaf(name, Physical::BYTE_ARRAY, Some(LogicalType::String)),
        ColumnData::List(_) => {
            let element = leaf("element", Physical::FLOAT, None)?;
            let group = |name, repetition| Type::group_type_builder(name).with_repetition(repetition);
            let list = group("list", Repetition::REPEATED).with_fields(vec![element]).build()?;
            let whole = group(name, Repetition::REQUIRED).with_logical_type(Some(LogicalType::List));
            Ok(Arc::new(whole.with_fields(vec![Arc::new(list)]).build()?))
        }
    }
}
