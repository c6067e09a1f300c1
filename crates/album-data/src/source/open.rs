//! Which format files have, from their contents, and opening them.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{DataError, Place};
use crate::formats::columns;
use crate::formats::npz::table::ArraysTable;
use crate::limits::Limits;
use crate::source::Source;
use crate::source::table::Table;

/// What kind of files a log is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Archives of NumPy arrays.
    Npz,
    /// Folders of NumPy arrays, one file each.
    Npy,
    /// What `album data import` writes.
    Columns,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 3] = [Self::Npz, Self::Npy, Self::Columns];

    /// The name by which `--format` knows it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Npz => "npz",
            Self::Npy => "npy",
            Self::Columns => "columns",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The format of a source.
pub(crate) fn format(source: &Source) -> Result<Format, DataError> {
    Ok(files(source)?.0)
}

/// The format, and the files and folders that have it, in order.
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
            Some(format @ (Format::Npy | Format::Columns)) => one(format),
            _ => of_folder(path, said),
        };
    }
    if let Some(format) = said {
        return one(format);
    }
    match of_file(path)? {
        Some(format) => one(format),
        None => Err(unknown(path)),
    }
}

/// A folder that is one dataset, or files of one format in the order of their names.
fn of_folder(folder: &Path, said: Option<Format>) -> Result<(Format, Vec<PathBuf>), DataError> {
    if columns::is_folder(folder) && said.is_none() {
        return Ok((Format::Columns, vec![folder.to_path_buf()]));
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
    files.sort_by_key(|path| natural(path));
    let is_array = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "npy");
    if files.iter().any(is_array) && said.is_none() {
        return Ok((Format::Npy, vec![folder.to_path_buf()]));
    }
    let mut found: Option<(Format, Vec<PathBuf>)> = None;
    for path in files {
        let Some(format) = of_file(&path)? else { continue }; // a readme
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

/// Names whose numbers count as numbers: part-2 before part-10.
fn natural(path: &Path) -> (Vec<(String, u64)>, String) {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
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
    (parts, name)
}

/// The format that the first bytes of a file tell.
fn of_file(path: &Path) -> Result<Option<Format>, DataError> {
    let io_error = |source| DataError::Io { place: Place::file(path), source };
    if !std::fs::metadata(path).map_err(io_error)?.is_file() {
        return Ok(None);
    }
    let mut start = Vec::new();
    File::open(path).map_err(io_error)?.take(4096).read_to_end(&mut start).map_err(io_error)?;
    Ok(match &start[..] {
        [b'P', b'K', 3 | 5, 4 | 6, ..] => Some(Format::Npz),
        _ => None,
    })
}

fn unknown(path: &Path) -> DataError {
    let found = if path.is_dir() { "a folder without data" } else { "a file of no known format" };
    DataError::WrongFileKind {
        place: Place::file(path),
        found: found.to_owned(),
        expected: "npz, a folder of npy files or an imported folder",
    }
}

/// Opens files of a format that are read as rows.
pub(crate) fn tables(format: Format, files: &[PathBuf]) -> Result<Vec<Box<dyn Table>>, DataError> {
    let limits = Limits::default();
    let mut tables: Vec<Box<dyn Table>> = Vec::new();
    for path in files {
        tables.push(match format {
            Format::Npz | Format::Columns => Box::new(ArraysTable::npz(path, &limits)?),
            Format::Npy => Box::new(ArraysTable::folder(path, &limits)?),
        });
    }
    Ok(tables)
}
