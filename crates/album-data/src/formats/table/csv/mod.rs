//! CSV files, plain or gzipped.
//!
//! Opening a file reads it once to determine types and row count, so that it can then be read in constant
//! memory. [`CsvFile::open_start`] takes the types from the start of the file instead, which saves that pass;
//! reading fails if the rest does not fit.

mod fields;
mod lines;
mod text;

use std::path::Path;

use fields::{Guess, push};
use lines::{Bad, Values};
use text::{Next, Text, first_line};

use super::data::{ColumnData, ColumnType, Dictionary, quoted};
use crate::error::{DataError, Place};
use crate::limits::Limits;

/// Rows from which [`CsvFile::open_start`] takes the types.
const START: usize = 1000;

/// A CSV file with known column types.
#[derive(Debug)]
pub(super) struct CsvFile {
    place: Place,
    limits: Limits,
    columns: Vec<(String, ColumnType)>,
    /// Unknown if only the start of the file was read.
    rows: Option<usize>,
    delimiter: u8,
}

impl CsvFile {
    pub(super) fn open(path: &Path, limits: &Limits) -> Result<Self, DataError> {
        Self::open_up_to(path, limits, usize::MAX)
    }

    /// Opens a file with the types of its first rows.
    pub(super) fn open_start(path: &Path, limits: &Limits) -> Result<Self, DataError> {
        Self::open_up_to(path, limits, START)
    }

    /// Opens a file with the types of its first rows, `most` at least.
    fn open_up_to(path: &Path, limits: &Limits, most: usize) -> Result<Self, DataError> {
        let place = Place::file(path);
        let delimiter = sniff_delimiter(&place, limits)?;
        let mut file = Self { place, limits: limits.clone(), columns: Vec::new(), rows: None, delimiter };
        let mut text = Text::open(&file.place, limits, delimiter)?;
        let names = file.names(&mut text)?;
        file.columns = names.into_iter().map(|name| (name, ColumnType::Text)).collect();
        let mut guesses = vec![Guess::default(); file.columns.len()];
        let mut rows = 0;
        while rows < most {
            let before = text.lines;
            match text.next(most - rows)? {
                Next::End => {
                    file.rows = Some(rows);
                    break;
                }
                Next::Record(record, before) => {
                    file.check_fields(before, record.len())?;
                    for (guess, field) in guesses.iter_mut().zip(record) {
                        guess.see(field);
                    }
                    rows += 1;
                }
                Next::Lines(lines) => {
                    let mut line = before;
                    for piece in lines::guess(lines, delimiter, file.columns.len())? {
                        if let Some(bad) = piece.bad {
                            return Err(file.bad(bad, line, rows));
                        }
                        for (guess, more) in guesses.iter_mut().zip(piece.values) {
                            guess.join(more);
                        }
                        rows += piece.rows;
                        line += piece.lines;
                    }
                    text.lines = line;
                }
            }
        }
        file.check_rows(rows)?;
        for ((_, kind), guess) in file.columns.iter_mut().zip(guesses) {
            *kind = guess.kind();
        }
        Ok(file)
    }

    pub(super) fn columns(&self) -> &[(String, ColumnType)] {
        &self.columns
    }

    /// Number of rows, if the whole file was read.
    pub(super) fn rows(&self) -> Option<usize> {
        self.rows
    }

    fn check_rows(&self, rows: usize) -> Result<(), DataError> {
        let (found, limit) = (rows as u64 * 8, self.limits.max_array_bytes);
        if found <= limit {
            return Ok(());
        }
        Err(DataError::Limit { place: self.place.clone(), what: "the size of a column", found, limit })
    }

    /// Opens a reader of the given columns, as the given types.
    pub(super) fn reader(&self, wanted: &[(usize, ColumnType)]) -> Result<CsvReader<'_>, DataError> {
        let mut text = Text::open(&self.place, &self.limits, self.delimiter)?;
        self.names(&mut text)?;
        Ok(CsvReader { file: self, text, wanted: wanted.to_vec(), row: 0 })
    }

    /// The column names, from the first line.
    fn names(&self, text: &mut Text) -> Result<Vec<String>, DataError> {
        let delimiter = char::from(self.delimiter);
        let name = |name: &str| name.trim().to_owned();
        loop {
            let names: Vec<String> = match text.next(1)? {
                Next::Lines(line) if line.trim_end_matches(['\r', '\n']).is_empty() => {
                    text.lines += 1;
                    continue;
                }
                Next::Lines(line) => {
                    let names = line.trim_end_matches(['\r', '\n']).split(delimiter).map(name).collect();
                    text.lines += 1;
                    names
                }
                Next::Record(record, _) => record
                    .iter()
                    .map(|bytes| std::str::from_utf8(bytes).map(name))
                    .collect::<Result<_, _>>()
                    .map_err(|_| damaged(&self.place, "a column's name is not UTF-8"))?,
                Next::End => {
                    let problem = "it is empty; expected a line with the names of the columns";
                    return Err(damaged(&self.place, problem));
                }
            };
            let (found, limit) = (names.len() as u64, self.limits.max_columns);
            if found > limit {
                let place = self.place.clone();
                return Err(DataError::Limit { place, what: "the number of columns", found, limit });
            }
            return Ok(names);
        }
    }

    /// Refuses a line whose number of fields differs from the first line's.
    fn check_fields(&self, lines: u64, found: usize) -> Result<(), DataError> {
        if found == self.columns.len() {
            return Ok(());
        }
        let (line, expected) = (lines + 1, self.columns.len());
        Err(damaged(&self.place, format!("line {line} has {found} fields, the first line {expected}")))
    }

    /// Converts the error of a piece that starts after `lines` lines and `rows` rows.
    fn bad(&self, bad: Bad, lines: u64, rows: usize) -> DataError {
        match bad {
            Bad::Fields { line, found } => match self.check_fields(lines + line - 1, found) {
                Err(error) => error,
                Ok(()) => damaged(&self.place, "it changed while it was read"),
            },
            Bad::Cell { row, column, found, expected } => DataError::Cell {
                place: Box::new(self.place.clone()),
                column: self.columns[column].0.clone(),
                row: format!("row {}", rows + row),
                found: quoted(&found),
                expected,
            },
        }
    }
}

/// The delimiter: the candidate that is most frequent in the first line.
fn sniff_delimiter(place: &Place, limits: &Limits) -> Result<u8, DataError> {
    let line = first_line(place, limits)?;
    if line.contains(&0) {
        return Err(DataError::WrongFileKind {
            place: place.clone(),
            found: "a binary file".into(),
            expected: "a table: Parquet, CSV, gzipped CSV or npz",
        });
    }
    let count = |delimiter: u8| line.iter().filter(|&&byte| byte == delimiter).count();
    let most = [b'\t', b';', b','].into_iter().max_by_key(|&delimiter| count(delimiter));
    Ok(most.unwrap_or(b','))
}

fn damaged(place: &Place, problem: impl Into<String>) -> DataError {
    DataError::DamagedTable { place: place.clone(), format: "CSV", problem: problem.into() }
}

/// A reader of some columns of a file.
pub(super) struct CsvReader<'a> {
    file: &'a CsvFile,
    text: Text,
    wanted: Vec<(usize, ColumnType)>,
    row: usize,
}

impl CsvReader<'_> {
    /// Appends up to `rows` rows; returns how many.
    pub(super) fn read(
        &mut self,
        rows: usize,
        into: &mut [ColumnData],
        dictionaries: &mut [Dictionary],
    ) -> Result<usize, DataError> {
        let first = self.row;
        while self.row - first < rows {
            let before = self.text.lines;
            match self.text.next(rows - (self.row - first))? {
                Next::End => break,
                Next::Record(record, before) => {
                    self.file.check_fields(before, record.len())?;
                    for (i, &(column, _)) in self.wanted.iter().enumerate() {
                        let field = record.get(column).unwrap_or_default();
                        let put = std::str::from_utf8(field).map_err(|_| "text in UTF-8").and_then(|field| {
                            match &mut into[i] {
                                ColumnData::Text(text) => {
                                    text.codes.push(dictionaries[i].code(field));
                                    Ok(())
                                }
                                numbers => push(numbers, field),
                            }
                        });
                        put.map_err(|expected| {
                            let found = String::from_utf8_lossy(field).into_owned();
                            self.file.bad(Bad::Cell { row: 0, column, found, expected }, before, self.row)
                        })?;
                    }
                    self.row += 1;
                }
                Next::Lines(lines) => {
                    let (delimiter, columns) = (self.file.delimiter, self.file.columns.len());
                    let mut line = before;
                    for piece in lines::values(lines, delimiter, columns, &self.wanted)? {
                        if let Some(bad) = piece.bad {
                            return Err(self.file.bad(bad, line, self.row));
                        }
                        for (i, values) in piece.values.into_iter().enumerate() {
                            match (&mut into[i], values) {
                                (ColumnData::Text(text), Values::Labels(labels)) => {
                                    text.codes.extend(labels.iter().map(|label| dictionaries[i].code(label)));
                                }
                                (to, Values::Numbers(more)) => to.append(more),
                                _ => {}
                            }
                        }
                        self.row += piece.rows;
                        line += piece.lines;
                    }
                    self.text.lines = line;
                }
            }
        }
        self.file.check_rows(self.row)?;
        for (data, dictionary) in into.iter_mut().zip(dictionaries) {
            if let ColumnData::Text(text) = data {
                text.categories = dictionary.categories();
                let (found, limit) = (dictionary.bytes(), self.file.limits.max_array_bytes);
                if found > limit {
                    let place = self.file.place.clone();
                    return Err(DataError::Limit {
                        place,
                        what: "the size of a column's labels",
                        found,
                        limit,
                    });
                }
            }
        }
        Ok(self.row - first)
    }
}
