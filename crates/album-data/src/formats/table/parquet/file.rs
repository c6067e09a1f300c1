//! File access for the parquet crate, and protection against malformed files.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Once};

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use crate::error::{DataError, Place};
use crate::formats::npz::read_at;

/// Refuses a missing or oversized footer before it is parsed.
pub(super) fn check_footer(file: &File, size: u64, place: &Place) -> Result<(), DataError> {
    let mut tail = [0; 8];
    let io_error = |source| DataError::Io { place: place.clone(), source };
    if size < 12 {
        return Err(damaged(place, format!("it has {size} bytes; the file is cut off")));
    }
    let n = read_at(file, &mut tail, size - 8).map_err(io_error)?;
    if n < 8 || !matches!(&tail[4..], b"PAR1" | b"PARE") {
        return Err(damaged(place, "its end is missing; the file is cut off or still being written"));
    }
    let footer = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
    if footer > size - 8 {
        return Err(damaged(place, format!("its table of contents claims {footer} of {size} bytes")));
    }
    limit(place, "the size of the table of contents", footer, MAX_FOOTER)
}

/// Maximum size of a footer. A row group of 1,000 columns takes about 100 kB.
const MAX_FOOTER: u64 = 256 << 20;

pub(super) fn limit(place: &Place, what: &'static str, found: u64, limit: u64) -> Result<(), DataError> {
    if found <= limit { Ok(()) } else { Err(DataError::Limit { place: place.clone(), what, found, limit }) }
}

pub(super) fn damaged(place: &Place, problem: impl Into<String>) -> DataError {
    DataError::DamagedTable { place: place.clone(), format: "Parquet", problem: problem.into() }
}

/// Calls the parquet crate on untrusted bytes. It returns errors for most malformed input, but panics on
/// some; panics become errors.
pub(super) fn guarded<T>(
    place: &Place,
    work: impl FnOnce() -> Result<T, ParquetError>,
) -> Result<T, DataError> {
    hush();
    let outer = GUARDED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(outer);
    match done {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(e)) => Err(damaged(place, e.to_string())),
        Err(_) => Err(damaged(place, "its pages contradict each other")),
    }
}

thread_local! {
    /// Whether panics of this thread are caught by [`guarded`].
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Suppresses the messages of panics that become errors. All others are printed as usual.
fn hush() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let tell = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                tell(info);
            }
        }));
    });
}

/// A file that several threads can read at once, by positioned reads.
pub(super) struct Positioned {
    pub file: Arc<File>,
    pub size: u64,
}

impl Length for Positioned {
    fn len(&self) -> u64 {
        self.size
    }
}

impl ChunkReader for Positioned {
    type T = BufReader<Range>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(BufReader::new(Range { file: Arc::clone(&self.file), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        if start.checked_add(length as u64).is_none_or(|end| end > self.size) {
            return Err(ParquetError::EOF(format!("it claims {length} bytes at {start}, beyond its end")));
        }
        let mut bytes = vec![0; length];
        Range { file: Arc::clone(&self.file), at: start }.read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

/// A reader that starts at an offset of the file.
pub(super) struct Range {
    file: Arc<File>,
    at: u64,
}

impl Read for Range {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = read_at(&self.file, buffer, self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}
