//! The npy header: a Python dictionary with type, order and shape.

use std::io::Read;

use super::{MAGIC, fill};
use crate::error::{DataError, Place};
use crate::formats::file::{describe_kind, quote};
use crate::formats::npz::array::DType;
use crate::limits::Limits;

/// The three entries of a header.
#[derive(Debug, PartialEq)]
pub(super) struct Header {
    pub dtype: DType,
    pub fortran: bool,
    pub shape: Vec<usize>,
}

/// Reads the header; also returns its length in bytes.
pub(super) fn read_header(
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

/// A strict parser for the Python dictionary of an npy header, e.g. `{'descr': '<f8', 'fortran_order': False,
/// 'shape': (3, 4), }`.
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

    /// A quoted string. Escapes are refused; no supported type needs them.
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
                // In Python `(3)` is a number, so a single axis needs the comma.
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

    /// The next non-whitespace byte.
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

/// Parses the element type, or returns why it is refused (`{name}` stands for the array's name).
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
    use std::path::Path;

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
            // Python 2 integers, other key orders, other quotes, no spaces.
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

    /// The exact advice for the most common mistake.
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
