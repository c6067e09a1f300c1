//! npz archives: zip files of npy arrays.

pub(crate) mod array;
pub(crate) mod log;
pub(crate) mod npy;
pub(crate) mod row_reader;
pub(crate) mod writer;
mod zip_directory;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::DeflateDecoder;

use crate::error::{DataError, Place};
use crate::formats::file::open_regular;
use crate::limits::Limits;
use array::Array;
use npy::{CHUNK, fill, read_array};
use row_reader::RowReader;
use zip_directory::{Entry, Method, read_directory};

/// An open `.npz` archive.
///
/// Opening reads and checks only the zip directory. Arrays are decompressed one at a time, straight into
/// their vectors, and verified against their checksums.
#[derive(Debug)]
pub struct Npz {
    file: File,
    place: Place,
    limits: Limits,
    names: Vec<String>,
    entries: Vec<Entry>,
}

impl Npz {
    /// Opens an archive with the default [`Limits`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DataError> {
        Self::open_with(path, &Limits::default())
    }

    /// Opens an archive with the given limits.
    pub fn open_with(path: impl AsRef<Path>, limits: &Limits) -> Result<Self, DataError> {
        let path = path.as_ref();
        let place = Place::file(path);
        let (mut file, size) = open_regular(path)?;
        let entries = read_directory(&mut file, size, &place, limits)?;
        Ok(Self {
            file,
            place,
            limits: limits.clone(),
            names: entries.iter().map(|entry| entry.key.clone()).collect(),
            entries,
        })
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// The array names, without `.npy`, in file order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether the archive has an array of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    /// Reads an array.
    pub fn read(&mut self, name: &str) -> Result<Array, DataError> {
        let (entry, place) = self.find(name)?;
        let mut stream = EntryReader::new(&self.file, entry);
        let array = read_array(&mut stream, entry.size, &place, &self.limits)?;
        stream.finish(&place)?;
        Ok(array)
    }

    /// Opens an array for reading row by row. Several arrays can be read at the same time.
    pub(crate) fn rows(&self, name: &str) -> Result<RowReader<'_>, DataError> {
        let (entry, place) = self.find(name)?;
        RowReader::of_entry(EntryReader::new(&self.file, entry), entry.size, place, &self.limits)
    }

    fn find(&self, name: &str) -> Result<(&Entry, Place), DataError> {
        let place = self.place.array(name);
        match self.entries.iter().find(|entry| entry.key == name) {
            Some(entry) => Ok((entry, place)),
            None => Err(DataError::Missing { place, available: self.names.clone() }),
        }
    }
}

/// Reads the decompressed bytes of an entry.
pub(crate) struct EntryReader<'a> {
    decoder: Decoder<'a>,
    crc: crc32fast::Hasher,
    expected_crc: u32,
}

enum Decoder<'a> {
    Stored(Range<'a>),
    Deflate(DeflateDecoder<BufReader<Range<'a>>>),
}

impl<'a> EntryReader<'a> {
    fn new(file: &'a File, entry: &Entry) -> Self {
        let raw = Range { file, at: entry.start, left: entry.compressed };
        Self {
            decoder: match entry.method {
                Method::Stored => Decoder::Stored(raw),
                Method::Deflate => {
                    Decoder::Deflate(DeflateDecoder::new(BufReader::with_capacity(CHUNK, raw)))
                }
            },
            crc: crc32fast::Hasher::new(),
            expected_crc: entry.crc,
        }
    }

    /// Checks that the entry was read to its end, and its checksum.
    pub(crate) fn finish(mut self, place: &Place) -> Result<(), DataError> {
        if fill(&mut self, &mut [0], place)? > 0 {
            return Err(DataError::DamagedData {
                place: place.clone(),
                problem: "it inflates to more bytes than the table of contents says".to_owned(),
            });
        }
        let found = self.crc.finalize();
        if found != self.expected_crc {
            return Err(DataError::Checksum { place: place.clone(), found, expected: self.expected_crc });
        }
        let Decoder::Deflate(mut decoder) = self.decoder else {
            return Ok(()); // already read to its end above
        };
        match decoder.get_mut().fill_buf() {
            Ok([]) => Ok(()),
            Ok(_) => Err(DataError::DamagedData {
                place: place.clone(),
                problem: "bytes follow the end of the compressed stream".to_owned(),
            }),
            Err(source) => Err(DataError::Io { place: place.clone(), source }),
        }
    }
}

impl Read for EntryReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = match &mut self.decoder {
            Decoder::Stored(raw) => raw.read(buffer)?,
            Decoder::Deflate(decoder) => decoder.read(buffer)?,
        };
        self.crc.update(&buffer[..n]);
        Ok(n)
    }
}

/// A range of a file. Uses positioned reads, so that several ranges can be read at the same time.
struct Range<'a> {
    file: &'a File,
    at: u64,
    left: u64,
}

impl Read for Range<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let n = read_at(self.file, &mut buffer[..wanted], self.at)?;
        self.at += n as u64;
        self.left -= n as u64;
        Ok(n)
    }
}

#[cfg(unix)]
pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}
