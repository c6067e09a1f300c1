//! Parallel parsing of lines without quotes, split into pieces.

use super::super::data::{ColumnData, ColumnType};
use super::fields::{Guess, common_float, common_integer, push};
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
#[derive(Clone)]
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

/// What to do with the next field of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Task {
    Skip,
    Number(usize),
    Label(usize),
}

/// Parses the requested columns.
pub(super) fn values<'a>(
    lines: &'a str,
    delimiter: u8,
    columns: usize,
    wanted: &[(usize, ColumnType)],
) -> Result<Vec<Piece<Vec<Values<'a>>>>, DataError> {
    let mut tasks = vec![Task::Skip; columns];
    let mut again = Vec::new(); // columns that are requested once more
    for (i, &(column, kind)) in wanted.iter().enumerate() {
        match (&mut tasks[column], kind) {
            (task @ Task::Skip, ColumnType::Text) => *task = Task::Label(i),
            (task @ Task::Skip, _) => *task = Task::Number(i),
            (&mut (Task::Number(first) | Task::Label(first)), _) => again.push((i, first)),
        }
    }
    let pieces = pieces(lines);
    parallel(pieces.len(), |i| {
        let rows = memchr::memchr_iter(b'\n', pieces[i].as_bytes()).count() + 1;
        let empty = |&(_, kind): &(usize, ColumnType)| match kind {
            ColumnType::Text => Values::Labels(Vec::with_capacity(rows)),
            kind => Values::Numbers(ColumnData::empty(kind, rows)),
        };
        let values: Vec<Values<'a>> = wanted.iter().map(empty).collect();
        let mut piece = Piece { lines: 0, rows: 0, values, bad: None };
        for line in lines_of(pieces[i]) {
            piece.lines += 1;
            if line.is_empty() {
                continue;
            }
            if let Err(bad) = fields(line, delimiter, &tasks, &mut piece) {
                piece.bad = Some(bad);
                break;
            }
            piece.rows += 1;
        }
        for &(i, first) in &again {
            piece.values[i] = piece.values[first].clone();
        }
        Ok(piece)
    })
}

/// The lines of a piece, without line ends.
fn lines_of(piece: &str) -> impl Iterator<Item = &str> {
    piece.split_terminator('\n').map(|line| line.strip_suffix('\r').unwrap_or(line))
}

/// Appends the fields of a line. Numbers in common notation are parsed while their end is being looked for.
fn fields<'a>(
    line: &'a str,
    delimiter: u8,
    tasks: &[Task],
    piece: &mut Piece<Vec<Values<'a>>>,
) -> Result<(), Bad> {
    let bytes = line.as_bytes();
    let mut start = 0;
    for (column, &task) in tasks.iter().enumerate() {
        if start > bytes.len() {
            return Err(Bad::Fields { line: piece.lines, found: column });
        }
        let rest = &bytes[start..];
        let quick = match task {
            Task::Number(i) => match &mut piece.values[i] {
                Values::Numbers(ColumnData::Float(to)) => common_float(rest, delimiter).map(|(x, length)| {
                    to.push(x);
                    length
                }),
                Values::Numbers(ColumnData::Int(to)) => common_integer(rest, delimiter).map(|(x, length)| {
                    to.push(x);
                    length
                }),
                _ => None,
            },
            _ => None,
        };
        let length = match quick {
            Some(length) => length,
            None => {
                let length = memchr::memchr(delimiter, rest).unwrap_or(rest.len());
                let field = &line[start..start + length];
                let put = match task {
                    Task::Skip => Ok(()),
                    Task::Label(i) | Task::Number(i) => match &mut piece.values[i] {
                        Values::Labels(labels) => {
                            labels.push(field);
                            Ok(())
                        }
                        Values::Numbers(data) => push(data, field),
                    },
                };
                put.map_err(|expected| Bad::Cell {
                    row: piece.rows,
                    column,
                    found: field.to_owned(),
                    expected,
                })?;
                length
            }
        };
        start += length + 1;
    }
    if start <= bytes.len() {
        let more = memchr::memchr_iter(delimiter, &bytes[start..]).count() + 1;
        return Err(Bad::Fields { line: piece.lines, found: tasks.len() + more });
    }
    Ok(())
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
        for line in lines_of(pieces[i]) {
            piece.lines += 1;
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
