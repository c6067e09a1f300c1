//! The npy format: a text header that says type and shape, then the elements.
//!
//! Read are format versions 1.0, 2.0 and 3.0 with the element types of
//! [`DType`], little-endian (`<`, or `|` and `=` which NumPy uses for types
//! where the order does not matter or is the machine's own; `=` is taken as
//! little-endian). Big-endian, half floats, complex numbers, strings, dates,
//! structured types and Python objects are refused with a hint what to save
//! instead. Fortran-ordered arrays are transposed while they are read.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use album_base::files::{self, Links};

use crate::error::{DataError, Place};
use crate::formats::npz::array::{Array, DType, Data, elements, value_error};
use crate::limits::Limits;

/// The first bytes of every npy file.
pub(crate) const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// Elements pass through a buffer of this size, which stays in the CPU's cache.
/// A multiple of every element size.
pub(crate) const CHUNK: usize = 64 << 10;

/// Reads a single array from a `.npy` file, within the default [`Limits`].
pub fn read_npy(path: impl AsRef<Path>) -> Result<Array, DataError> {
    read_npy_with(path, &Limits::default())
}

/// Reads a single array from a `.npy` file, within the given limits.
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

/// Opens a file and tells its size; a directory, pipe or device is refused.
pub(crate) fn open_regular(path: &Path) -> Result<(File, u64), DataError> {
    let io_error = |source| DataError::Io { place: Place::file(path), source };
    let file = files::open(path, Links::Follow).map_err(io_error)?;
    let size = file.metadata().map_err(io_error)?.len();
    Ok((file, size))
}

/// What a file looks like from its first bytes, for error messages.
pub(crate) fn describe_kind(start: &[u8]) -> String {
    match start {
        [] => "an empty file".to_owned(),
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => "a zip archive (.npz)".to_owned(),
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => "a single .npy array".to_owned(),
        [0x80, 2..=5, ..] => "a Python pickle, which album never reads".to_owned(),
        [0x89, b'H', b'D', b'F', ..] => "an HDF5 file".to_owned(),
        [0x1f, 0x8b, ..] => "a gzip file".to_owned(),
        _ => format!("a file that starts with {}", quote(&start[..start.len().min(6)])),
    }
}

/// Bytes from a file as printable text, cut to a length that fits a message.
fn quote(bytes: &[u8]) -> String {
    const SHOWN: usize = 60;
    let shown = bytes[..bytes.len().min(SHOWN)].escape_ascii();
    let dots = if bytes.len() > SHOWN { "..." } else { "" };
    format!("`{shown}{dots}`")
}

/// Reads one array from `reader`, which promises to hold `size` bytes.
///
/// Nothing is allocated before header and size agree. Afterwards the reader
/// stands behind the last element; the caller checks that nothing follows.
pub(crate) fn read_array(
    reader: &mut dyn Read,
    size: u64,
    place: &Place,
    limits: &Limits,
) -> Result<Array, DataError> {
    let layout = read_layout(reader, size, place, limits)?;
    read_elements(reader, layout, place)
}

/// What a header says of the elements behind it, once it agrees with their size.
pub(crate) struct Layout {
    pub dtype: DType,
    pub shape: Vec<usize>,
    /// Whether the elements stand in another order than ours.
    pub fortran: bool,
    pub count: usize,
    pub bytes: u64,
}

/// Reads the header of an array that takes `size` bytes in all.
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
    // One axis, or none, is in both orders at once; so is no element.
    let fortran = fortran && shape.len() > 1 && count > 0;
    Ok(Layout { dtype, shape, fortran, count, bytes })
}

/// Reads the elements that a header announced.
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

/// The elements of one array, on their way from the file to a vector.
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

    /// Reads flags, of which each must be the byte 0 or 1.
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
            // Collects into the same allocation.
            None => Ok(bytes.into_iter().map(|b| b == 1).collect()),
        }
    }

    /// Hands over all bytes, in chunks of whole elements.
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

/// The C-order positions of elements that come first axis fastest.
struct FortranOrder {
    /// Per axis: its length, the distance of neighbours, the current index.
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

/// Reads until the buffer is full or the data ends; tells how much there was.
pub(crate) fn fill(reader: &mut dyn Read, buffer: &mut [u8], place: &Place) -> Result<usize, DataError> {
    let mut got = 0;
    while got < buffer.len() {
        match reader.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            // Not from the operating system, so the inflater's complaint.
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

/// The header's three entries.
#[derive(Debug, PartialEq)]
struct Header {
    dtype: DType,
    fortran: bool,
    shape: Vec<usize>,
}

/// Reads the header; also tells how many bytes it takes.
fn read_header(
    reader: &mut dyn Read,
    size: u64,
    place: &Place,
    limits: &Limits,
) -> Result<(Header, u64), DataError> {
    let bad = |problem: String| DataError::Header { place: place.clone(), problem };
    let mut start = [0; 8];
    let got = fill(reader, &mut start, place)?;
    if got < 8 || &start[..6] != MAGIC {
        return Err(DataError::WrongFileKind {
            place: place.clone(),
            found: describe_kind(&start[..got]),
            expected: "an npy array, which starts with `\\x93NUMPY`",
        });
    }
    let (major, minor) = (start[6], start[7]);
    let width = match (major, minor) {
        (1, 0) => 2,
        (2 | 3, 0) => 4,
        _ => {
            return Err(bad(format!("format version {major}.{minor}, expected 1.0, 2.0 or 3.0")));
        }
    };
    let cut = || bad(format!("the data ends within the header, after {size} bytes"));
    let mut length = [0; 4];
    if fill(reader, &mut length[..width], place)? < width {
        return Err(cut());
    }
    let length = u64::from(u32::from_le_bytes(length));
    if length > limits.max_header_bytes {
        return Err(DataError::Limit {
            place: place.clone(),
            what: "the length of the npy header in bytes",
            found: length,
            limit: limits.max_header_bytes,
        });
    }
    let total = 8 + width as u64 + length;
    if total > size {
        return Err(cut());
    }
    let mut text = vec![0; length as usize];
    if fill(reader, &mut text, place)? < text.len() {
        return Err(cut());
    }
    let mut parser = Parser { text: &text, at: 0, place, max_rank: limits.max_rank };
    Ok((parser.header()?, total))
}

/// A strict reader of the one Python dictionary that an npy header is, e.g.
/// `{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }`.
struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    place: &'a Place,
    max_rank: usize,
}

impl<'a> Parser<'a> {
    fn header(&mut self) -> Result<Header, DataError> {
        let (mut dtype, mut fortran, mut shape) = (None, None, None);
        self.expect(b'{', "`{`")?;
        while self.peek() != Some(b'}') {
            let key = self.string()?;
            self.expect(b':', "`:`")?;
            let twice = match key {
                b"descr" => dtype.replace(self.dtype()?).is_some(),
                b"fortran_order" => fortran.replace(self.boolean()?).is_some(),
                b"shape" => shape.replace(self.shape()?).is_some(),
                _ => return Err(self.bad(&format!("unknown key {}", quote(key)))),
            };
            if twice {
                return Err(self.bad(&format!("key {} appears twice", quote(key))));
            }
            if self.peek() != Some(b'}') {
                self.expect(b',', "`,` or `}`")?;
            }
        }
        self.expect(b'}', "`}`")?;
        if let Some(byte) = self.peek() {
            return Err(self.bad(&format!("found {} behind the dictionary", quote(&[byte]))));
        }
        match (dtype, fortran, shape) {
            (Some(dtype), Some(fortran), Some(shape)) => Ok(Header { dtype, fortran, shape }),
            (None, _, _) => Err(self.bad("key `descr` is missing")),
            (_, None, _) => Err(self.bad("key `fortran_order` is missing")),
            (_, _, None) => Err(self.bad("key `shape` is missing")),
        }
    }

    /// A quoted string without escapes, which no type that we read needs.
    fn string(&mut self) -> Result<&'a [u8], DataError> {
        let quote_mark = match self.peek() {
            Some(mark @ (b'\'' | b'"')) => mark,
            _ => return Err(self.found_instead("a quoted string")),
        };
        let rest = &self.text[self.at + 1..];
        match rest.iter().position(|&b| b == quote_mark) {
            Some(end) if !rest[..end].contains(&b'\\') => {
                self.at += end + 2;
                Ok(&rest[..end])
            }
            _ => Err(self.found_instead("a closed string without escapes")),
        }
    }

    fn boolean(&mut self) -> Result<bool, DataError> {
        self.peek();
        for (word, value) in [(&b"True"[..], true), (b"False", false)] {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.found_instead("`True` or `False`"))
    }

    /// A tuple of lengths: `()`, `(3,)`, `(3, 4)`.
    fn shape(&mut self) -> Result<Vec<usize>, DataError> {
        let mut shape = Vec::new();
        self.expect(b'(', "`(`")?;
        while self.peek() != Some(b')') {
            if shape.len() == self.max_rank {
                return Err(DataError::Limit {
                    place: self.place.clone(),
                    what: "the number of axes",
                    found: shape.len() as u64 + 1,
                    limit: self.max_rank as u64,
                });
            }
            shape.push(self.length()?);
            match self.peek() {
                // Python reads `(3)` as a number, so one axis needs its comma.
                Some(b')') if shape.len() > 1 => {}
                _ => self.expect(b',', "`,`")?,
            }
        }
        self.expect(b')', "`)`")?;
        Ok(shape)
    }

    fn length(&mut self) -> Result<usize, DataError> {
        self.peek();
        let start = self.at;
        let mut value: usize = 0;
        while let Some(digit @ b'0'..=b'9') = self.text.get(self.at) {
            value = value
                .checked_mul(10)
                .and_then(|v| v.checked_add(usize::from(digit - b'0')))
                .ok_or_else(|| self.bad("a length in `shape` is beyond 64 bits"))?;
            self.at += 1;
        }
        let digits = &self.text[start..self.at];
        if digits.is_empty() || (digits.len() > 1 && digits[0] == b'0') {
            self.at = start;
            return Err(self.found_instead("a length, which is a whole number"));
        }
        // Python 2 on Windows wrote `3L`.
        if self.text.get(self.at) == Some(&b'L') {
            self.at += 1;
        }
        Ok(value)
    }

    fn dtype(&mut self) -> Result<DType, DataError> {
        if let Some(b'[' | b'(' | b'{') = self.peek() {
            return Err(DataError::Dtype {
                place: self.place.clone(),
                descr: quote(&self.text[self.at..]),
                problem: "is structured (several fields per element), which album does not read; \
                          save each field as an array of its own"
                    .to_owned(),
            });
        }
        let descr = self.string()?;
        match parse_descr(descr) {
            Ok(dtype) => Ok(dtype),
            Err(problem) => Err(DataError::Dtype {
                place: self.place.clone(),
                descr: descr.escape_ascii().to_string().chars().take(60).collect(),
                problem: problem.replace("{name}", self.place.key.as_deref().unwrap_or("array")),
            }),
        }
    }

    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\n' | b'\t') = self.text.get(self.at) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8, name: &str) -> Result<(), DataError> {
        if self.peek() != Some(byte) {
            return Err(self.found_instead(name));
        }
        self.at += 1;
        Ok(())
    }

    fn found_instead(&self, expected: &str) -> DataError {
        match &self.text[self.at..] {
            [] => self.bad(&format!("found its end, expected {expected}")),
            rest => self.bad(&format!(
                "found {} at byte {}, expected {expected}",
                quote(&rest[..rest.len().min(20)]),
                self.at
            )),
        }
    }

    fn bad(&self, problem: &str) -> DataError {
        DataError::Header { place: self.place.clone(), problem: problem.to_owned() }
    }
}

/// The element type, or why it is refused (`{name}` stands for the array's name).
fn parse_descr(descr: &[u8]) -> Result<DType, &'static str> {
    let (order, kind) = match descr {
        [order @ (b'<' | b'>' | b'=' | b'|'), kind @ ..] => (*order, kind),
        kind => (b'=', kind),
    };
    let dtype = match kind {
        b"b1" | b"?" => DType::Bool,
        b"i1" => DType::I8,
        b"i2" => DType::I16,
        b"i4" => DType::I32,
        b"i8" => DType::I64,
        b"u1" => DType::U8,
        b"u2" => DType::U16,
        b"u4" => DType::U32,
        b"u8" => DType::U64,
        b"f4" => DType::F32,
        b"f8" => DType::F64,
        [b'O', ..] => {
            return Err("holds Python objects (a pickle), which album never reads; \
                 save it as an integer array, e.g. {name}.astype(np.int64)");
        }
        b"f2" => {
            return Err("is half precision, which album does not read; save {name}.astype(np.float32)");
        }
        [b'f', ..] => {
            return Err("is extended precision, which differs between machines; \
                        save {name}.astype(np.float64)");
        }
        [b'c', ..] => {
            return Err("holds complex numbers, expected real ones; \
                        save {name}.real and {name}.imag as two arrays");
        }
        [b'U' | b'S' | b'a', ..] => {
            return Err("holds text, expected numbers; save codes instead, \
                        e.g. np.unique({name}, return_inverse=True)[1]");
        }
        [b'M' | b'm', ..] => {
            return Err("holds dates or times, expected numbers; save {name}.astype(np.int64)");
        }
        [b'V', ..] => {
            return Err("holds raw bytes, expected numbers; save {name}.view(np.uint8)");
        }
        _ => {
            return Err("is unknown, expected one of |b1, |i1, <i2, <i4, <i8, |u1, <u2, <u4, \
                        <u8, <f4, <f8");
        }
    };
    match order {
        b'>' => Err("is big-endian, expected little-endian; \
                     save {name}.astype({name}.dtype.newbyteorder('<'))"),
        b'|' if dtype.size() > 1 => Err("has no byte order, expected `<`"),
        _ => Ok(dtype),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Header, DataError> {
        Parser { text: text.as_bytes(), at: 0, place: &Place::default(), max_rank: 64 }.header()
    }

    #[test]
    fn headers_of_many_writers() {
        let expected = |shape: &[usize]| Header { dtype: DType::F64, fortran: false, shape: shape.to_vec() };
        for (text, shape) in [
            ("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", &[][..]),
            ("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }   \n", &[3]),
            ("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }\n", &[3, 4]),
            ("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4,)}", &[3, 4]),
            // Python 2, other orders, other quotes, no spaces.
            ("{'descr': '<f8', 'fortran_order': False, 'shape': (3L, 4L), }\n", &[3, 4]),
            ("{'shape': (0,), 'fortran_order': False, 'descr': '<f8'}", &[0]),
            ("{\"descr\":\"<f8\",\"fortran_order\":False,\"shape\":(3,4)}", &[3, 4]),
            ("{'descr': '=f8', 'fortran_order': False, 'shape': (1, 1), }", &[1, 1]),
        ] {
            assert_eq!(parse(text).unwrap(), expected(shape), "{text}");
        }
    }

    #[test]
    fn types() {
        for dtype in DType::ALL {
            assert_eq!(parse_descr(dtype.descr().as_bytes()), Ok(dtype));
        }
    }

    #[test]
    fn fortran_order_becomes_c_order() {
        // Axes of 2, 3 and 4 with the element's C position as its value.
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

    /// The advice for the most common mistake, word for word.
    #[test]
    fn python_objects() {
        let place = Place::file(Path::new("data.npz")).array("actions");
        let mut parser = Parser { text: b"'|O'", at: 0, place: &place, max_rank: 64 };
        assert_eq!(
            parser.dtype().unwrap_err().to_string(),
            "data.npz: array `actions`: dtype |O holds Python objects (a pickle), which album \
             never reads; save it as an integer array, e.g. actions.astype(np.int64)"
        );
    }
}
