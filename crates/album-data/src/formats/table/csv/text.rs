//! The text of a CSV file, as blocks of whole lines until the first quote, and as parsed records from there
//! on.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

use csv::ByteRecord;
use flate2::bufread::MultiGzDecoder;

use crate::error::{DataError, Place};
use crate::formats::file::open_regular;
use crate::limits::Limits;

/// Bytes read at a time.
const BUFFER: usize = 1 << 17;
/// Bytes of lines processed together.
const BLOCK: usize = 1 << 20;

/// A reader of the text of a file.
pub(super) struct Text {
    place: Place,
    limits: Limits,
    delimiter: u8,
    state: State,
    /// Lines read so far; maintained by the caller.
    pub lines: u64,
}

enum State {
    /// `buffer[start..end]` holds whole lines of UTF-8 without quotes, followed by one incomplete line.
    Plain { source: Metered, buffer: Vec<u8>, start: usize, end: usize, done: bool },
    /// Fields may be quoted.
    Records { reader: Box<csv::Reader<Chain<Cursor<Vec<u8>>, Metered>>>, record: ByteRecord },
}

/// The next piece of a file.
pub(super) enum Next<'a> {
    /// Lines, including their line ends.
    Lines(&'a str),
    /// A record and the number of lines before it.
    Record(&'a ByteRecord, u64),
    End,
}

impl Text {
    pub(super) fn open(place: &Place, limits: &Limits, delimiter: u8) -> Result<Self, DataError> {
        let source = Metered::open(place, limits)?;
        let state = State::Plain { source, buffer: Vec::new(), start: 0, end: 0, done: false };
        Ok(Self { place: place.clone(), limits: limits.clone(), delimiter, state, lines: 0 })
    }

    /// The next lines, at most `most`, or the next record.
    pub(super) fn next(&mut self, most: usize) -> Result<Next<'_>, DataError> {
        self.fill()?;
        match &mut self.state {
            State::Plain { buffer, start, end, .. } => {
                if start == end {
                    return Ok(Next::End);
                }
                let lines = &buffer[*start..*end];
                let length = match memchr::memchr_iter(b'\n', lines).count() {
                    // Counting is many times faster than looking for the last line end.
                    found if found < most => lines.len(),
                    _ => {
                        let mut ends = memchr::memchr_iter(b'\n', lines);
                        ends.nth(most.saturating_sub(1)).map_or(lines.len(), |last| last + 1)
                    }
                };
                *start += length;
                let lines =
                    std::str::from_utf8(&lines[..length]).map_err(|e| io::Error::other(e.to_string()));
                lines.map(Next::Lines).map_err(|source| DataError::Io { place: self.place.clone(), source })
            }
            State::Records { reader, record } => {
                reader.get_mut().get_mut().1.since_row = 0;
                match reader.read_byte_record(record) {
                    Ok(true) => {
                        let line = record.position().map_or(1, csv::Position::line);
                        Ok(Next::Record(record, self.lines + line - 1))
                    }
                    Ok(false) => Ok(Next::End),
                    Err(e) => Err(super::damaged(&self.place, e.to_string())),
                }
            }
        }
    }

    /// Refills the buffer once all whole lines have been returned.
    fn fill(&mut self) -> Result<(), DataError> {
        let State::Plain { source, buffer, start, end, done } = &mut self.state else { return Ok(()) };
        if start < end || *done {
            return Ok(());
        }
        buffer.drain(..*end);
        (*start, *end) = (0, 0);
        let io_error = |source| DataError::Io { place: self.place.clone(), source };
        let mut looked = 0;
        while *end == 0 && !*done {
            let wanted = BLOCK.max(buffer.len() + BUFFER);
            while buffer.len() < wanted && !*done {
                let missing = (wanted - buffer.len()) as u64;
                *done = source.by_ref().take(missing).read_to_end(buffer).map_err(io_error)? == 0;
            }
            *end = memchr::memrchr(b'\n', &buffer[looked..]).map_or(0, |last| looked + last + 1);
            looked = buffer.len();
            if *end == 0 && !*done && looked as u64 > self.limits.max_row_bytes {
                return Err(super::damaged(&self.place, LONG_ROW));
            }
        }
        if *done {
            *end = buffer.len();
        }
        if !is_plain(&buffer[..*end]) {
            let rest = Cursor::new(std::mem::take(buffer));
            let mut source = std::mem::replace(source, Metered::nothing());
            source.row_limit = self.limits.max_row_bytes + 2 * BUFFER as u64;
            let reader = csv::ReaderBuilder::new()
                .has_headers(false)
                .flexible(true)
                .delimiter(self.delimiter)
                .buffer_capacity(BUFFER)
                .from_reader(rest.chain(source));
            self.state = State::Records { reader: Box::new(reader), record: ByteRecord::new() };
        }
        Ok(())
    }
}

/// Whether lines can be split at every delimiter and line feed, without unquoting.
fn is_plain(lines: &[u8]) -> bool {
    let lone_return = |at: usize| lines.get(at + 1) != Some(&b'\n');
    memchr::memchr(b'"', lines).is_none()
        && !memchr::memchr_iter(b'\r', lines).any(lone_return)
        && std::str::from_utf8(lines).is_ok()
}

/// The first line of a file, up to the maximum length of a header.
pub(super) fn first_line(place: &Place, limits: &Limits) -> Result<Vec<u8>, DataError> {
    let source = Metered::open(place, limits)?;
    let mut line = Vec::new();
    BufReader::new(source)
        .take(limits.max_directory_bytes)
        .read_until(b'\n', &mut line)
        .map_err(|source| DataError::Io { place: place.clone(), source })?;
    Ok(line)
}

enum Source {
    Plain(BufReader<File>),
    Gzip(Box<MultiGzDecoder<BufReader<File>>>),
    Nothing,
}

/// The text of a file, decompressed if gzipped. Refuses endless rows and decompression bombs.
struct Metered {
    source: Source,
    left: u64,
    row_limit: u64,
    since_row: u64,
}

impl Metered {
    fn nothing() -> Self {
        Self { source: Source::Nothing, left: 0, row_limit: 0, since_row: 0 }
    }

    /// Opens a file and skips its byte-order mark.
    fn open(place: &Place, limits: &Limits) -> Result<Self, DataError> {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        let io_error = |source| DataError::Io { place: place.clone(), source };
        let (file, size) = open_regular(&place.file)?;
        let mut raw = BufReader::with_capacity(BUFFER, file);
        let start = raw.fill_buf().map_err(io_error)?;
        let gzipped = start.starts_with(&[0x1f, 0x8b]);
        if start.starts_with(MARK) {
            raw.consume(MARK.len());
        }
        let inflated = size.saturating_mul(limits.max_ratio).max(limits.ratio_free_bytes);
        let left = if gzipped { inflated.min(limits.max_total_bytes) } else { size };
        let source =
            if gzipped { Source::Gzip(Box::new(MultiGzDecoder::new(raw))) } else { Source::Plain(raw) };
        Ok(Self { source, left, row_limit: u64::MAX, since_row: 0 })
    }
}

const LONG_ROW: &str = "a row is longer than the limit; a quote may be left open";

impl Read for Metered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = match &mut self.source {
            Source::Plain(source) => source.read(buffer)?,
            Source::Gzip(source) => source.read(buffer)?,
            Source::Nothing => 0,
        };
        self.since_row += n as u64;
        if self.since_row > self.row_limit {
            return Err(io::Error::other(LONG_ROW));
        }
        if n as u64 > self.left {
            return Err(io::Error::other("it inflates to more bytes than the limit"));
        }
        self.left -= n as u64;
        Ok(n)
    }
}
