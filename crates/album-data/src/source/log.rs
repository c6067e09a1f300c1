//! What a format must offer to be read: named fields of rows, in parts.

use crate::action_space::ActionSpace;
use crate::error::{DataError, Place};
use crate::formats::table::Text;

/// Numbers in one row of one field.
pub(crate) const MAX_WIDTH: usize = 1 << 20;
/// Rows that are read at a time where they are narrow.
pub(crate) const PART_ROWS: usize = 16 << 10;

/// Fields that formats make up where episodes are files or groups. No file has such names.
pub(crate) const EPISODE: &str = "<episode>";
/// True in rows that have a state and nothing else: where an episode led to.
pub(crate) const END_STATE: &str = "<end state>";

/// The type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Float,
    Integer,
    Bool,
    Text,
}

/// One column, or one array whose rows have several numbers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    pub name: String,
    pub kind: Kind,
    pub width: usize,
}

impl Field {
    pub fn new(name: impl Into<String>, kind: Kind, width: usize) -> Self {
        Self { name: name.into(), kind, width }
    }
}

/// Numbers of some rows of a field, row by row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Values {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I64(Vec<i64>),
    Bool(Vec<bool>),
    Text(Text),
}

/// Consecutive rows of the fields that were asked for, in the order in which they were.
#[derive(Debug)]
pub(crate) struct Part {
    pub first_row: usize,
    pub rows: usize,
    pub columns: Vec<Values>,
}

/// What a file knows beside its rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    /// The space of the actions; bounds may be infinite.
    pub action_space: Option<ActionSpace>,
    /// The first choice of a discrete space, which becomes index 0.
    pub first_choice: i64,
    /// What the reader thinks its user should know.
    pub warnings: Vec<String>,
}

/// One file as rows.
pub(crate) trait LogFile: Sync {
    fn place(&self) -> &Place;
    fn fields(&self) -> &[Field];
    /// Reads some of the fields, part by part in order.
    fn visit(&self, fields: &[usize], each: Visit<'_>) -> Result<(), Stop>;

    fn facts(&self) -> Facts {
        Facts::default()
    }

    /// How users call a row.
    fn row_name(&self, row: usize) -> String {
        format!("row {row}")
    }
}

/// Takes one part after the other.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(Part) -> Result<(), Stop>;

/// Why reading stopped.
pub(crate) enum Stop {
    Data(DataError),
    /// The rows have steps and are not in their order: sorting them may help.
    Unsorted(DataError),
    /// Enough was seen.
    Enough,
}

impl From<DataError> for Stop {
    fn from(error: DataError) -> Self {
        Self::Data(error)
    }
}

/// How many rows of so many bytes to read at a time.
pub(crate) fn part_rows(row_bytes: usize) -> usize {
    ((2 << 20) / row_bytes.max(1)).clamp(1, PART_ROWS)
}

impl Values {
    /// Whole rows of so many numbers.
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

    /// Cuts off numbers, or adds some that mean nothing.
    pub fn resize(&mut self, len: usize) {
        match self {
            Self::F32(v) => v.resize(len, 0.0),
            Self::F64(v) => v.resize(len, 0.0),
            Self::I64(v) => v.resize(len, 0),
            Self::Bool(v) => v.resize(len, false),
            Self::Text(v) => v.codes.resize(len, 0),
        }
    }

    /// More of the same type; what is of another type is left out.
    pub fn append(&mut self, more: Self) {
        match (self, more) {
            (Self::F32(all), Self::F32(more)) => all.extend(more),
            (Self::F64(all), Self::F64(more)) => all.extend(more),
            (Self::I64(all), Self::I64(more)) => all.extend(more),
            (Self::Bool(all), Self::Bool(more)) => all.extend(more),
            (Self::Text(all), Self::Text(more)) => {
                all.codes.extend(more.codes);
                all.categories = more.categories; // the same codes, and more of them
            }
            _ => {}
        }
    }
}
