//! File access for the parquet crate, and protection against malformed files.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Once};

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use super::headers::page_sizes;
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

/// Refuses a page that claims more than `inflated` bytes: the parquet crate would allocate them before it looks at the
/// page.
pub(super) fn check_pages(
    file: &Positioned,
    mut start: u64,
    mut length: u64,
    inflated: u64,
) -> parquet::errors::Result<()> {
    while length > 0 {
        let sizes = page_sizes(file.get_read(start)?)
            .map_err(|e| ParquetError::General(format!("a page's header cannot be read: {e}")))?;
        if sizes.inflated > inflated {
            let claim = format!("a page claims {} bytes, its column {inflated}", sizes.inflated);
            return Err(ParquetError::General(claim));
        }
        // What lies beyond the end is the parquet crate's to refuse.
        let size = sizes.header.saturating_add(sizes.stored).min(length);
        (start, length) = (start.saturating_add(size), length - size);
    }
    Ok(())
}

/// A file that several threads can read at once, by positioned reads.
#[derive(Clone)]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_claims_too_much_is_refused_before_memory_is() {
        // Two pages: type 0, bytes in memory, bytes stored; then what is stored.
        let page = |inflated: &[u8]| [&[0x15, 0x00, 0x15], inflated, &[0x15, 0x04, 0x00, 1, 2]].concat();
        let check = |second: &[u8], room: u64| {
            let bytes = [page(&[0x20]), page(second)].concat();
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), &bytes).unwrap();
            let size = bytes.len() as u64;
            let file = Positioned { file: Arc::new(file.reopen().unwrap()), size };
            check_pages(&file, 0, size + room, 100).map_err(|e| e.to_string())
        };
        assert_eq!(check(&[0x20], 0), Ok(()));
        // 1,395,686,020 bytes, as the input that a fuzzer found.
        let claim = check(&[0x88, 0x84, 0x84, 0xb3, 0x0a], 0).unwrap_err();
        assert!(claim.contains("a page claims") && claim.contains("its column 100"), "{claim}");
        assert!(check(&[0x20], 1).unwrap_err().contains("cannot be read"));
    }
}
