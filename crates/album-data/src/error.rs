//! Errors of files, phrased so that their owner can fix them.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use album_base::{files, suggest};

/// The file, and the array within an archive, that an error refers to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// The file as named by the caller; empty for arrays in memory.
    pub file: PathBuf,
    /// The array's name in the archive, without `.npy`.
    pub key: Option<String>,
}

impl Place {
    /// A whole file.
    pub fn file(file: &Path) -> Self {
        Self { file: file.to_path_buf(), key: None }
    }

    /// One array of this file.
    pub fn array(&self, key: &str) -> Self {
        Self { file: self.file.clone(), key: Some(key.to_owned()) }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.file.as_os_str().is_empty() {
            f.write_str("array in memory")?;
        } else {
            write!(f, "{}", self.file.display())?;
        }
        match &self.key {
            // Names come from the file: escape anything that could disturb a terminal.
            Some(key) => write!(f, ": array `{}`", key.escape_debug()),
            None => Ok(()),
        }
    }
}

impl DataError {
    /// Whether the system failed, rather than the file being invalid.
    pub fn is_io(&self) -> bool {
        matches!(self, DataError::Io { source, .. } if !files::is_wrong_kind(source))
    }
}

/// Why a file was refused.
///
/// Every message names the file and, if applicable, the array and the row.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The operating system failed to open, read or write.
    #[error("{place}: {source}")]
    Io {
        /// The file.
        place: Place,
        /// The system's error.
        source: io::Error,
    },

    /// The file is of another kind than expected.
    #[error("{place}: found {found}, expected {expected}")]
    WrongFileKind {
        /// The file.
        place: Place,
        /// What the first bytes look like.
        found: String,
        /// The expected kind.
        expected: &'static str,
    },

    /// The archive's own records are truncated or inconsistent.
    #[error("{place}: damaged archive: {problem}")]
    DamagedArchive {
        /// The file, or the array whose record is wrong.
        place: Place,
        /// What was found and what was expected.
        problem: String,
    },

    /// An archive entry has a name that no plain array has.
    #[error(
        "{place}: entry `{}` {problem}; expected a plain array name such as `actions.npy`",
        .name.escape_debug()
    )]
    EntryName {
        /// The file.
        place: Place,
        /// The full name of the entry.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },

    /// Two archive entries have the same name.
    #[error("{place}: the archive holds this name twice, expected once")]
    DuplicateName {
        /// The array.
        place: Place,
    },

    /// Two archive entries share bytes, which no valid writer produces.
    #[error("{place}: its bytes overlap {other}, expected separate entries")]
    Overlap {
        /// The array.
        place: Place,
        /// What it overlaps.
        other: String,
    },

    /// The entry is encrypted.
    #[error("{place}: the entry is encrypted, expected a plain one; save it without a password")]
    Encrypted {
        /// The array.
        place: Place,
    },

    /// The entry uses a compression method that NumPy never uses.
    #[error(
        "{place}: zip compression method {method} is not supported, expected 0 (stored) or \
         8 (deflate), as np.savez and np.savez_compressed write"
    )]
    Compression {
        /// The array.
        place: Place,
        /// The number of the method in the zip format.
        method: u16,
    },

    /// Something is larger than [`Limits`](crate::Limits) allow.
    #[error("{place}: {what} is {found}, but the limit is {limit}")]
    Limit {
        /// The file or the array.
        place: Place,
        /// The quantity.
        what: &'static str,
        /// Its size in the file.
        found: u64,
        /// The limit.
        limit: u64,
    },

    /// The array header is not one that NumPy writes.
    #[error("{place}: bad npy header: {problem}")]
    Header {
        /// The array.
        place: Place,
        /// What was found and what was expected.
        problem: String,
    },

    /// The element type is not supported.
    #[error("{place}: dtype {descr} {problem}")]
    Dtype {
        /// The array.
        place: Place,
        /// The type as written in the file.
        descr: String,
        /// Why it is refused and what to save instead.
        problem: String,
    },

    /// The data is shorter or longer than the shape requires.
    #[error("{place}: found {found} bytes, expected {expected} for shape {shape:?}")]
    Length {
        /// The array.
        place: Place,
        /// The shape in the header.
        shape: Vec<usize>,
        /// Number of bytes after the header.
        found: u64,
        /// Number of bytes that the shape requires.
        expected: u64,
    },

    /// The compressed data cannot be inflated.
    #[error("{place}: damaged compressed data: {problem}")]
    DamagedData {
        /// The array.
        place: Place,
        /// What is wrong.
        problem: String,
    },

    /// The data differs from what was written.
    #[error("{place}: CRC-32 of the data is {found:08x}, expected {expected:08x}: file damaged")]
    Checksum {
        /// The array.
        place: Place,
        /// The checksum of the bytes read.
        found: u32,
        /// The checksum in the archive's record.
        expected: u32,
    },

    /// There is not enough memory for the array.
    #[error("{place}: not enough memory for {bytes} bytes")]
    Memory {
        /// The array.
        place: Place,
        /// The size of the array.
        bytes: u64,
    },

    /// The archive has no such array.
    #[error("{place}: not in the archive, which holds {}{}", list(.available), near(.place, .available))]
    Missing {
        /// The requested array.
        place: Place,
        /// The available arrays.
        available: Vec<String>,
    },

    /// The array has an unsuitable type.
    #[error("{place}: found dtype {found}, expected {expected}")]
    WrongType {
        /// The array.
        place: Place,
        /// Its type.
        found: crate::DType,
        /// The suitable types.
        expected: &'static str,
    },

    /// An element has an unsuitable value.
    #[error("{place}: {}: found {found}, expected {expected}", position(*.row, *.column))]
    Value {
        /// The array.
        place: Place,
        /// Index along the first axis.
        row: usize,
        /// Index within the row, for arrays with more than one axis.
        column: Option<usize>,
        /// The element.
        found: String,
        /// What was expected.
        expected: &'static str,
    },

    /// The shape of the array does not match its use or the other arrays.
    #[error("{place}: found shape {found:?}, expected {expected}")]
    WrongShape {
        /// The array.
        place: Place,
        /// Its shape.
        found: Vec<usize>,
        /// The expected shape.
        expected: String,
    },

    /// A folder of columns was changed after its import.
    #[error("{place}: damaged columns: {problem}; import the data again")]
    DamagedColumns {
        /// The folder, or the file in it.
        place: Place,
        /// What was found and what was expected.
        problem: String,
    },

    /// Replacing an imported folder would delete foreign files in it.
    #[error(
        "{place}: is not replaced, because {found} in it is not of an import; move it away or choose another name"
    )]
    Foreign {
        /// The folder that was to be replaced.
        place: Place,
        /// The first foreign file.
        found: String,
    },

    /// A folder of columns would replace something else.
    #[error("{place}: {problem}")]
    Exists {
        /// The folder that was to be written.
        place: Place,
        /// What exists there, and what to do.
        problem: &'static str,
    },

    /// The file does not match its environment, but another one.
    #[error("{source}; the file looks like data of {}, not of {environment}", .looks_like.join(", "))]
    OtherEnvironment {
        /// What does not match.
        source: Box<DataError>,
        /// The requested environment.
        environment: &'static str,
        /// The environments that the file matches.
        looks_like: Vec<&'static str>,
    },

    /// The columns of a log are not those that a dataset needs.
    #[error("{place}: {problem}")]
    Columns {
        /// The file.
        place: Place,
        /// What was found, what was expected, and what to do.
        problem: String,
    },

    /// A cell of a log has an unsuitable value.
    #[error("{place}: column `{}`, {row}: found {found}, expected {expected}", .column.escape_debug())]
    Cell {
        /// The file; boxed, so that results stay small.
        place: Box<Place>,
        /// The column.
        column: String,
        /// The row number as users count.
        row: String,
        /// The value found.
        found: String,
        /// What was expected.
        expected: &'static str,
    },

    /// The rows of a log are not consecutive episodes.
    #[error("{place}: {row}: {problem}")]
    Episode {
        /// The file.
        place: Place,
        /// The row number as users count.
        row: String,
        /// What was found, what was expected, and what to do.
        problem: String,
    },

    /// A question that only the user can answer.
    #[error("{place}: {question}")]
    Undecided {
        /// The file.
        place: Place,
        /// What cannot be determined, why, and which options answer it.
        question: String,
    },

    /// There are no transitions to learn from.
    #[error("{place}: found no transition, expected an episode of at least two rows")]
    NoTransitions {
        /// The file.
        place: Place,
    },

    /// A table has no such column.
    #[error("{place}: no column `{}`{}", .column.escape_debug(), hint(.column, .available))]
    NoColumn {
        /// The file.
        place: Place,
        /// The requested column.
        column: String,
        /// The available columns.
        available: Vec<String>,
    },

    /// A column of a table is unsuitable for its use.
    #[error("{place}: column `{}` {problem}", .column.escape_debug())]
    Column {
        /// The file.
        place: Place,
        /// The column.
        column: String,
        /// What was found and what was expected.
        problem: String,
    },

    /// A table cannot be parsed.
    #[error("{place}: damaged {format} file: {problem}")]
    DamagedTable {
        /// The file.
        place: Place,
        /// Its format.
        format: &'static str,
        /// What is wrong.
        problem: String,
    },

    /// The number of given elements does not match the shape.
    #[error("{place}: {found} elements were given for shape {shape:?}")]
    ShapeMismatch {
        /// The array.
        place: Place,
        /// The shape.
        shape: Vec<usize>,
        /// The number of elements.
        found: usize,
    },
}

fn position(row: usize, column: Option<usize>) -> String {
    match column {
        Some(column) => format!("row {row}, column {column}"),
        None => format!("row {row}"),
    }
}

/// A suggestion of the intended name, for a file with renamed arrays.
fn near(place: &Place, available: &[String]) -> String {
    let key = place.key.as_deref().unwrap_or_default();
    let near = suggest::nearest(key, available.iter().map(String::as_str), 1);
    match near[..] {
        [name] => format!("; rename `{}` if it is meant", name.escape_debug()),
        _ => String::new(),
    }
}

/// A suggestion of the intended columns, or the first of those available.
fn hint(column: &str, available: &[String]) -> String {
    const SHOWN: usize = 20;
    let near = suggest::nearest(column, available.iter().map(String::as_str), 2);
    if !near.is_empty() {
        return suggest::did_you_mean(
            &near.iter().map(|name| name.escape_debug().to_string()).collect::<Vec<_>>(),
        );
    }
    let more = if available.len() > SHOWN {
        format!(" and {} more", available.len() - SHOWN)
    } else {
        String::new()
    };
    format!("; there are {}{more}", list(&available[..available.len().min(SHOWN)]))
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        return "no arrays".to_owned();
    }
    let quoted: Vec<String> = names.iter().map(|name| format!("`{}`", name.escape_debug())).collect();
    quoted.join(", ")
}
