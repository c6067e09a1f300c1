//! npz archives as tables: every array is a column.

use std::path::Path;

use super::data::{ColumnData, ColumnType, Lists};
use crate::error::{DataError, Place};
use crate::formats::npz::Npz;
use crate::formats::npz::array::{DType, Data};
use crate::limits::Limits;

/// An archive whose arrays all have the same number of rows.
#[derive(Debug)]
pub(super) struct NpzFile {
    place: Place,
    limits: Limits,
    columns: Vec<(String, ColumnType)>,
    rows: usize,
}

impl NpzFile {
    pub(super) fn open(path: &Path, limits: &Limits) -> Result<Self, DataError> {
        let npz = Npz::open_with(path, limits)?;
        let place = Place::file(path);
        let mut columns: Vec<(String, ColumnType)> = Vec::new();
        let mut rows = None;
        for name in npz.names() {
            let array = npz.rows(name)?;
            let [found, rest @ ..] = array.shape() else {
                columns.push((name.clone(), ColumnType::Other("a single number")));
                continue;
            };
            if *rows.get_or_insert(*found) != *found {
                let (first, expected) = (&columns[0].0, rows.unwrap_or_default());
                let problem = format!("has {found} rows, column `{first}` {expected}; expected equally many");
                return Err(DataError::Column { place, column: name.clone(), problem });
            }
            let kind = match (rest.len(), array.dtype()) {
                (1, _) if rest[0] > 0 => ColumnType::List,
                (1.., _) => ColumnType::Other("arrays"),
                (_, DType::Bool) => ColumnType::Bool,
                (_, DType::F32) => ColumnType::Float32,
                (_, DType::F64) => ColumnType::Float,
                _ => ColumnType::Int,
            };
            columns.push((name.clone(), kind));
        }
        Ok(Self { place, limits: limits.clone(), columns, rows: rows.unwrap_or(0) })
    }

    pub(super) fn columns(&self) -> &[(String, ColumnType)] {
        &self.columns
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn read(&self, column: usize) -> Result<ColumnData, DataError> {
        let (name, kind) = &self.columns[column];
        let array = Npz::open_with(&self.place.file, &self.limits)?.read(name)?;
        Ok(match (kind, array.data) {
            (ColumnType::Other(what), _) => {
                let problem = format!("holds {what}, expected flags, numbers or lists of numbers");
                return Err(DataError::Column { place: self.place.clone(), column: name.clone(), problem });
            }
            (ColumnType::Bool, Data::Bool(flags)) => ColumnData::Bool(flags),
            (ColumnType::Float, Data::F64(numbers)) => ColumnData::Float(numbers),
            (ColumnType::Float32, Data::F32(numbers)) => ColumnData::Float32(numbers),
            (ColumnType::List, data) => {
                let width = array.shape.get(1).copied().unwrap_or(1);
                let array = crate::Array { shape: array.shape, data, place: array.place };
                ColumnData::List(Lists { width, values: array.into_f32()? })
            }
            (_, data) => {
                let array = crate::Array { shape: array.shape, data, place: array.place };
                ColumnData::Int(array.into_integers()?)
            }
        })
    }
}
