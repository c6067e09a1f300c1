//! The zip directory of an npz archive.
//!
//! Archives are written by the `zip` crate but not read by it, for three reasons: it builds the whole
//! directory before a caller can limit its size; it searches the last 64 KiB for any end record that parses,
//! so that programs can disagree on what a file contains; and of two entries with the same name it silently
//! keeps the last. An npz file needs only a small, unambiguous subset of the zip format: the file starts with
//! an entry and ends with the end record, the directory lies directly before that, and the entries lie before
//! the directory without overlap, each with a local header that agrees with the directory.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use crate::error::{DataError, Place};
use crate::formats::file::describe_kind;
use crate::limits::Limits;

/// How the bytes of an entry are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Stored,
    Deflate,
}

/// An array of the archive.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The name without `.npy`.
    pub key: String,
    pub method: Method,
    pub crc: u32,
    /// Compressed size in bytes; the data begins at `start`.
    pub compressed: u64,
    /// Uncompressed size in bytes.
    pub size: u64,
    pub start: u64,
}

/// Parses little-endian fields one after another.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(n)?;
        self.0 = tail;
        Some(head)
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.bytes(2)?.try_into().ok()?))
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.bytes(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes(8)?.try_into().ok()?))
    }
}

const LOCAL_HEADER: u32 = 0x0403_4b50;
const LOCAL_HEADER_BYTES: usize = 30;
const TABLE_ENTRY: u32 = 0x0201_4b50;
const TABLE_ENTRY_BYTES: u64 = 46;
const END: u32 = 0x0605_4b50;
const END_BYTES: u64 = 22;
const END_64: u32 = 0x0606_4b50;
const END_64_BYTES: u64 = 56;
const LOCATOR_64: u32 = 0x0706_4b50;
const LOCATOR_64_BYTES: u64 = 20;

/// Reads and checks the whole directory, but not the data of entries.
pub(crate) fn read_directory(
    file: &mut File,
    file_size: u64,
    place: &Place,
    limits: &Limits,
) -> Result<Vec<Entry>, DataError> {
    Directory { file, file_size, place, limits }.read()
}

struct Directory<'a> {
    file: &'a mut File,
    file_size: u64,
    place: &'a Place,
    limits: &'a Limits,
}

/// The location of the directory.
struct Table {
    entries: u64,
    start: u64,
    size: u64,
}

/// An entry of the directory, before its local header has been checked.
struct Listed {
    entry: Entry,
    name: Vec<u8>,
    method: u16,
    header: u64,
}

impl Directory<'_> {
    fn read(&mut self) -> Result<Vec<Entry>, DataError> {
        self.check_kind()?;
        let table = self.find_table()?;
        self.limit("the number of arrays", table.entries, self.limits.max_entries)?;
        self.limit("the archive's table of contents in bytes", table.size, self.limits.max_directory_bytes)?;
        let bytes = self.at(table.start, table.size as usize)?;
        let mut fields = Fields(&bytes);
        let mut listed = Vec::new();
        for _ in 0..table.entries {
            listed.push(self.listed(&mut fields)?);
        }
        if !fields.0.is_empty() {
            return Err(self.damaged(format!(
                "{} bytes of the table of contents are left after its {} entries",
                fields.0.len(),
                table.entries
            )));
        }
        self.check_names(&listed)?;
        self.check_sizes(&listed)?;
        for one in &mut listed {
            self.find_data(one)?;
        }
        self.check_overlap(&listed, table.start)?;
        Ok(listed.into_iter().map(|one| one.entry).collect())
    }

    /// Refuses a file that is not an archive, and says what it is instead.
    fn check_kind(&mut self) -> Result<(), DataError> {
        let start = self.at(0, self.file_size.min(8) as usize)?;
        if start.starts_with(b"PK\x03\x04") || start.starts_with(b"PK\x05\x06") {
            return Ok(());
        }
        Err(DataError::WrongFileKind {
            place: self.place.clone(),
            found: describe_kind(&start),
            expected: "an .npz archive as np.savez writes",
        })
    }

    fn find_table(&mut self) -> Result<Table, DataError> {
        let cut = "it does not end with a zip end record: \
                   the file is cut off, or something was appended to it";
        let Some(end) = self.file_size.checked_sub(END_BYTES) else {
            return Err(self.damaged(cut));
        };
        let bytes = self.at(end, END_BYTES as usize)?;
        let mut fields = Fields(&bytes);
        let record = (|| {
            let signature = fields.u32()?;
            let disks = [fields.u16()?, fields.u16()?];
            let counts = [fields.u16()?, fields.u16()?];
            let (size, start, comment) = (fields.u32()?, fields.u32()?, fields.u16()?);
            Some((signature, disks, counts, size, start, comment))
        })();
        let Some((END, disks, counts, size, start, 0)) = record else {
            return Err(self.damaged(cut));
        };
        if disks != [0, 0] || counts[0] != counts[1] {
            return Err(self.damaged("it is one part of a multi-part archive, expected a whole"));
        }
        let mut table = Table { entries: counts[0].into(), start: start.into(), size: size.into() };
        let mut table_end = end;
        if let Some(large) = self.find_large_table(end)? {
            // The short fields hold the same numbers, or all ones if those do not fit.
            let agree = |short: u64, all_ones: u64, long: u64| short == all_ones || short == long;
            if !agree(table.entries, u16::MAX.into(), large.entries)
                || !agree(table.start, u32::MAX.into(), large.start)
                || !agree(table.size, u32::MAX.into(), large.size)
            {
                return Err(self.damaged("its two end records contradict each other"));
            }
            table = large;
            table_end = end - LOCATOR_64_BYTES - END_64_BYTES;
        }
        if table.start.checked_add(table.size) != Some(table_end) {
            return Err(self.damaged(format!(
                "its table of contents claims {} bytes from byte {}, expected it to end at {table_end}",
                table.size, table.start
            )));
        }
        if table.entries > table.size / TABLE_ENTRY_BYTES {
            return Err(self.damaged(format!(
                "it claims {} entries in a table of contents of {} bytes",
                table.entries, table.size
            )));
        }
        Ok(table)
    }

    /// The zip64 end record, used by large archives, if there is one before `end`.
    fn find_large_table(&mut self, end: u64) -> Result<Option<Table>, DataError> {
        let Some(locator) = end.checked_sub(LOCATOR_64_BYTES) else {
            return Ok(None);
        };
        let bytes = self.at(locator, LOCATOR_64_BYTES as usize)?;
        let mut fields = Fields(&bytes);
        if fields.u32() != Some(LOCATOR_64) {
            return Ok(None);
        }
        let bad = "its zip64 end record is missing or not directly before its locator";
        let Some(record) = locator.checked_sub(END_64_BYTES) else {
            return Err(self.damaged(bad));
        };
        if (fields.u32(), fields.u64(), fields.u32()) != (Some(0), Some(record), Some(1)) {
            return Err(self.damaged(bad));
        }
        let bytes = self.at(record, END_64_BYTES as usize)?;
        let mut fields = Fields(&bytes);
        let table = (|| {
            let head = (fields.u32()?, fields.u64()?);
            let _versions = fields.u32()?;
            let disks = (fields.u32()?, fields.u32()?);
            let counts = (fields.u64()?, fields.u64()?);
            let (size, start) = (fields.u64()?, fields.u64()?);
            (head == (END_64, END_64_BYTES - 12) && disks == (0, 0) && counts.0 == counts.1)
                .then_some(Table { entries: counts.0, start, size })
        })();
        match table {
            Some(table) => Ok(Some(table)),
            None => Err(self.damaged(bad)),
        }
    }

    /// Parses the next entry of the directory.
    fn listed(&self, fields: &mut Fields<'_>) -> Result<Listed, DataError> {
        let parsed = (|| {
            let signature = fields.u32()?;
            let _versions = fields.u32()?;
            let (flags, method) = (fields.u16()?, fields.u16()?);
            let _time = fields.u32()?;
            let crc = fields.u32()?;
            let (compressed, size) = (fields.u32()?, fields.u32()?);
            let (name, extra, comment) = (fields.u16()?, fields.u16()?, fields.u16()?);
            let _disk_and_attributes = fields.bytes(8)?;
            let header = fields.u32()?;
            let name = fields.bytes(name.into())?;
            let extra = fields.bytes(extra.into())?;
            let _comment = fields.bytes(comment.into())?;
            let sizes = long_sizes(extra, [size, compressed, header])?;
            (signature == TABLE_ENTRY).then_some((flags, method, crc, sizes, name))
        })();
        let Some((flags, method, crc, [size, compressed, header], name)) = parsed else {
            return Err(self.damaged("its table of contents is malformed"));
        };
        let key = self.key(name)?;
        let place = self.place.array(&key);
        // Bit 0: encrypted; 6: strong encryption; 13: encrypted directory.
        if flags & 0b10_0000_0100_0001 != 0 {
            return Err(DataError::Encrypted { place });
        }
        let entry = Entry {
            key,
            method: match method {
                0 => Method::Stored,
                8 => Method::Deflate,
                _ => return Err(DataError::Compression { place, method }),
            },
            crc,
            compressed,
            size,
            start: 0,
        };
        Ok(Listed { entry, name: name.to_vec(), method, header })
    }

    /// The name of the array. Refuses entry names that are not plain file names.
    fn key(&self, name: &[u8]) -> Result<String, DataError> {
        let bad = |problem| DataError::EntryName {
            place: self.place.clone(),
            name: String::from_utf8_lossy(name).chars().take(80).collect(),
            problem,
        };
        let text = std::str::from_utf8(name).map_err(|_| bad("is not UTF-8"))?;
        if let Some(problem) = name_problem(text) {
            return Err(bad(problem));
        }
        match text.strip_suffix(".npy") {
            Some("") => Err(bad("is empty")),
            Some(key) => Ok(key.to_owned()),
            None => Err(bad("does not end in .npy")),
        }
    }

    fn check_names(&self, listed: &[Listed]) -> Result<(), DataError> {
        let mut seen = HashSet::new();
        for Listed { entry, .. } in listed {
            if !seen.insert(entry.key.as_str()) {
                return Err(DataError::DuplicateName { place: self.place.array(&entry.key) });
            }
        }
        Ok(())
    }

    fn check_sizes(&self, listed: &[Listed]) -> Result<(), DataError> {
        let mut total: u64 = 0;
        for Listed { entry, .. } in listed {
            let place = self.place.array(&entry.key);
            let over = |what, found, limit| DataError::Limit { place: place.clone(), what, found, limit };
            let max = self.limits.max_array_bytes;
            if entry.size > max {
                return Err(over("the size in bytes", entry.size, max));
            }
            if entry.method == Method::Stored && entry.size != entry.compressed {
                return Err(DataError::DamagedArchive {
                    place,
                    problem: format!(
                        "it is not compressed, yet takes {} bytes for {}",
                        entry.compressed, entry.size
                    ),
                });
            }
            let ratio = entry.size / entry.compressed.max(1);
            if entry.size > self.limits.ratio_free_bytes && ratio > self.limits.max_ratio {
                return Err(over("the ratio of inflated to compressed bytes", ratio, self.limits.max_ratio));
            }
            total = total.saturating_add(entry.size);
        }
        self.limit("the size of all arrays in bytes", total, self.limits.max_total_bytes)
    }

    /// Checks the local header of an entry and determines where its data starts.
    fn find_data(&mut self, one: &mut Listed) -> Result<(), DataError> {
        let place = self.place.array(&one.entry.key);
        let damaged =
            |problem: &str| DataError::DamagedArchive { place: place.clone(), problem: problem.to_owned() };
        let wanted = LOCAL_HEADER_BYTES + one.name.len();
        let beyond = "its local header lies beyond the end of the file";
        if one.header.saturating_add(wanted as u64) > self.file_size {
            return Err(damaged(beyond));
        }
        let bytes = self.at(one.header, wanted)?;
        let mut fields = Fields(&bytes);
        let parsed = (|| {
            let signature = fields.u32()?;
            let _version = fields.u16()?;
            let (flags, method) = (fields.u16()?, fields.u16()?);
            let _time = fields.u32()?;
            let crc = fields.u32()?;
            let sizes = [fields.u32()?, fields.u32()?];
            let (name, extra) = (fields.u16()?, fields.u16()?);
            (signature == LOCAL_HEADER).then_some((flags, method, crc, sizes, name, extra))
        })();
        let Some((flags, method, crc, sizes, name, extra)) = parsed else {
            return Err(damaged("its local header is missing"));
        };
        // Bit 3: the writer could not seek, so checksum and sizes follow the data.
        let known = flags & 8 == 0;
        let fits = |short: u32, long: u64| short == u32::MAX || u64::from(short) == long;
        if usize::from(name) != one.name.len()
            || fields.0 != one.name
            || method != one.method
            || flags & 1 != 0
            || (known && crc != one.entry.crc)
            || (known && !fits(sizes[0], one.entry.compressed))
            || (known && !fits(sizes[1], one.entry.size))
        {
            return Err(damaged("its local header contradicts the table of contents"));
        }
        one.entry.start = one.header + wanted as u64 + u64::from(extra);
        match one.entry.start.checked_add(one.entry.compressed) {
            Some(end) if end <= self.file_size => Ok(()),
            _ => Err(damaged("its data goes beyond the end of the file")),
        }
    }

    fn check_overlap(&self, listed: &[Listed], table_start: u64) -> Result<(), DataError> {
        let mut ranges: Vec<(u64, u64, &str)> = listed
            .iter()
            .map(|one| {
                let entry = &one.entry;
                (one.header, entry.start + entry.compressed, entry.key.as_str())
            })
            .collect();
        ranges.sort_unstable();
        for (i, &(_, end, key)) in ranges.iter().enumerate() {
            let next = ranges.get(i + 1);
            if end > next.map_or(table_start, |next| next.0) {
                return Err(DataError::Overlap {
                    place: self.place.array(key),
                    other: match next {
                        Some((_, _, other)) => format!("array `{}`", other.escape_debug()),
                        None => "the table of contents".to_owned(),
                    },
                });
            }
        }
        Ok(())
    }

    /// Reads `length` bytes at `offset`. The caller has bounded both.
    fn at(&mut self, offset: u64, length: usize) -> Result<Vec<u8>, DataError> {
        let mut bytes = vec![0; length];
        self.file
            .seek(SeekFrom::Start(offset))
            .and_then(|_| self.file.read_exact(&mut bytes))
            .map_err(|source| DataError::Io { place: self.place.clone(), source })?;
        Ok(bytes)
    }

    fn limit(&self, what: &'static str, found: u64, limit: u64) -> Result<(), DataError> {
        if found <= limit {
            return Ok(());
        }
        Err(DataError::Limit { place: self.place.clone(), what, found, limit })
    }

    fn damaged(&self, problem: impl Into<String>) -> DataError {
        DataError::DamagedArchive { place: self.place.clone(), problem: problem.into() }
    }
}

/// Size, compressed size and header offset. A field of all ones is replaced by its value in the zip64 extra
/// field; `None` if that is missing.
fn long_sizes(extra: &[u8], short: [u32; 3]) -> Option<[u64; 3]> {
    let mut fields = Fields(extra);
    let mut long = Fields(&[]);
    while !fields.0.is_empty() {
        let (id, length) = (fields.u16()?, fields.u16()?);
        let body = fields.bytes(length.into())?;
        if id == 1 {
            long = Fields(body);
        }
    }
    let mut sizes = [0; 3];
    for (size, short) in sizes.iter_mut().zip(short) {
        *size = if short == u32::MAX { long.u64()? } else { short.into() };
    }
    Some(sizes)
}

/// Why a name is not a valid array name; `None` if it is.
pub(crate) fn name_problem(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("is empty")
    } else if name.contains("..") {
        Some("contains `..`")
    } else if name.starts_with(['/', '\\']) || name.contains(':') {
        Some("is an absolute path")
    } else if name.contains(['/', '\\']) {
        Some("is in a directory")
    } else if name.contains(char::is_control) {
        Some("contains a control character")
    } else {
        None
    }
}
