//! The interface of a format: rows with named fields, read in parts.

use crate::action_space::ActionSpace;
use crate::error::{DataError, Place};
use crate::formats::table::Text;

/// Maximum width of a field.
pub(crate) const MAX_WIDTH: usize = 1 << 20;
/// Maximum number of rows read at a time.
pub(crate) const PART_ROWS: usize = 16 << 10;

/// Synthetic field for formats with one file or group per episode: the index of the episode. No file uses
/// such a name.
pub(crate) const EPISODE: &str = "<episode>";
/// Synthetic field: true in rows that hold only the final state of an episode.
pub(crate) const END_STATE: &str = "<end state>";

/// The type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldType {
    Float,
    Integer,
    Bool,
    Text,
}

/// A column, or an array with several numbers per row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    pub name: String,
    pub kind: FieldType,
    pub width: usize,
}

impl Field {
    pub fn new(name: impl Into<String>, kind: FieldType, width: usize) -> Self {
        Self { name: name.into(), kind, width }
    }
}

/// Values of consecutive rows of a field, row by row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Values {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I64(Vec<i64>),
    Bool(Vec<bool>),
    Text(Text),
}

/// Consecutive rows of the requested fields, in the order of the request.
#[derive(Debug)]
pub(crate) struct Part {
    pub first_row: usize,
    pub rows: usize,
    pub columns: Vec<Values>,
}

/// Metadata of a file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    /// The action space; bounds may be infinite.
    pub action_space: Option<ActionSpace>,
    /// The smallest choice of a discrete space, which becomes index 0.
    pub first_choice: i64,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// A file that is read row by row.
pub(crate) trait LogFile: Sync {
    fn place(&self) -> &Place;
    fn fields(&self) -> &[Field];
    /// Reads the given fields in order, part by part.
    fn visit(&self, fields: &[usize], each: Visit<'_>) -> Result<(), Stop>;

    fn facts(&self) -> Facts {
        Facts::default()
    }

    /// The name of a row in messages.
    fn row_name(&self, row: usize) -> String {
        format!("row {row}")
    }
}

/// Receives the parts in order.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(Part) -> Result<(), Stop>;

/// Why reading stopped.
pub(crate) enum Stop {
    Data(DataError),
    /// The rows are not ordered by step; sorting them may help.
    Unsorted(DataError),
    /// The visitor needs no more rows.
    Enough,
}

impl From<DataError> for Stop {
    fn from(error: DataError) -> Self {
        Self::Data(error)
    }
}

/// Number of rows to read at a time, for rows of `row_bytes` bytes.
pub(crate) fn part_rows(row_bytes: usize) -> usize {
    ((2 << 20) / row_bytes.max(1)).clamp(1, PART_ROWS)
}

impl Values {
    /// Number of complete rows of `width` values.
    pub fn rows(&self, width: usize) -> usize {
        let len = match self {
            Self::F32(v) => v.len(),
            Self::F64(v) => v.len(),
            Self::I64(v) => v.len(),
            Self::Bool(v) => v.len(),
            Self::Text(v) => v.codes.len(),
        };
        len / width.max(1)
    }

    /// Truncates, or pads with placeholder values.
    pub fn resize(&mut self, len: usize) {
        match self {
            Self::F32(v) => v.resize(len, 0.0),
            Self::F64(v) => v.resize(len, 0.0),
            Self::I64(v) => v.resize(len, 0),
            Self::Bool(v) => v.resize(len, false),
            Self::Text(v) => v.codes.resize(len, 0),
        }
    }

    /// Appends values of the same type; values of another type are ignored.
    pub fn append(&mut self, more: Self) {
        match (self, more) {
            (Self::F32(all), Self::F32(more)) => all.extend(more),
            (Self::F64(all), Self::F64(more)) => all.extend(more),
            (Self::I64(all), Self::I64(more)) => all.extend(more),
            (Self::Bool(all), Self::Bool(more)) => all.extend(more),
            (Self::Text(all), Self::Text(more)) => {
                all.codes.extend(more.codes);
                all.categories = more.categories; // a superset with the same codes
            }
            _ => {}
        }
    }
}
