//! A file or folder with a dataset, opened once.

use std::path::Path;

use crate::error::{DataError, Place};
use crate::formats::columns::Folder;
use crate::formats::npz::Npz;
use crate::formats::npz::row_reader::RowReader;
use crate::limits::Limits;

/// The source of a dataset's arrays.
pub(crate) enum Arrays {
    Npz(Npz),
    Folder(Folder),
}

/// What a row of the arrays represents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowKind {
    /// A state: an episode of T transitions has T + 1 rows, as in OGBench's files.
    State,
    /// A transition, as in most replay buffers.
    Transition,
}

impl Arrays {
    pub fn open(path: &Path) -> Result<Self, DataError> {
        Self::open_with(path, &Limits::default())
    }

    pub fn open_with(path: &Path, limits: &Limits) -> Result<Self, DataError> {
        if path.is_dir() {
            Folder::open(path).map(Self::Folder)
        } else {
            Npz::open_with(path, limits).map(Self::Npz)
        }
    }

    pub fn place(&self) -> Place {
        match self {
            Self::Npz(npz) => npz.place().clone(),
            Self::Folder(folder) => folder.place(),
        }
    }

    pub fn names(&self) -> Vec<&str> {
        match self {
            Self::Npz(npz) => npz.names().iter().map(String::as_str).collect(),
            Self::Folder(folder) => folder.names().collect(),
        }
    }

    pub fn contains(&self, name: &str) -> bool {
        self.names().contains(&name)
    }

    /// Starts reading an array row by row; reads only its header.
    pub fn array(&self, name: &str) -> Result<RowReader<'_>, DataError> {
        match self {
            Self::Npz(npz) => npz.rows(name),
            Self::Folder(folder) => folder.rows(name),
        }
    }

    pub fn row_kind(&self) -> RowKind {
        let transitions = self.contains("next_observations") || self.contains("timeouts");
        if transitions { RowKind::Transition } else { RowKind::State }
    }

    /// Number of rows, which is the length of `terminals`.
    pub fn rows(&self) -> Result<usize, DataError> {
        match self {
            Self::Npz(_) => Ok(self.flags("terminals")?.shape()[0]),
            Self::Folder(folder) => Ok(folder.episodes()?.rows()),
        }
    }

    /// An array with one flag per row.
    pub fn flags(&self, name: &str) -> Result<RowReader<'_>, DataError> {
        let reader = self.array(name)?;
        match reader.shape() {
            [_] => Ok(reader),
            _ => Err(reader.wrong_shape("one flag per row".to_owned())),
        }
    }

    /// Reads all of [`flags`](Self::flags).
    pub fn read_flags(&self, name: &str) -> Result<Vec<bool>, DataError> {
        let mut reader = self.flags(name)?;
        let count = reader.shape()[0];
        let mut flags = reserve(count, reader.place())?;
        while flags.len() < count {
            flags.extend(reader.bools(reader.chunk_rows().min(count - flags.len()))?);
        }
        reader.finish()?;
        Ok(flags)
    }

    /// A matrix with this many rows and at least this many columns.
    pub fn matrix(&self, name: &str, rows: usize, columns: usize) -> Result<RowReader<'_>, DataError> {
        let reader = self.array(name)?;
        let least = columns.max(1);
        match reader.shape()[..] {
            [found, width] if found == rows && width >= least => Ok(reader),
            _ => {
                let expected = format!("[{rows}, at least {least}], since there are {rows} `terminals`");
                Err(reader.wrong_shape(expected))
            }
        }
    }

    /// An array with one number per row.
    pub fn numbers(&self, name: &str, rows: usize) -> Result<RowReader<'_>, DataError> {
        let reader = self.array(name)?;
        match reader.shape()[..] {
            [found] | [found, 1] if found == rows => Ok(reader),
            _ => Err(reader.wrong_shape(format!("[{rows}], since there are {rows} `terminals`"))),
        }
    }
}

/// Reserves memory for exactly this many elements.
pub(crate) fn reserve<T>(count: usize, place: &Place) -> Result<Vec<T>, DataError> {
    let mut all = Vec::new();
    match all.try_reserve_exact(count) {
        Ok(()) => Ok(all),
        Err(_) => Err(DataError::Memory { place: place.clone(), bytes: (count * size_of::<T>()) as u64 }),
    }
}
