//! CSV files, plain or gzipped, row by row.
//!
//! Opening reads the file once to learn its types and rows, so that values come typed and in constant memory.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::rc::Rc;

use csv::ByteRecord;
use flate2::bufread::MultiGzDecoder;

use super::data::{ColumnData, Dictionary, Kind, quoted};
use crate::error::{DataError, Place};
use crate::formats::npz::npy::open_regular;
use crate::limits::Limits;

/// A file whose types are known.
#[derive(Debug)]
pub(super) struct CsvFile {
    place: Place,
    limits: Limits,
    columns: Vec<(String, Kind)>,
    rows: usize,
    delimiter: u8,
}

impl CsvFile {
    pub(super) fn open(path: &Path, limits: &Limits) -> Result<Self, DataError> {
        let mut file = Self {
            place: Place::file(path),
            limits: limits.clone(),
            columns: Vec::new(),
            rows: 0,
            delimiter: b',',
        };
        file.delimiter = file.sniff_delimiter()?;
        let mut rows = Rows::open(&file)?;
        let mut record = ByteRecord::new();
        if !rows.next(&mut record)? {
            return Err(file.damaged("it is empty; expected a line with the names of the columns"));
        }
        let found = record.len() as u64;
        if found > limits.max_columns {
            let (place, limit) = (file.place, limits.max_columns);
            return Err(DataError::Limit { place, what: "the number of columns", found, limit });
        }
        let names = record.iter().map(|name| {
            std::str::from_utf8(name)
                .map(|name| name.trim().to_owned())
                .map_err(|_| file.damaged("a column's name is not UTF-8"))
        });
        let names = names.collect::<Result<Vec<_>, _>>()?;
        let (mut guesses, mut count) = (vec![Guess::default(); names.len()], 0);
        while rows.next(&mut record)? {
            for (guess, field) in guesses.iter_mut().zip(&record) {
                guess.see(field);
            }
            count += 1;
        }
        file.rows = count;
        let bytes = file.rows as u64 * 8;
        if bytes > limits.max_array_bytes {
            let (place, limit) = (file.place, limits.max_array_bytes);
            return Err(DataError::Limit { place, what: "the size of a column", found: bytes, limit });
        }
        file.columns = names.into_iter().zip(guesses).map(|(name, guess)| (name, guess.kind())).collect();
        Ok(file)
    }

    pub(super) fn columns(&self) -> &[(String, Kind)] {
        &self.columns
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Starts to read some columns as these kinds.
    pub(super) fn reader(&self, wanted: &[(usize, Kind)]) -> Result<CsvReader<'_>, DataError> {
        let mut rows = Rows::open(self)?;
        let mut record = ByteRecord::new();
        rows.next(&mut record)?; // the names
        Ok(CsvReader { file: self, rows, record, wanted: wanted.to_vec(), row: 0 })
    }

    /// The character that the line of names has most of.
    fn sniff_delimiter(&self) -> Result<u8, DataError> {
        let mut source = open_text(&self.place, &self.limits, &Rc::default())?;
        let mut line = Vec::new();
        let limit = self.limits.max_directory_bytes;
        let io_error = |source| DataError::Io { place: self.place.clone(), source };
        source.by_ref().take(limit).read_until(b'\n', &mut line).map_err(io_error)?;
        if line.contains(&0) {
            return Err(DataError::WrongFileKind {
                place: self.place.clone(),
                found: "a binary file".into(),
                expected: "a table: Parquet, CSV, gzipped CSV or npz",
            });
        }
        let count = |delimiter: u8| line.iter().filter(|&&byte| byte == delimiter).count();
        let most = [b'\t', b';', b','].into_iter().max_by_key(|&delimiter| count(delimiter));
        Ok(most.unwrap_or(b','))
    }

    fn damaged(&self, problem: impl Into<String>) -> DataError {
        DataError::DamagedTable { place: self.place.clone(), format: "CSV", problem: problem.into() }
    }
}

/// Some columns of a file while they are read.
pub(super) struct CsvReader<'a> {
    file: &'a CsvFile,
    rows: Rows<'a>,
    record: ByteRecord,
    wanted: Vec<(usize, Kind)>,
    row: usize,
}

impl CsvReader<'_> {
    /// Appends up to so many rows; says how many there were.
    pub(super) fn read(
        &mut self,
        rows: usize,
        into: &mut [ColumnData],
        dictionaries: &mut [Dictionary],
    ) -> Result<usize, DataError> {
        let mut read = 0;
        while read < rows && self.rows.next(&mut self.record)? {
            for (i, &(column, _)) in self.wanted.iter().enumerate() {
                let field = self.record.get(column).unwrap_or_default();
                let push = push(&mut into[i], field, &mut dictionaries[i]);
                push.map_err(|expected| self.bad(column, field, expected))?;
            }
            self.row += 1;
            read += 1;
        }
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
        Ok(read)
    }

    fn bad(&self, column: usize, field: &[u8], expected: &'static str) -> DataError {
        DataError::Cell {
            place: Box::new(self.file.place.clone()),
            column: self.file.columns[column].0.clone(),
            row: format!("row {}", self.row),
            found: quoted(&String::from_utf8_lossy(field)),
            expected,
        }
    }
}

/// Appends a field, or says what was expected (the file changed since it was opened, or is not text).
fn push(into: &mut ColumnData, field: &[u8], dictionary: &mut Dictionary) -> Result<(), &'static str> {
    let text = std::str::from_utf8(field).map_err(|_| "text in UTF-8")?;
    match into {
        ColumnData::Text(to) => to.codes.push(dictionary.code(text)),
        ColumnData::Bool(to) => to.push(flag(text.trim()).ok_or("true or false")?),
        ColumnData::Int(to) => to.push(text.trim().parse().map_err(|_| "an integer")?),
        ColumnData::Float(to) => match text.trim() {
            "" => to.push(f64::NAN),
            number => to.push(number.parse().map_err(|_| "a number")?),
        },
        ColumnData::Float32(_) | ColumnData::List(_) => return Err("a column of one kind"),
    }
    Ok(())
}

fn flag(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// What the fields so far allow.
#[derive(Debug, Clone, Copy, Default)]
struct Guess {
    kind: Option<Kind>,
    missing: bool,
}

impl Guess {
    fn see(&mut self, field: &[u8]) {
        if self.kind == Some(Kind::Text) {
            return;
        }
        let field = field.trim_ascii();
        if field.is_empty() {
            self.missing = true;
            return;
        }
        self.kind = Some(match (self.kind, kind_of(field)) {
            (None, kind) => kind,
            (Some(before), kind) if before == kind => kind,
            (Some(Kind::Int | Kind::Float), Kind::Int | Kind::Float) => Kind::Float,
            _ => Kind::Text,
        });
    }

    fn kind(self) -> Kind {
        match (self.kind, self.missing) {
            (None, _) => Kind::Float,
            (Some(Kind::Int), true) => Kind::Float,
            (Some(Kind::Bool), true) => Kind::Text,
            (Some(kind), _) => kind,
        }
    }
}

fn kind_of(field: &[u8]) -> Kind {
    let Ok(text) = std::str::from_utf8(field) else { return Kind::Text };
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        // An identifier too long for an integer must not be rounded.
        return if text.parse::<i64>().is_ok() { Kind::Int } else { Kind::Text };
    }
    match text.as_bytes()[0] {
        b'0'..=b'9' | b'-' | b'+' | b'.' | b'n' | b'N' | b'i' | b'I' if text.parse::<f64>().is_ok() => {
            Kind::Float
        }
        _ if flag(text).is_some() => Kind::Bool,
        _ => Kind::Text,
    }
}

/// The records of a file, all of one length.
struct Rows<'a> {
    file: &'a CsvFile,
    reader: csv::Reader<Box<dyn BufRead>>,
    since_row: Rc<Cell<u64>>,
}

impl<'a> Rows<'a> {
    fn open(file: &'a CsvFile) -> Result<Self, DataError> {
        let since_row = Rc::default();
        let source = open_text(&file.place, &file.limits, &since_row)?;
        let reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .delimiter(file.delimiter)
            .buffer_capacity(BUFFER)
            .from_reader(source);
        Ok(Self { file, reader, since_row })
    }

    fn next(&mut self, record: &mut ByteRecord) -> Result<bool, DataError> {
        self.since_row.set(0);
        self.reader.read_byte_record(record).map_err(|e| {
            let problem = match e.kind() {
                csv::ErrorKind::UnequalLengths { pos, expected_len, len } => {
                    let line = pos.as_ref().map_or(0, csv::Position::line);
                    format!("line {line} has {len} fields, the first line {expected_len}")
                }
                csv::ErrorKind::Io(e) => e.to_string(),
                _ => e.to_string(),
            };
            self.file.damaged(problem)
        })
    }
}

const BUFFER: usize = 1 << 17;

/// The text of a file, inflated where it is gzipped, without a byte-order mark.
fn open_text(
    place: &Place,
    limits: &Limits,
    since_row: &Rc<Cell<u64>>,
) -> Result<Box<dyn BufRead>, DataError> {
    let io_error = |source| DataError::Io { place: place.clone(), source };
    let (file, size) = open_regular(&place.file)?;
    let mut raw = BufReader::with_capacity(BUFFER, file);
    let gzipped = raw.fill_buf().map_err(io_error)?.starts_with(&[0x1f, 0x8b]);
    let most = if gzipped {
        size.saturating_mul(limits.max_ratio).max(limits.ratio_free_bytes).min(limits.max_total_bytes)
    } else {
        size
    };
    let source = if gzipped { Source::Gzip(Box::new(MultiGzDecoder::new(raw))) } else { Source::Plain(raw) };
    let metered = Metered {
        source,
        left: most,
        row_limit: limits.max_row_bytes + 2 * BUFFER as u64,
        since_row: Rc::clone(since_row),
    };
    let mut text = BufReader::with_capacity(BUFFER, metered);
    if text.fill_buf().map_err(io_error)?.starts_with(b"\xef\xbb\xbf") {
        text.consume(3);
    }
    Ok(Box::new(text))
}

enum Source {
    Plain(BufReader<File>),
    Gzip(Box<MultiGzDecoder<BufReader<File>>>),
}

/// Stops a row, or a gzip file, that never ends.
struct Metered {
    source: Source,
    left: u64,
    row_limit: u64,
    since_row: Rc<Cell<u64>>,
}

impl Read for Metered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = match &mut self.source {
            Source::Plain(source) => source.read(buffer)?,
            Source::Gzip(source) => source.read(buffer)?,
        };
        let refuse = |problem| Err(io::Error::other(problem));
        self.since_row.set(self.since_row.get() + n as u64);
        if self.since_row.get() > self.row_limit {
            return refuse("a row is longer than the limit; a quote may be left open");
        }
        if n as u64 > self.left {
            return refuse("it inflates to more bytes than the limit");
        }
        self.left -= n as u64;
        Ok(n)
    }
}
