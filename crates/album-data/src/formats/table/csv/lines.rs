//! Parallel parsing of lines without quotes, split into pieces.

use super::super::data::{ColumnData, ColumnType};
use super::fields::{Guess, push};
use crate::error::DataError;
use crate::parallel::{parallel, threads};

/// An invalid line. Lines and rows are counted from the start of the piece.
pub(super) enum Bad {
    /// The line has the wrong number of fields.
    Fields { line: u64, found: usize },
    /// A field has an unexpected value.
    Cell { row: usize, column: usize, found: String, expected: &'static str },
}

/// What was read of a piece, up to its first error.
pub(super) struct Piece<T> {
    pub lines: u64,
    pub rows: usize,
    pub values: T,
    pub bad: Option<Bad>,
}

/// A column of a piece: numbers, or labels without codes.
pub(super) enum Values<'a> {
    Numbers(ColumnData),
    Labels(Vec<&'a str>),
}

/// Splits lines into pieces of similar size, one per thread.
fn pieces(lines: &str) -> Vec<&str> {
    let wanted = (lines.len() / threads()).max(1 << 16);
    let (mut rest, mut pieces) = (lines, Vec::new());
    while !rest.is_empty() {
        let end = memchr::memchr(b'\n', &rest.as_bytes()[wanted.min(rest.len())..]);
        let (piece, after) = rest.split_at(end.map_or(rest.len(), |end| wanted + end + 1));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// Guesses the types of all columns.
pub(super) fn guess(lines: &str, delimiter: u8, columns: usize) -> Result<Vec<Piece<Vec<Guess>>>, DataError> {
    each(
        lines,
        delimiter,
        columns,
        || vec![Guess::default(); columns],
        |guesses, fields| {
            for (guess, field) in guesses.iter_mut().zip(fields) {
                guess.see(field.as_bytes());
            }
            Ok(())
        },
    )
}

/// Parses the requested columns.
pub(super) fn values<'a>(
    lines: &'a str,
    delimiter: u8,
    columns: usize,
    wanted: &[(usize, ColumnType)],
) -> Result<Vec<Piece<Vec<Values<'a>>>>, DataError> {
    let empty = || {
        let values = |&(_, kind): &(usize, ColumnType)| match kind {
            ColumnType::Text => Values::Labels(Vec::new()),
            kind => Values::Numbers(ColumnData::empty(kind, 0)),
        };
        wanted.iter().map(values).collect()
    };
    each(lines, delimiter, columns, empty, |all: &mut Vec<Values<'a>>, fields| {
        for (values, &(column, _)) in all.iter_mut().zip(wanted) {
            match values {
                Values::Labels(labels) => labels.push(fields[column]),
                Values::Numbers(data) => push(data, fields[column]).map_err(|expected| (column, expected))?,
            }
        }
        Ok(())
    })
}

/// Processes the fields of every line; pieces run in parallel.
fn each<'a, T: Send>(
    lines: &'a str,
    delimiter: u8,
    columns: usize,
    empty: impl Fn() -> T + Sync,
    take: impl Fn(&mut T, &[&'a str]) -> Result<(), (usize, &'static str)> + Sync,
) -> Result<Vec<Piece<T>>, DataError> {
    let pieces = pieces(lines);
    parallel(pieces.len(), |i| {
        let mut piece = Piece { lines: 0, rows: 0, values: empty(), bad: None };
        let mut fields: Vec<&'a str> = Vec::with_capacity(columns);
        for line in pieces[i].split_terminator('\n') {
            piece.lines += 1;
            let line = line.strip_suffix('\r').unwrap_or(line);
            if line.is_empty() {
                continue;
            }
            fields.clear();
            let mut start = 0;
            for end in memchr::memchr_iter(delimiter, line.as_bytes()) {
                fields.push(&line[start..end]);
                start = end + 1;
            }
            fields.push(&line[start..]);
            piece.bad = if fields.len() == columns {
                take(&mut piece.values, &fields).err().map(|(column, expected)| Bad::Cell {
                    row: piece.rows,
                    column,
                    found: fields[column].to_owned(),
                    expected,
                })
            } else {
                Some(Bad::Fields { line: piece.lines, found: fields.len() })
            };
            if piece.bad.is_some() {
                break;
            }
            piece.rows += 1;
        }
        Ok(piece)
    })
}
