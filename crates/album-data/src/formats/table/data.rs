//! Typed column values.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// Booleans.
    Bool,
    /// Integers. Dates and times are integers in the file's unit.
    Int,
    /// Double-precision floats. Missing values are NaN.
    Float,
    /// Single-precision floats. Missing values are NaN.
    Float32,
    /// Labels. Missing values are empty labels.
    Text,
    /// Lists of numbers, all of the same length.
    List,
    /// An unsupported type, with its name.
    Other(&'static str),
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bool => "flags",
            Self::Int => "integers",
            Self::Float | Self::Float32 => "numbers",
            Self::Text => "text",
            Self::List => "lists of numbers",
            Self::Other(name) => name,
        })
    }
}

/// The values of a column, or of a part of it.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnData {
    /// See [`ColumnType::Bool`].
    Bool(Vec<bool>),
    /// See [`ColumnType::Int`].
    Int(Vec<i64>),
    /// See [`ColumnType::Float`].
    Float(Vec<f64>),
    /// See [`ColumnType::Float32`].
    Float32(Vec<f32>),
    /// See [`ColumnType::Text`].
    Text(Text),
    /// See [`ColumnType::List`].
    List(Lists),
}

/// Dictionary-encoded labels.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Text {
    /// The index of each row's label.
    pub codes: Vec<u32>,
    /// The labels in order of first appearance. All parts of a column share their codes; later parts may have
    /// more labels.
    pub categories: Arc<Vec<String>>,
}

/// Lists of the same length, row by row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Lists {
    /// Numbers per row.
    pub width: usize,
    /// `width` numbers per row. Double precision is rounded to nearest.
    pub values: Vec<f32>,
}

impl ColumnData {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Bool(v) => v.len(),
            Self::Int(v) => v.len(),
            Self::Float(v) => v.len(),
            Self::Float32(v) => v.len(),
            Self::Text(v) => v.codes.len(),
            Self::List(v) => v.values.len().checked_div(v.width).unwrap_or(0),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The type of the values.
    pub fn kind(&self) -> ColumnType {
        match self {
            Self::Bool(_) => ColumnType::Bool,
            Self::Int(_) => ColumnType::Int,
            Self::Float(_) => ColumnType::Float,
            Self::Float32(_) => ColumnType::Float32,
            Self::Text(_) => ColumnType::Text,
            Self::List(_) => ColumnType::List,
        }
    }

    /// The value of a row as text.
    pub fn label(&self, row: usize) -> String {
        match self {
            Self::Bool(v) => v[row].to_string(),
            Self::Int(v) => v[row].to_string(),
            Self::Float(v) => format!("{:?}", v[row]),
            Self::Float32(v) => format!("{:?}", v[row]),
            Self::Text(v) => v.categories[v.codes[row] as usize].clone(),
            Self::List(v) => format!("{:?}", &v.values[row * v.width..][..v.width]),
        }
    }

    /// All values as numbers (`true` is 1), or the first row that cannot be converted.
    pub fn numbers(&self) -> Result<Vec<f64>, usize> {
        const EXACT: u64 = 1 << 53;
        match self {
            Self::Float(v) => Ok(v.clone()),
            Self::Float32(v) => Ok(v.iter().map(|&x| f64::from(x)).collect()),
            Self::Bool(v) => Ok(v.iter().map(|&x| f64::from(u8::from(x))).collect()),
            Self::Int(v) => match v.iter().position(|x| x.unsigned_abs() > EXACT) {
                Some(row) => Err(row),
                None => Ok(v.iter().map(|&x| x as f64).collect()),
            },
            Self::Text(text) => {
                let parsed: Vec<Option<f64>> =
                    text.categories.iter().map(|label| label.parse().ok()).collect();
                text.codes.iter().enumerate().map(|(row, &code)| parsed[code as usize].ok_or(row)).collect()
            }
            Self::List(_) => Err(0),
        }
    }

    /// All values as booleans (0 and 1 are accepted), or the first row that cannot be converted.
    pub fn flags(&self) -> Result<Vec<bool>, usize> {
        let of_number = |(row, x): (usize, f64)| match x {
            0.0 => Ok(false),
            1.0 => Ok(true),
            _ => Err(row),
        };
        match self {
            Self::Bool(v) => Ok(v.clone()),
            _ => self.numbers()?.into_iter().enumerate().map(of_number).collect(),
        }
    }

    /// Copies a range of rows.
    pub(super) fn rows(&self, rows: std::ops::Range<usize>) -> Self {
        match self {
            Self::Bool(v) => Self::Bool(v[rows].to_vec()),
            Self::Int(v) => Self::Int(v[rows].to_vec()),
            Self::Float(v) => Self::Float(v[rows].to_vec()),
            Self::Float32(v) => Self::Float32(v[rows].to_vec()),
            Self::Text(v) => {
                Self::Text(Text { codes: v.codes[rows].to_vec(), categories: Arc::clone(&v.categories) })
            }
            Self::List(v) => {
                let values = v.values[rows.start * v.width..rows.end * v.width].to_vec();
                Self::List(Lists { width: v.width, values })
            }
        }
    }

    /// Appends numbers or booleans of the same type; others are ignored.
    pub(super) fn append(&mut self, more: Self) {
        match (self, more) {
            (Self::Bool(to), Self::Bool(more)) => to.extend(more),
            (Self::Int(to), Self::Int(more)) => to.extend(more),
            (Self::Float(to), Self::Float(more)) => to.extend(more),
            (Self::Float32(to), Self::Float32(more)) => to.extend(more),
            _ => {}
        }
    }

    pub(super) fn empty(kind: ColumnType, rows: usize) -> Self {
        match kind {
            ColumnType::Bool => Self::Bool(Vec::with_capacity(rows)),
            ColumnType::Int => Self::Int(Vec::with_capacity(rows)),
            ColumnType::Float32 => Self::Float32(Vec::with_capacity(rows)),
            ColumnType::Text => {
                Self::Text(Text { codes: Vec::with_capacity(rows), categories: Arc::default() })
            }
            ColumnType::List | ColumnType::Other(_) => Self::List(Lists::default()),
            ColumnType::Float => Self::Float(Vec::with_capacity(rows)),
        }
    }

    /// Converts the values to the common type of the column over all files.
    pub(super) fn widen(self, kind: ColumnType) -> Self {
        match (self, kind) {
            (Self::Int(v), ColumnType::Float) => Self::Float(v.into_iter().map(|x| x as f64).collect()),
            (Self::Float32(v), ColumnType::Float) => Self::Float(v.into_iter().map(f64::from).collect()),
            (data, _) => data,
        }
    }
}

/// Assigns codes to labels in order of first appearance.
#[derive(Debug, Default)]
pub(super) struct Dictionary {
    codes: HashMap<Box<str>, u32>,
    categories: Arc<Vec<String>>,
    bytes: u64,
    last: u32,
}

impl Dictionary {
    pub(super) fn code(&mut self, label: &str) -> u32 {
        if self.categories.get(self.last as usize).is_some_and(|last| last == label) {
            return self.last; // fast path: the rows of an episode repeat its label
        }
        self.last = match self.codes.get(label) {
            Some(&code) => code,
            None => {
                let code = self.categories.len() as u32; // no more labels than rows, of which there are fewer than 2^32
                self.codes.insert(label.into(), code);
                Arc::make_mut(&mut self.categories).push(label.to_owned());
                self.bytes += label.len() as u64;
                code
            }
        };
        self.last
    }

    /// The labels so far.
    pub(super) fn categories(&self) -> Arc<Vec<String>> {
        Arc::clone(&self.categories)
    }

    /// Total size of the labels in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Concatenates parts of a column whose text codes differ.
pub(super) fn concatenate(
    kind: ColumnType,
    parts: Vec<ColumnData>,
) -> Result<ColumnData, (usize, usize, usize)> {
    let rows = parts.iter().map(ColumnData::len).sum();
    let mut whole = ColumnData::empty(kind, rows);
    let mut dictionary = Dictionary::default();
    let mut done = 0;
    for part in parts {
        let part_rows = part.len();
        match (&mut whole, part.widen(kind)) {
            (ColumnData::Text(to), ColumnData::Text(from)) => {
                let codes: Vec<u32> = from.categories.iter().map(|label| dictionary.code(label)).collect();
                to.codes.extend(from.codes.iter().map(|&code| codes[code as usize]));
            }
            (ColumnData::List(to), ColumnData::List(from)) => {
                if to.values.is_empty() {
                    to.width = from.width;
                    to.values.reserve_exact(rows * from.width);
                }
                if part_rows > 0 && to.width != from.width {
                    return Err((done, to.width, from.width));
                }
                to.values.extend(from.values);
            }
            (to, from) => to.append(from),
        }
        done += part_rows;
    }
    if let ColumnData::Text(text) = &mut whole {
        text.categories = dictionary.categories();
    }
    Ok(whole)
}

/// A value from a file, shortened and escaped for messages.
pub(super) fn quoted(text: &str) -> String {
    let short: String = text.chars().take(60).collect();
    format!("`{}`", short.escape_debug())
}
