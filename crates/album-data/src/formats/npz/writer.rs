//! Writing archives for `np.load`.

use std::io::{self, Write};
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::error::{DataError, Place};
use crate::formats::npz::array::{Array, DType, Data, elements};
use crate::formats::npz::npy::{CHUNK, MAGIC};
use crate::limits::Limits;
use album_base::atomic::{self, AtomicFile};

/// Writes an `.npz` archive, which appears under its name only on [`finish`](Self::finish). The output is
/// deterministic: equal arrays give equal bytes.
pub struct NpzWriter {
    zip: ZipWriter<AtomicFile>,
    place: Place,
    method: CompressionMethod,
    names: Vec<String>,
    /// Bytes of the current array not yet written, fewer than two portions.
    pending: Vec<u8>,
    /// Set while an array is being written; stays set if that fails.
    broken: bool,
}

impl std::fmt::Debug for NpzWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NpzWriter")
            .field("place", &self.place)
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

impl NpzWriter {
    /// Creates a compressed archive, like `np.savez_compressed`.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, DataError> {
        Self::open(path.as_ref(), CompressionMethod::Deflated)
    }

    /// Creates an uncompressed archive, like `np.savez`.
    pub fn create_stored(path: impl AsRef<Path>) -> Result<Self, DataError> {
        Self::open(path.as_ref(), CompressionMethod::Stored)
    }

    fn open(path: &Path, method: CompressionMethod) -> Result<Self, DataError> {
        let place = Place::file(path);
        atomic::sweep(path);
        let file =
            AtomicFile::create(path).map_err(|source| DataError::Io { place: place.clone(), source })?;
        Ok(Self {
            zip: ZipWriter::new(file),
            place,
            method,
            names: Vec::new(),
            pending: Vec::new(),
            broken: false,
        })
    }

    /// Adds an array of `int64`.
    pub fn array_i64(&mut self, name: &str, shape: &[usize], data: &[i64]) -> Result<(), DataError> {
        self.put(name, DType::I64, shape, data, i64::to_le_bytes)
    }

    /// Adds an array of `float64`.
    pub fn array_f64(&mut self, name: &str, shape: &[usize], data: &[f64]) -> Result<(), DataError> {
        self.put(name, DType::F64, shape, data, f64::to_le_bytes)
    }

    /// Adds an array of `float32`.
    pub fn array_f32(&mut self, name: &str, shape: &[usize], data: &[f32]) -> Result<(), DataError> {
        self.put(name, DType::F32, shape, data, f32::to_le_bytes)
    }

    /// Adds an array of `bool`.
    pub fn array_bool(&mut self, name: &str, shape: &[usize], data: &[bool]) -> Result<(), DataError> {
        self.put(name, DType::Bool, shape, data, |b| [u8::from(b)])
    }

    /// Adds an array of strings, which NumPy can read but [`Npz`](crate::Npz) cannot.
    pub fn array_text<'a>(
        &mut self,
        name: &str,
        labels: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<(), DataError> {
        let place = self.place.array(name);
        let width = labels.clone().map(|label| label.chars().count()).max().unwrap_or(0).max(1);
        self.start(name, &format!("<U{width}"), 4 * width, &[labels.clone().count()])?;
        let mut row = Vec::with_capacity(width);
        for label in labels {
            row.clear();
            row.extend(label.chars().map(u32::from));
            row.resize(width, 0);
            self.encoded(&place, &row, u32::to_le_bytes)?;
        }
        self.end(name)
    }

    /// Adds an array of any type.
    pub fn array(&mut self, name: &str, array: &Array) -> Result<(), DataError> {
        let place = self.place.array(name);
        if elements(&array.shape) != Some(array.data.len()) {
            return Err(DataError::ShapeMismatch {
                place,
                shape: array.shape.clone(),
                found: array.data.len(),
            });
        }
        self.start(name, array.dtype().descr(), array.dtype().size(), &array.shape)?;
        self.elements_of(&place, &array.data)?;
        self.end(name)
    }

    /// Completes the archive and moves it into place.
    pub fn finish(self) -> Result<(), DataError> {
        self.check_whole()?;
        let place = self.place;
        let io_error = |source| DataError::Io { place, source };
        match self.zip.finish() {
            Ok(file) => file.commit().map_err(io_error),
            Err(e) => Err(io_error(e.into())),
        }
    }

    /// Adds an array from consecutive parts, only one of which has to be in memory at a time.
    ///
    /// ```
    /// # fn main() -> Result<(), album_data::DataError> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("x.npz");
    /// use album_data::{DType, Data, DataError, Npz, NpzWriter};
    /// let mut npz = NpzWriter::create(&path)?;
    /// let parts = (0..3).map(|i| Ok::<_, DataError>(Data::I64(vec![i, i])));
    /// npz.array_of_parts("twice", DType::I64, &[3, 2], parts)?;
    /// npz.finish()?;
    /// assert_eq!(Npz::open(&path)?.read("twice")?.data, Data::I64(vec![0, 0, 1, 1, 2, 2]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn array_of_parts<E: From<DataError>>(
        &mut self,
        name: &str,
        dtype: DType,
        shape: &[usize],
        parts: impl IntoIterator<Item = Result<Data, E>>,
    ) -> Result<(), E> {
        let place = self.place.array(name);
        self.start(name, dtype.descr(), dtype.size(), shape)?;
        let mut found = 0;
        for part in parts {
            let part = part?;
            if part.dtype() != dtype {
                let expected = "the type of the whole array";
                return Err(DataError::WrongType { place, found: part.dtype(), expected }.into());
            }
            found += part.len();
            self.elements_of(&place, &part)?;
        }
        if elements(shape) != Some(found) {
            return Err(DataError::ShapeMismatch { place, shape: shape.to_vec(), found }.into());
        }
        Ok(self.end(name)?)
    }

    fn put<T: Copy, const N: usize>(
        &mut self,
        name: &str,
        dtype: DType,
        shape: &[usize],
        data: &[T],
        encode: fn(T) -> [u8; N],
    ) -> Result<(), DataError> {
        let place = self.place.array(name);
        if elements(shape) != Some(data.len()) {
            return Err(DataError::ShapeMismatch { place, shape: shape.to_vec(), found: data.len() });
        }
        self.start(name, dtype.descr(), dtype.size(), shape)?;
        self.encoded(&place, data, encode)?;
        self.end(name)
    }

    /// Begins the entry of an array. Until [`end`](Self::end), the archive is marked as broken.
    fn start(&mut self, name: &str, descr: &str, size: usize, shape: &[usize]) -> Result<(), DataError> {
        self.check_whole()?;
        let place = self.place.array(name);
        let max_rank = Limits::default().max_rank;
        if shape.len() > max_rank {
            return Err(DataError::Limit {
                place,
                what: "the number of axes",
                found: shape.len() as u64,
                limit: max_rank as u64,
            });
        }
        self.check_name(name)?;
        let header = header(descr, shape);
        // Deflate expands incompressible data by less than 0.1 %.
        let bytes = (header.len() as u64)
            .saturating_add((elements(shape).unwrap_or(usize::MAX) as u64).saturating_mul(size as u64));
        let large = bytes.saturating_add(bytes / 1000 + 1000) > u64::from(u32::MAX);
        let options = SimpleFileOptions::default()
            .compression_method(self.method)
            .large_file(large)
            .last_modified_time(zip::DateTime::default())
            .unix_permissions(0o644);

        let io_error = |source| DataError::Io { place: place.clone(), source };
        self.broken = true;
        self.zip.start_file(format!("{name}.npy"), options).map_err(|e| io_error(e.into()))?;
        self.zip.write_all(&header).map_err(io_error)
    }

    fn elements_of(&mut self, place: &Place, data: &Data) -> Result<(), DataError> {
        match data {
            Data::Bool(v) => self.encoded(place, v, |b| [u8::from(b)]),
            Data::I8(v) => self.encoded(place, v, i8::to_le_bytes),
            Data::I16(v) => self.encoded(place, v, i16::to_le_bytes),
            Data::I32(v) => self.encoded(place, v, i32::to_le_bytes),
            Data::I64(v) => self.encoded(place, v, i64::to_le_bytes),
            Data::U8(v) => self.encoded(place, v, u8::to_le_bytes),
            Data::U16(v) => self.encoded(place, v, u16::to_le_bytes),
            Data::U32(v) => self.encoded(place, v, u32::to_le_bytes),
            Data::U64(v) => self.encoded(place, v, u64::to_le_bytes),
            Data::F32(v) => self.encoded(place, v, f32::to_le_bytes),
            Data::F64(v) => self.encoded(place, v, f64::to_le_bytes),
        }
    }

    /// Encodes elements and writes full portions. Deflate's output depends on how its input is split, so all
    /// portions have the same size.
    fn encoded<T: Copy, const N: usize>(
        &mut self,
        place: &Place,
        data: &[T],
        encode: fn(T) -> [u8; N],
    ) -> Result<(), DataError> {
        for part in data.chunks(CHUNK / N) {
            self.pending.extend(part.iter().flat_map(|&x| encode(x)));
            if self.pending.len() >= CHUNK {
                self.write(place, CHUNK)?;
            }
        }
        Ok(())
    }

    /// Writes the first `bytes` pending bytes.
    fn write(&mut self, place: &Place, bytes: usize) -> Result<(), DataError> {
        let written = self.zip.write_all(&self.pending[..bytes]);
        self.pending.drain(..bytes);
        written.map_err(|source| DataError::Io { place: place.clone(), source })
    }

    fn check_whole(&self) -> Result<(), DataError> {
        if !self.broken {
            return Ok(());
        }
        let source = io::Error::other("an array could not be written, so the archive is dropped");
        Err(DataError::Io { place: self.place.clone(), source })
    }

    fn end(&mut self, name: &str) -> Result<(), DataError> {
        self.write(&self.place.array(name), self.pending.len())?;
        self.broken = false;
        self.names.push(name.to_owned());
        Ok(())
    }

    /// Refuses names that the reader would refuse.
    fn check_name(&self, name: &str) -> Result<(), DataError> {
        if self.names.iter().any(|known| known == name) {
            return Err(DataError::DuplicateName { place: self.place.array(name) });
        }
        match crate::formats::npz::zip_directory::name_problem(name) {
            None => Ok(()),
            Some(problem) => {
                Err(DataError::EntryName { place: self.place.clone(), name: name.to_owned(), problem })
            }
        }
    }
}

/// An npy header of version 1.0, padded to a multiple of 64 bytes as by NumPy.
fn header(descr: &str, shape: &[usize]) -> Vec<u8> {
    let axes: Vec<String> = shape.iter().map(|n| n.to_string()).collect();
    let comma = if shape.len() == 1 { "," } else { "" };
    let mut text =
        format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{comma}), }}", descr, axes.join(", "));
    let start = MAGIC.len() + 4;
    while !(start + text.len() + 1).is_multiple_of(64) {
        text.push(' ');
    }
    text.push('\n');
    let mut header = MAGIC.to_vec();
    header.extend([1, 0]);
    // The cast is safe: even 64 axes of 20 digits are far below the 64 KiB limit of version 1.0.
    header.extend((text.len() as u16).to_le_bytes());
    header.extend(text.as_bytes());
    header
}
