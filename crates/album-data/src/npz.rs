//! npz archives: several npy arrays in one zip file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Take};
use std::path::Path;

use flate2::Crc;
use flate2::bufread::DeflateDecoder;

use crate::array::Array;
use crate::directory::{Entry, Method, read_directory};
use crate::error::{DataError, Place};
use crate::limits::Limits;
use crate::npy::{CHUNK, fill, open_regular, read_array};

/// An open `.npz` archive.
///
/// Opening reads and checks only the table of contents; arrays are inflated one
/// at a time, straight into their vectors, and checked against their checksums.
#[derive(Debug)]
pub struct Npz {
    file: File,
    place: Place,
    limits: Limits,
    names: Vec<String>,
    entries: Vec<Entry>,
}

impl Npz {
    /// Opens an archive within the default [`Limits`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, DataError> {
        Self::open_with(path, &Limits::default())
    }

    /// Opens an archive within the given limits.
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

    /// The arrays' names, without `.npy`, in the order of the file.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether there is an array of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }

    /// Reads one array.
    pub fn read(&mut self, name: &str) -> Result<Array, DataError> {
        let place = self.place.array(name);
        let Some(entry) = self.entries.iter().find(|entry| entry.key == name) else {
            return Err(DataError::Missing { place, available: self.names.clone() });
        };
        let mut stream = EntryReader::new(&mut self.file, entry, &place)?;
        let array = read_array(&mut stream, entry.size, &place, &self.limits)?;
        stream.finish(&place)?;
        Ok(array)
    }
}

/// The inflated bytes of one entry.
struct EntryReader<'a> {
    decoder: Decoder<'a>,
    crc: Crc,
    expected_crc: u32,
}

type Raw<'a> = BufReader<Take<&'a mut File>>;

enum Decoder<'a> {
    Stored(Raw<'a>),
    Deflate(DeflateDecoder<Raw<'a>>),
}

impl<'a> EntryReader<'a> {
    fn new(file: &'a mut File, entry: &Entry, place: &Place) -> Result<Self, DataError> {
        file.seek(SeekFrom::Start(entry.start))
            .map_err(|source| DataError::Io { place: place.clone(), source })?;
        let raw = BufReader::with_capacity(CHUNK, file.take(entry.compressed));
        Ok(Self {
            decoder: match entry.method {
                Method::Stored => Decoder::Stored(raw),
                Method::Deflate => Decoder::Deflate(DeflateDecoder::new(raw)),
            },
            crc: Crc::new(),
            expected_crc: entry.crc,
        })
    }

    /// Checks that nothing follows and that the bytes are those once written.
    fn finish(mut self, place: &Place) -> Result<(), DataError> {
        if fill(&mut self, &mut [0], place)? > 0 {
            return Err(DataError::DamagedData {
                place: place.clone(),
                problem: "it inflates to more bytes than the table of contents says".to_owned(),
            });
        }
        if self.crc.sum() != self.expected_crc {
            return Err(DataError::Checksum {
                place: place.clone(),
                found: self.crc.sum(),
                expected: self.expected_crc,
            });
        }
        let raw = match &mut self.decoder {
            Decoder::Stored(raw) => raw,
            Decoder::Deflate(decoder) => decoder.get_mut(),
        };
        match raw.fill_buf() {
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
