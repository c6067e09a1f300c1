//! The npy format: a text header with type and shape, followed by the elements.
//!
//! Supported are versions 1.0, 2.0 and 3.0 with the little-endian element types of [`DType`]. The byte order
//! is written as `<`, as `|` if it does not matter, or as `=` if native, which is taken as little-endian.
//! Big-endian numbers, half floats, complex numbers, strings, dates, structured types and Python objects are
//! refused with a hint on what to save instead. Fortran-ordered arrays are transposed on reading.

mod header;

use std::io::{self, Read};
use std::path::Path;

use crate::error::{DataError, Place};
use crate::formats::file::open_regular;
use crate::formats::npz::array::{Array, DType, Data, elements, value_error};
use crate::limits::Limits;
use header::{Header, read_header};

/// The first bytes of every npy file.
pub(crate) const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// Size of the read buffer: fits in the CPU cache, and is a multiple of every element size.
pub(crate) const CHUNK: usize = 64 << 10;

/// Reads an array from a `.npy` file, with the default [`Limits`].
pub fn read_npy(path: impl AsRef<Path>) -> Result<Array, DataError> {
    read_npy_with(path, &Limits::default())
}

/// Reads an array from a `.npy` file, with the given limits.
pub fn read_npy_with(path: impl AsRef<Path>, limits: &Limits) -> Result<Array, DataError> {
    let path = path.as_ref();
    let place = Place::file(path);
    let (mut file, size) = open_regular(path)?;
    if size > limits.max_array_bytes {
        return Err(DataError::Limit {
            place,
            what: "the size of the file in bytes",
            found: size,
            limit: limits.max_array_bytes,
        });
    }
    read_array(&mut file, size, &place, limits)
}

/// Reads an array from `reader`, which claims to hold `size` bytes.
///
/// Nothing is allocated before header and size agree. The reader is left after the last element; the caller
/// checks that nothing follows.
pub(crate) fn read_array(
    reader: &mut dyn Read,
    size: u64,
    place: &Place,
    limits: &Limits,
) -> Result<Array, DataError> {
    let layout = read_layout(reader, size, place, limits)?;
    read_elements(reader, layout, place)
}

/// The layout of the elements, from a header that agrees with their size.
pub(crate) struct Layout {
    pub dtype: DType,
    pub shape: Vec<usize>,
    /// Whether the elements have to be transposed from Fortran order.
    pub fortran: bool,
    pub count: usize,
    pub bytes: u64,
}

/// Reads the header of an array whose total size is `size` bytes.
pub(crate) fn read_layout(
    reader: &mut dyn Read,
    size: u64,
    place: &Place,
    limits: &Limits,
) -> Result<Layout, DataError> {
    let (Header { dtype, fortran, shape }, header_bytes) = read_header(reader, size, place, limits)?;
    let overflow = || DataError::Header {
        place: place.clone(),
        problem: format!("shape {shape:?} has more elements than any memory"),
    };
    let count = elements(&shape).ok_or_else(overflow)?;
    let bytes = count.checked_mul(dtype.size()).ok_or_else(overflow)? as u64;
    let found = size - header_bytes;
    if found != bytes {
        return Err(DataError::Length { place: place.clone(), shape, found, expected: bytes });
    }
    // With fewer than two axes, or no elements, both orders are the same.
    let fortran = fortran && shape.len() > 1 && count > 0;
    Ok(Layout { dtype, shape, fortran, count, bytes })
}

/// Reads the elements described by a header.
pub(crate) fn read_elements(
    reader: &mut dyn Read,
    layout: Layout,
    place: &Place,
) -> Result<Array, DataError> {
    let Layout { dtype, shape, fortran, count, bytes } = layout;
    let mut source = Elements { reader, place, shape: &shape, fortran, count, bytes };
    let data = match dtype {
        DType::Bool => Data::Bool(source.bools()?),
        DType::I8 => Data::I8(source.vector(i8::from_le_bytes)?),
        DType::I16 => Data::I16(source.vector(i16::from_le_bytes)?),
        DType::I32 => Data::I32(source.vector(i32::from_le_bytes)?),
        DType::I64 => Data::I64(source.vector(i64::from_le_bytes)?),
        DType::U8 => Data::U8(source.vector(u8::from_le_bytes)?),
        DType::U16 => Data::U16(source.vector(u16::from_le_bytes)?),
        DType::U32 => Data::U32(source.vector(u32::from_le_bytes)?),
        DType::U64 => Data::U64(source.vector(u64::from_le_bytes)?),
        DType::F32 => Data::F32(source.vector(f32::from_le_bytes)?),
        DType::F64 => Data::F64(source.vector(f64::from_le_bytes)?),
    };
    Ok(Array { shape, data, place: place.clone() })
}

/// Decodes the elements of an array.
struct Elements<'a> {
    reader: &'a mut dyn Read,
    place: &'a Place,
    shape: &'a [usize],
    fortran: bool,
    count: usize,
    bytes: u64,
}

impl Elements<'_> {
    /// Reads all elements, in C order.
    fn vector<T: Copy + Default, const N: usize>(
        &mut self,
        decode: fn([u8; N]) -> T,
    ) -> Result<Vec<T>, DataError> {
        let mut all: Vec<T> = Vec::new();
        all.try_reserve_exact(self.count)
            .map_err(|_| DataError::Memory { place: self.place.clone(), bytes: self.bytes })?;
        if self.fortran {
            all.resize(self.count, T::default());
            let mut order = FortranOrder::new(self.shape);
            self.chunks(|chunk| {
                for bytes in chunk.as_chunks::<N>().0 {
                    all[order.next()] = decode(*bytes);
                }
            })?;
        } else {
            self.chunks(|chunk| all.extend(chunk.as_chunks::<N>().0.iter().map(|b| decode(*b))))?;
        }
        Ok(all)
    }

    /// Reads booleans; every byte must be 0 or 1.
    fn bools(&mut self) -> Result<Vec<bool>, DataError> {
        let bytes = self.vector(u8::from_le_bytes)?;
        match bytes.iter().position(|&b| b > 1) {
            Some(i) => Err(value_error(
                self.place.clone(),
                self.shape,
                i,
                format_args!("byte {} in a bool array", bytes[i]),
                "0 or 1",
            )),
            // Collecting in place reuses the allocation.
            None => Ok(bytes.into_iter().map(|b| b == 1).collect()),
        }
    }

    /// Passes all bytes to `take`, in chunks of whole elements.
    fn chunks(&mut self, mut take: impl FnMut(&[u8])) -> Result<(), DataError> {
        let mut buffer = vec![0; CHUNK.min(self.bytes as usize)];
        let mut done = 0;
        while done < self.bytes {
            let wanted = buffer.len().min((self.bytes - done) as usize);
            let got = fill(self.reader, &mut buffer[..wanted], self.place)?;
            done += got as u64;
            if got < wanted {
                return Err(DataError::Length {
                    place: self.place.clone(),
                    shape: self.shape.to_vec(),
                    found: done,
                    expected: self.bytes,
                });
            }
            take(&buffer[..wanted]);
        }
        Ok(())
    }
}

/// Iterates over the C-order positions of elements stored in Fortran order.
struct FortranOrder {
    /// Length, stride and current index of each axis.
    axes: Vec<(usize, usize, usize)>,
    position: usize,
}

impl FortranOrder {
    fn new(shape: &[usize]) -> Self {
        let mut axes: Vec<_> = shape.iter().map(|&length| (length, 0, 0)).collect();
        let mut stride = 1;
        for (length, distance, _) in axes.iter_mut().rev() {
            *distance = stride;
            stride *= *length;
        }
        Self { axes, position: 0 }
    }

    fn next(&mut self) -> usize {
        let current = self.position;
        for (length, distance, index) in &mut self.axes {
            *index += 1;
            self.position += *distance;
            if *index < *length {
                break;
            }
            self.position -= *index * *distance;
            *index = 0;
        }
        current
    }
}

/// Reads until the buffer is full or the data ends; returns the number of bytes read.
pub(crate) fn fill(reader: &mut dyn Read, buffer: &mut [u8], place: &Place) -> Result<usize, DataError> {
    let mut got = 0;
    while got < buffer.len() {
        match reader.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            // Not from the operating system, so from the decompressor.
            Err(e) if e.raw_os_error().is_none() => {
                return Err(DataError::DamagedData { place: place.clone(), problem: e.to_string() });
            }
            Err(source) => {
                return Err(DataError::Io { place: place.clone(), source });
            }
        }
    }
    Ok(got)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fortran_order_becomes_c_order() {
        // Axes of 2, 3 and 4; every element's value is its C-order position.
        let mut file = Vec::new();
        for k in 0..4 {
            for j in 0..3 {
                for i in 0..2u8 {
                    file.push(i * 12 + j * 4 + k);
                }
            }
        }
        let header = b"{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 4)}";
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0, header.len() as u8, 0]);
        bytes.extend(header);
        bytes.extend(file);
        let size = bytes.len() as u64;
        let array = read_array(&mut bytes.as_slice(), size, &Place::default(), &Limits::default()).unwrap();
        assert_eq!(array.shape, [2, 3, 4]);
        assert_eq!(array.data, Data::U8((0..24).collect()));
    }
}
