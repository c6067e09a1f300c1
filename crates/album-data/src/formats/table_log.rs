//! Parquet and CSV files as logs: one row per step; a column holds numbers or lists of numbers.

use std::path::Path;

use crate::error::{DataError, Place};
use crate::formats::table::{ColumnData, ColumnType, Table};
use crate::source::log::{Facts, Field, FieldType, LogFile, MAX_WIDTH, Part, Stop, Values, Visit, part_rows};

pub(crate) struct TableLog {
    table: Table,
    place: Place,
    fields: Vec<Field>,
    warnings: Vec<String>,
}

impl TableLog {
    pub fn open(path: &Path) -> Result<Self, DataError> {
        Self::new(path, Table::open(&[path])?)
    }

    /// Opens a CSV file with the types of its first rows; reading fails if the rest does not fit.
    pub fn open_start(path: &Path) -> Result<Self, DataError> {
        Self::new(path, Table::open_start(path)?)
    }

    fn new(path: &Path, table: Table) -> Result<Self, DataError> {
        let lists: Vec<&str> = table
            .names()
            .iter()
            .zip(table.kinds())
            .filter(|(_, kind)| **kind == ColumnType::List)
            .map(|(name, _)| name.as_str())
            .collect();
        let widths = widths(&table, &lists)?;
        let (mut fields, mut warnings) = (Vec::new(), Vec::new());
        for (name, kind) in table.names().iter().zip(table.kinds()) {
            let (kind, width) = match kind {
                ColumnType::Bool => (FieldType::Bool, 1),
                ColumnType::Int => (FieldType::Integer, 1),
                ColumnType::Float | ColumnType::Float32 => (FieldType::Float, 1),
                ColumnType::Text => (FieldType::Text, 1),
                ColumnType::List => {
                    let width = lists.iter().position(|list| list == name).map_or(0, |i| widths[i]);
                    (FieldType::Float, width)
                }
                ColumnType::Other(what) => {
                    warnings.push(format!("column `{}` is not read: it holds {what}", name.escape_debug()));
                    continue;
                }
            };
            if width > MAX_WIDTH {
                let (what, found, limit) = ("the length of a list", width as u64, MAX_WIDTH as u64);
                return Err(DataError::Limit { place: Place::file(path), what, found, limit });
            }
            if width > 0 {
                fields.push(Field::new(name.clone(), kind, width));
            }
        }
        Ok(Self { table, place: Place::file(path), fields, warnings })
    }
}

/// The lengths of list columns, taken from the first row.
fn widths(table: &Table, names: &[&str]) -> Result<Vec<usize>, DataError> {
    let mut widths = vec![0; names.len()];
    let seen = |part: crate::formats::table::Part| {
        for (width, column) in widths.iter_mut().zip(&part.columns) {
            if let ColumnData::List(lists) = column {
                *width = lists.width;
            }
        }
        Err(Stop::Enough)
    };
    match table.visit(names, 1, seen) {
        Ok(()) | Err(Stop::Enough) => Ok(widths),
        Err(Stop::Data(error) | Stop::Unsorted(error)) => Err(error),
    }
}

impl LogFile for TableLog {
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
        let names: Vec<&str> = fields.iter().map(|&i| self.fields[i].name.as_str()).collect();
        let row_bytes = fields.iter().map(|&i| 8 * self.fields[i].width).sum();
        self.table.visit(&names, part_rows(row_bytes), |part| {
            let rows = part.columns.first().map_or(0, ColumnData::len);
            let columns = part.columns.into_iter().map(values).collect();
            each(Part { first_row: part.first, rows, columns })
        })
    }
}

fn values(column: ColumnData) -> Values {
    match column {
        ColumnData::Bool(v) => Values::Bool(v),
        ColumnData::Int(v) => Values::I64(v),
        ColumnData::Float(v) => Values::F64(v),
        ColumnData::Float32(v) => Values::F32(v),
        ColumnData::Text(text) => Values::Text(text),
        ColumnData::List(lists) => Values::F32(lists.values),
    }
}
