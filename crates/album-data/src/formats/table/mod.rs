//! Tables: named, typed columns from one or more Parquet, CSV, gzipped CSV or npz files.
//!
//! ```
//! use album_data::table::{ColumnData, Table};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("log.csv");
//! std::fs::write(&path, "patient,dose,reward\na,1,0.5\na,2,-1\nb,1,0\n")?;
//! let table = Table::open(&[&path])?;
//! assert_eq!(table.names(), ["patient", "dose", "reward"]);
//!
//! let columns = table.read(&["patient", "reward"])?;
//! let ColumnData::Text(patients) = &columns[0] else { unreachable!() };
//! assert_eq!(patients.codes, [0, 0, 1]);
//! assert_eq!(*patients.categories, ["a", "b"]);
//! assert_eq!(columns[1], ColumnData::Float(vec![0.5, -1.0, 0.0]));
//!
//! let error = table.read(&["rewards"]).unwrap_err();
//! assert!(error.to_string().ends_with("no column `rewards`; did you mean `reward`?"));
//! # Ok(())
//! # }
//! ```

mod csv;
mod data;
mod npz;
mod pages;
mod parquet;
mod read;
mod write;

use std::fmt;
use std::io::Read;
use std::path::Path;

pub use data::{ColumnData, ColumnType, Lists, Text};
pub use read::Part;
pub use write::TableWriter;

use album_base::files::{self, Links};

use crate::error::{DataError, Place};
use crate::formats::file::{describe_kind, open_regular};
use crate::limits::Limits;

/// The concatenated rows of one or more files with the same columns.
pub struct Table {
    files: Vec<TableFile>,
    names: Vec<String>,
    kinds: Vec<ColumnType>,
    limits: Limits,
}

/// One file of a table.
struct TableFile {
    place: Place,
    source: Source,
    /// The index of its first row in the table.
    first: usize,
    /// The position in this file of each column of the table.
    positions: Vec<usize>,
}

enum Source {
    Csv(csv::CsvFile),
    Parquet(parquet::ParquetFile),
    Npz(npz::NpzFile),
}

impl Source {
    fn columns(&self) -> &[(String, ColumnType)] {
        match self {
            Self::Csv(file) => file.columns(),
            Self::Parquet(file) => file.columns(),
            Self::Npz(file) => file.columns(),
        }
    }

    fn rows(&self) -> usize {
        match self {
            Self::Csv(file) => file.rows().unwrap_or(0),
            Self::Parquet(file) => file.rows(),
            Self::Npz(file) => file.rows(),
        }
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("names", &self.names)
            .field("rows", &self.rows())
            .finish_non_exhaustive()
    }
}

impl Table {
    /// Opens files with the default [`Limits`].
    pub fn open<P: AsRef<Path>>(paths: &[P]) -> Result<Self, DataError> {
        Self::open_with(paths, &Limits::default())
    }

    /// Opens files with the given limits and determines column names and types, for which a CSV file is read
    /// once.
    pub fn open_with<P: AsRef<Path>>(paths: &[P], limits: &Limits) -> Result<Self, DataError> {
        let mut table =
            Self { files: Vec::new(), names: Vec::new(), kinds: Vec::new(), limits: limits.clone() };
        for path in paths {
            table.add(path.as_ref())?;
        }
        let bytes = table.rows() as u64 * 8;
        if bytes > limits.max_array_bytes || table.rows() > u32::MAX as usize {
            let place = table.place(0);
            let limit = limits.max_array_bytes.min(u64::from(u32::MAX) * 8);
            return Err(DataError::Limit { place, what: "the size of a column", found: bytes, limit });
        }
        Ok(table)
    }

    /// Opens a file; the types of a CSV file are those of its first rows. Reading fails if the rest does not fit,
    /// and [`rows`](Self::rows) is unknown.
    pub(crate) fn open_start(path: &Path) -> Result<Self, DataError> {
        let limits = Limits::default();
        let mut table =
            Self { files: Vec::new(), names: Vec::new(), kinds: Vec::new(), limits: limits.clone() };
        table.add_source(path, Source::Csv(csv::CsvFile::open_start(path, &limits)?))?;
        Ok(table)
    }

    /// Whether a file starts like a Parquet or gzip file, or has the extension `.csv`, `.tsv` or `.txt`.
    pub fn recognises(path: &Path) -> bool {
        let mut start = [0; 4];
        let read = files::open(path, Links::Follow).and_then(|mut file| file.read(&mut start));
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        matches!(read, Ok(n) if is_parquet(&start[..n]) || is_gzip(&start[..n]))
            || ["csv", "tsv", "txt"].iter().any(|known| extension.eq_ignore_ascii_case(known))
    }

    fn add(&mut self, path: &Path) -> Result<(), DataError> {
        let source = open_source(path, &self.limits)?;
        self.add_source(path, source)
    }

    fn add_source(&mut self, path: &Path, source: Source) -> Result<(), DataError> {
        let place = Place::file(path);
        let columns = source.columns();
        if self.files.is_empty() {
            self.names = columns.iter().map(|(name, _)| name.clone()).collect();
            self.kinds = columns.iter().map(|(_, kind)| *kind).collect();
            let mut sorted: Vec<&String> = self.names.iter().collect();
            sorted.sort_unstable();
            if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
                let (column, problem) = (pair[0].clone(), "is there twice, expected once".to_owned());
                return Err(DataError::Column { place, column, problem });
            }
        }
        let find = |name: &String| columns.iter().position(|(known, _)| known == name);
        let in_order = columns.iter().map(|(name, _)| name).eq(&self.names);
        let positions = if in_order {
            (0..columns.len()).collect()
        } else {
            let missing = |name: &String| DataError::NoColumn {
                place: place.clone(),
                column: name.clone(),
                available: columns.iter().map(|(name, _)| name.clone()).collect(),
            };
            self.names
                .iter()
                .map(|name| find(name).ok_or_else(|| missing(name)))
                .collect::<Result<Vec<_>, _>>()?
        };
        let mut before = self.files.iter().map(|file| &file.source);
        let all_csv = before.all(|file| matches!(file, Source::Csv(_))) && matches!(source, Source::Csv(_));
        for (i, &position) in positions.iter().enumerate() {
            let found = columns[position].1;
            self.kinds[i] = join(self.kinds[i], found, all_csv).ok_or_else(|| DataError::Column {
                place: place.clone(),
                column: self.names[i].clone(),
                problem: format!("holds {found}, in the files before {}", self.kinds[i]),
            })?;
        }
        let first = self.rows();
        self.files.push(TableFile { place, source, first, positions });
        Ok(())
    }

    /// The column names, in the order of the first file.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The column types.
    pub fn kinds(&self) -> &[ColumnType] {
        &self.kinds
    }

    /// Total number of rows.
    pub fn rows(&self) -> usize {
        self.files.last().map_or(0, |file| file.first + file.source.rows())
    }

    /// Whether the table has a column of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    /// The error for an unsuitable value; names the file and the row within it.
    pub fn bad_value(
        &self,
        name: &str,
        row: usize,
        found: impl fmt::Display,
        expected: &'static str,
    ) -> DataError {
        let file = self.file_of(row);
        DataError::Cell {
            place: Box::new(self.place(row)),
            column: name.to_owned(),
            row: format!("row {}", row - file.map_or(0, |file| file.first)),
            found: data::quoted(&found.to_string()),
            expected,
        }
    }

    /// The file that contains a row.
    pub fn place(&self, row: usize) -> Place {
        self.file_of(row).map_or_else(Place::default, |file| file.place.clone())
    }

    fn file_of(&self, row: usize) -> Option<&TableFile> {
        self.files.iter().rev().find(|file| file.first <= row)
    }

    fn find(&self, name: &str) -> Result<usize, DataError> {
        self.names.iter().position(|known| known == name).ok_or_else(|| DataError::NoColumn {
            place: self.place(0),
            column: name.to_owned(),
            available: self.names.clone(),
        })
    }
}

/// The common type of a column in two files, if there is one.
fn join(before: ColumnType, now: ColumnType, csv: bool) -> Option<ColumnType> {
    match (before, now) {
        _ if before == now => Some(before),
        (
            ColumnType::Int | ColumnType::Float | ColumnType::Float32,
            ColumnType::Int | ColumnType::Float | ColumnType::Float32,
        ) => Some(ColumnType::Float),
        _ if csv => Some(ColumnType::Text),
        _ => None,
    }
}

fn is_parquet(start: &[u8]) -> bool {
    start.starts_with(b"PAR1")
}

fn is_gzip(start: &[u8]) -> bool {
    start.starts_with(&[0x1f, 0x8b])
}

fn open_source(path: &Path, limits: &Limits) -> Result<Source, DataError> {
    let place = Place::file(path);
    let (file, _) = open_regular(path)?;
    let mut start = Vec::new();
    file.take(8).read_to_end(&mut start).map_err(|source| DataError::Io { place: place.clone(), source })?;
    if is_parquet(&start) {
        return Ok(Source::Parquet(parquet::ParquetFile::open(path, limits)?));
    }
    if start.starts_with(b"PK\x03\x04") || start.starts_with(b"PK\x05\x06") {
        return Ok(Source::Npz(npz::NpzFile::open(path, limits)?));
    }
    let binary = start.is_empty() || start.first().is_some_and(|&byte| byte >= 0x80 && byte != 0xef);
    if binary && !is_gzip(&start) {
        return Err(DataError::WrongFileKind {
            place,
            found: describe_kind(&start),
            expected: "a table: Parquet, CSV, gzipped CSV or npz",
        });
    }
    Ok(Source::Csv(csv::CsvFile::open(path, limits)?))
}
