//! What a format must offer to be read: named fields of rows, in parts.

use crate::action_space::ActionSpace;
use crate::error::{DataError, Place};

/// More columns than any log has; what a file says is held against it before anything is allocated.
pub(crate) const MAX_FIELDS: usize = 20_000;
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
    Text(Vec<String>),
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
pub(crate) trait Table: Send {
    fn place(&self) -> &Place;
    fn fields(&self) -> &[Field];
    /// Starts to read some of the fields.
    fn scan(&self, fields: &[usize]) -> Result<Box<dyn Scan + '_>, DataError>;

    fn facts(&self) -> Facts {
        Facts::default()
    }

    /// How users call a row.
    fn row_name(&self, row: usize) -> String {
        format!("row {row}")
    }
}

/// The parts of a table, one after the other.
pub(crate) trait Scan {
    fn next(&mut self) -> Result<Option<Part>, DataError>;
}

/// How many rows of so many bytes to read at a time.
pub(crate) fn part_rows(row_bytes: usize) -> usize {
    ((4 << 20) / row_bytes.max(1)).clamp(1, PART_ROWS)
}
