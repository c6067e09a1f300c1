//! Archives that `np.load` reads.

use std::io::{self, Write};
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::array::{Array, DType, Data, elements};
use crate::atomic::AtomicFile;
use crate::error::{DataError, Place};
use crate::limits::Limits;
use crate::npy::{CHUNK, MAGIC};

/// Writes an `.npz` archive, which appears under its name only on
/// [`finish`](Self::finish). Equal arrays give equal bytes, whenever written.
pub struct NpzWriter {
    zip: ZipWriter<AtomicFile>,
    place: Place,
    method: CompressionMethod,
    names: Vec<String>,
    /// Set while an array is being written, and for good if that fails.
    broken: bool,
}

impl NpzWriter {
    /// Starts an archive, deflated like that of `np.savez_compressed` or plain
    /// like that of `np.savez`.
    pub fn create(path: impl AsRef<Path>, compressed: bool) -> Result<Self, DataError> {
        let path = path.as_ref();
        let place = Place::file(path);
        let file =
            AtomicFile::create(path).map_err(|source| DataError::Io { place: place.clone(), source })?;
        Ok(Self {
            zip: ZipWriter::new(file),
            place,
            method: if compressed { CompressionMethod::Deflated } else { CompressionMethod::Stored },
            names: Vec::new(),
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

    /// Adds an array of any type.
    pub fn array(&mut self, name: &str, array: &Array) -> Result<(), DataError> {
        let shape = &array.shape;
        let dtype = array.dtype();
        match &array.data {
            Data::Bool(v) => self.array_bool(name, shape, v),
            Data::I8(v) => self.put(name, dtype, shape, v, i8::to_le_bytes),
            Data::I16(v) => self.put(name, dtype, shape, v, i16::to_le_bytes),
            Data::I32(v) => self.put(name, dtype, shape, v, i32::to_le_bytes),
            Data::I64(v) => self.array_i64(name, shape, v),
            Data::U8(v) => self.put(name, dtype, shape, v, u8::to_le_bytes),
            Data::U16(v) => self.put(name, dtype, shape, v, u16::to_le_bytes),
            Data::U32(v) => self.put(name, dtype, shape, v, u32::to_le_bytes),
            Data::U64(v) => self.put(name, dtype, shape, v, u64::to_le_bytes),
            Data::F32(v) => self.array_f32(name, shape, v),
            Data::F64(v) => self.array_f64(name, shape, v),
        }
    }

    /// Completes the archive and puts it in its place.
    pub fn finish(self) -> Result<(), DataError> {
        let place = self.place;
        let io_error = |source| DataError::Io { place, source };
        if self.broken {
            return Err(io_error(io::Error::other(
                "an array could not be written, so the archive is dropped",
            )));
        }
        match self.zip.finish() {
            Ok(file) => file.commit().map_err(io_error),
            Err(e) => Err(io_error(e.into())),
        }
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
        let header = header(dtype, shape);
        // Deflate grows what it cannot shrink by less than a thousandth.
        let bytes = (header.len() + data.len() * N) as u64;
        let large = bytes + bytes / 1000 + 1000 > u64::from(u32::MAX);
        let options = SimpleFileOptions::default()
            .compression_method(self.method)
            .large_file(large)
            .last_modified_time(zip::DateTime::default())
            .unix_permissions(0o644);

        let io_error = |source| DataError::Io { place: place.clone(), source };
        self.broken = true;
        self.zip.start_file(format!("{name}.npy"), options).map_err(|e| io_error(e.into()))?;
        self.zip.write_all(&header).map_err(io_error)?;
        let mut chunk = Vec::with_capacity(CHUNK);
        for part in data.chunks(CHUNK / N) {
            chunk.clear();
            chunk.extend(part.iter().flat_map(|&x| encode(x)));
            self.zip.write_all(&chunk).map_err(io_error)?;
        }
        self.broken = false;
        self.names.push(name.to_owned());
        Ok(())
    }

    /// Refuses the names that the reader refuses.
    fn check_name(&self, name: &str) -> Result<(), DataError> {
        if self.names.iter().any(|known| known == name) {
            return Err(DataError::DuplicateName { place: self.place.array(name) });
        }
        match crate::directory::name_problem(name) {
            None => Ok(()),
            Some(problem) => {
                Err(DataError::EntryName { place: self.place.clone(), name: name.to_owned(), problem })
            }
        }
    }
}

/// An npy header of version 1.0, padded to a multiple of 64 bytes like NumPy's.
fn header(dtype: DType, shape: &[usize]) -> Vec<u8> {
    let axes: Vec<String> = shape.iter().map(|n| n.to_string()).collect();
    let comma = if shape.len() == 1 { "," } else { "" };
    let mut text = format!(
        "{{'descr': '{}', 'fortran_order': False, 'shape': ({}{comma}), }}",
        dtype.descr(),
        axes.join(", ")
    );
    let start = MAGIC.len() + 4;
    while !(start + text.len() + 1).is_multiple_of(64) {
        text.push(' ');
    }
    text.push('\n');
    let mut header = MAGIC.to_vec();
    header.extend([1, 0]);
    // 64 axes of 20 digits fit in the 16 bits of version 1.0 forty times over.
    header.extend((text.len() as u16).to_le_bytes());
    header.extend(text.as_bytes());
    header
}
