//! Format detection from file contents, and opening files.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use album_base::files::{self, Links};

use crate::error::{DataError, Place};
use crate::formats::file::describe_kind;
use crate::formats::hdf5::flat::FlatTable;
use crate::formats::hdf5::{self, groups};
use crate::formats::npz::log::ArraysTable;
use crate::formats::table_log::TableLog;
use crate::formats::{columns, lerobot, minari};
use crate::limits::Limits;
use crate::source::Source;
use crate::source::log::{Facts, LogFile};

/// The file format of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// NumPy archives.
    Npz,
    /// Folders of npy files, one per array.
    Npy,
    /// Folders written by `album data import`.
    Columns,
    /// HDF5 files whose arrays span all episodes.
    D4rl,
    /// HDF5 files with groups `data/demo_N`.
    Robomimic,
    /// Minari datasets, as HDF5 or Parquet folders or as single HDF5 files.
    Minari,
    /// Parquet tables; columns may be lists.
    Parquet,
    /// CSV tables, plain or gzipped.
    Csv,
    /// LeRobot v3 folders.
    Lerobot,
    /// Arrays in memory.
    Memory,
}

impl Format {
    /// All file formats.
    pub const ALL: [Self; 9] = [
        Self::Npz,
        Self::Npy,
        Self::Columns,
        Self::D4rl,
        Self::Robomimic,
        Self::Minari,
        Self::Parquet,
        Self::Csv,
        Self::Lerobot,
    ];

    /// The name accepted by `--format`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Npz => "npz",
            Self::Npy => "npy",
            Self::Columns => "columns",
            Self::D4rl => "d4rl",
            Self::Robomimic => "robomimic",
            Self::Minari => "minari",
            Self::Parquet => "parquet",
            Self::Csv => "csv",
            Self::Lerobot => "lerobot",
            Self::Memory => "memory",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The common format, and the files and folders to read, in order.
pub(crate) fn files(source: &Source) -> Result<(Format, Vec<PathBuf>), DataError> {
    let mut all: Vec<PathBuf> = Vec::new();
    let mut known: Option<(Format, PathBuf)> = None;
    for path in &source.paths {
        let (format, files) = of_path(path, source.format)?;
        match &known {
            Some((first, place)) if *first != format => {
                return Err(DataError::Columns {
                    place: Place::file(path),
                    problem: format!("found {format}, expected {first} as in {}", place.display()),
                });
            }
            _ => known = Some((format, path.clone())),
        }
        all.extend(files);
    }
    match known {
        Some((format, _)) => Ok((format, all)),
        None => Err(DataError::NoTransitions { place: Place::default() }),
    }
}

fn of_path(path: &Path, said: Option<Format>) -> Result<(Format, Vec<PathBuf>), DataError> {
    let one = |format: Format| Ok((format, vec![path.to_path_buf()]));
    if path.is_dir() {
        return match said {
            Some(format @ (Format::Npy | Format::Columns | Format::Minari)) => one(format),
            Some(Format::Lerobot) => Ok((Format::Lerobot, lerobot::tables(path)?)),
            _ => of_folder(path, said),
        };
    }
    if !path.exists()
        && said.is_none_or(|said| said == Format::Minari)
        && let Some(folder) = minari::cached(path)
    {
        return Ok((Format::Minari, vec![folder]));
    }
    if let Some(format) = said {
        return one(format);
    }
    match of_file(path)? {
        Some(format) => one(format),
        None => Err(unknown(path)),
    }
}

/// Resolves a folder: either it is itself a dataset, or it holds files of one format, which are sorted by
/// name.
fn of_folder(folder: &Path, said: Option<Format>) -> Result<(Format, Vec<PathBuf>), DataError> {
    if columns::is_folder(folder) && said.is_none() {
        return Ok((Format::Columns, vec![folder.to_path_buf()]));
    }
    if minari::data_folder(folder).is_some() && said.is_none() {
        return Ok((Format::Minari, vec![folder.to_path_buf()]));
    }
    if lerobot::is_dataset(folder) && said.is_none() {
        return Ok((Format::Lerobot, lerobot::tables(folder)?));
    }
    let io_error = |source| DataError::Io { place: Place::file(folder), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(io_error)? {
        let path = entry.map_err(io_error)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_file() && !name.starts_with(['.', '_']) && !name.ends_with("-val.npz") {
            files.push(path);
        }
    }
    files.sort_by_cached_key(|path| natural(&path.file_name().unwrap_or_default().to_string_lossy()));
    let is_array = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "npy");
    if files.iter().any(is_array) && said.is_none() {
        return Ok((Format::Npy, vec![folder.to_path_buf()]));
    }
    let mut found: Option<(Format, Vec<PathBuf>)> = None;
    for path in files {
        let Some(format) = of_file(&path)? else { continue }; // not data, such as a readme
        match &mut found {
            _ if said.is_some_and(|said| said != format) => {}
            None => found = Some((format, vec![path])),
            Some((first, all)) if *first == format => all.push(path),
            Some((first, all)) => {
                let problem = format!(
                    "found {format} beside {first} ({}), expected files of one format; choose with --format",
                    all[0].display()
                );
                return Err(DataError::Columns { place: Place::file(&path), problem });
            }
        }
    }
    found.ok_or_else(|| unknown(folder))
}

/// Sort key for natural order: `part-2` before `part-10`.
pub(crate) fn natural(name: &str) -> (Vec<(String, u64)>, String) {
    let (mut parts, mut text, mut digits) = (Vec::new(), String::new(), String::new());
    for c in name.chars().chain([' ']) {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        if !digits.is_empty() {
            parts.push((std::mem::take(&mut text), digits.parse().unwrap_or(u64::MAX)));
            digits.clear();
        }
        text.push(c);
    }
    parts.push((text, 0));
    (parts, name.to_owned())
}

/// Detects the format from the first bytes of a file.
fn of_file(path: &Path) -> Result<Option<Format>, DataError> {
    let io_error = |source| DataError::Io { place: Place::file(path), source };
    if !std::fs::metadata(path).map_err(io_error)?.is_file() {
        return Ok(None);
    }
    let mut start = Vec::new();
    files::open(path, Links::Follow)
        .and_then(|file| file.take(4096).read_to_end(&mut start))
        .map_err(io_error)?;
    Ok(match &start[..] {
        [b'P', b'K', 3 | 5, 4 | 6, ..] => Some(Format::Npz),
        [0x89, b'H', b'D', b'F', ..] => hdf5::layout(path)?.map(|layout| match layout {
            hdf5::Layout::Flat => Format::D4rl,
            hdf5::Layout::Robomimic => Format::Robomimic,
            hdf5::Layout::Minari => Format::Minari,
        }),
        [b'P', b'A', b'R', b'1', ..] => Some(Format::Parquet),
        [0x1f, 0x8b, ..] => Some(Format::Csv),
        text if looks_like_a_table(text) => Some(Format::Csv),
        _ => None,
    })
}

/// Whether this is text with several cells in its first line.
fn looks_like_a_table(start: &[u8]) -> bool {
    let text = match std::str::from_utf8(start) {
        Ok(text) => text,
        // The buffer ends inside a multi-byte character.
        Err(e) if e.error_len().is_none() => {
            std::str::from_utf8(&start[..e.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    let mut lines = text.lines();
    let header = lines.next().unwrap_or_default();
    let delimiter = [',', '\t', ';'].into_iter().find(|&d| header.contains(d));
    let printable = |c: char| !c.is_control() || c.is_whitespace();
    delimiter.is_some_and(|d| lines.next().is_some_and(|line| line.contains(d)) || text.len() >= 4096)
        && text.chars().all(printable)
        && !text.trim_start().starts_with(['{', '['])
}

/// What keeps a file whose first line looks like a table's from being one.
fn no_table(start: &[u8]) -> Option<String> {
    let line = start.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let header = std::str::from_utf8(line).ok()?;
    if !header.contains([',', '\t', ';']) || header.starts_with(['{', '[']) {
        return None;
    }
    if start.contains(&0) {
        return Some("a table with zero bytes in it".to_owned());
    }
    match std::str::from_utf8(start) {
        Err(e) if e.error_len().is_some() => {
            let (at, byte) = (e.valid_up_to(), start[e.valid_up_to()]);
            Some(format!("a table that is not UTF-8 (byte {byte:#04x} at {at}); save it as UTF-8"))
        }
        _ if header.len() + 1 >= start.len() => {
            Some("a line of column names without rows below it".to_owned())
        }
        _ => None,
    }
}

fn unknown(path: &Path) -> DataError {
    let mut start = Vec::new();
    let found = match files::open(path, Links::Follow).map(|file| file.take(4096).read_to_end(&mut start)) {
        Ok(Ok(_)) => no_table(&start).unwrap_or_else(|| describe_kind(&start)),
        _ if path.is_dir() => "a folder without data".to_owned(),
        _ => "no regular file".to_owned(),
    };
    DataError::WrongFileKind {
        place: Place::file(path),
        found,
        expected: "npz, npy, HDF5 (D4RL, robomimic, Minari), Parquet, CSV, a Minari or LeRobot dataset, or an imported folder; \
                   --format names one",
    }
}

/// Where the column types of a CSV file come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Types {
    /// From its first rows, which saves a pass over the file. Reading fails if the rest does not fit.
    OfStart,
    /// From all rows.
    OfWhole,
}

/// Calls `read` with the types of a file's start. Whatever goes wrong, `read` is called again with the types of the
/// whole file and judges by those; only CSV files make a difference.
pub(crate) fn by_types<T>(
    format: Format,
    mut read: impl FnMut(Types) -> Result<T, DataError>,
) -> Result<T, DataError> {
    if format == Format::Csv
        && let Ok(done) = read(Types::OfStart)
    {
        return Ok(done);
    }
    read(Types::OfWhole)
}

/// Opens files of any format that is read row by row.
pub(crate) fn tables(
    format: Format,
    files: &[PathBuf],
    types: Types,
) -> Result<Vec<Box<dyn LogFile>>, DataError> {
    let limits = Limits::default();
    let mut tables: Vec<Box<dyn LogFile>> = Vec::new();
    for path in files {
        tables.push(match format {
            Format::Npz | Format::Columns => Box::new(ArraysTable::npz(path, &limits)?),
            Format::Npy => Box::new(ArraysTable::folder(path, &limits)?),
            Format::D4rl => Box::new(FlatTable::open(path)?),
            Format::Robomimic => Box::new(groups::table(path, Some("data"), "demo_", Facts::default())?),
            Format::Minari if path.is_dir() => minari::open(path)?,
            Format::Minari => Box::new(groups::table(path, None, "episode_", Facts::default())?),
            Format::Csv if types == Types::OfStart => Box::new(TableLog::open_start(path)?),
            Format::Parquet | Format::Lerobot | Format::Csv => Box::new(TableLog::open(path)?),
            Format::Memory => return Err(unknown(path)),
        });
    }
    Ok(tables)
}
