//! Arrays in memory, with checked conversions.

use std::fmt;

use crate::error::{DataError, Place};

/// The supported element types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are NumPy's")]
pub enum DType {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
}

impl DType {
    /// All types.
    pub const ALL: [Self; 11] = [
        Self::Bool,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::F32,
        Self::F64,
    ];

    /// Size of an element in bytes.
    pub fn size(self) -> usize {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// The type as in npy headers, e.g. `<i8`.
    pub fn descr(self) -> &'static str {
        match self {
            Self::Bool => "|b1",
            Self::I8 => "|i1",
            Self::I16 => "<i2",
            Self::I32 => "<i4",
            Self::I64 => "<i8",
            Self::U8 => "|u1",
            Self::U16 => "<u2",
            Self::U32 => "<u4",
            Self::U64 => "<u8",
            Self::F32 => "<f4",
            Self::F64 => "<f8",
        }
    }
}

impl fmt::Display for DType {
    /// NumPy's name for the type, e.g. `int64`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bool => "bool",
            Self::I8 => "int8",
            Self::I16 => "int16",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::U8 => "uint8",
            Self::U16 => "uint16",
            Self::U32 => "uint32",
            Self::U64 => "uint64",
            Self::F32 => "float32",
            Self::F64 => "float64",
        })
    }
}

/// The elements of an [`Array`], last axis fastest.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names are the element types")]
pub enum Data {
    Bool(Vec<bool>),
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
}

/// Evaluates an expression on the vector of a [`Data`], whatever its type.
macro_rules! each {
    ($data:expr, $v:ident => $body:expr) => {
        match $data {
            Data::Bool($v) => $body,
            Data::I8($v) => $body,
            Data::I16($v) => $body,
            Data::I32($v) => $body,
            Data::I64($v) => $body,
            Data::U8($v) => $body,
            Data::U16($v) => $body,
            Data::U32($v) => $body,
            Data::U64($v) => $body,
            Data::F32($v) => $body,
            Data::F64($v) => $body,
        }
    };
}

impl Data {
    /// Number of elements.
    pub fn len(&self) -> usize {
        each!(self, v => v.len())
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies a range of elements.
    pub(crate) fn range(&self, range: std::ops::Range<usize>) -> Self {
        match self {
            Self::Bool(v) => Self::Bool(v[range].to_vec()),
            Self::I8(v) => Self::I8(v[range].to_vec()),
            Self::I16(v) => Self::I16(v[range].to_vec()),
            Self::I32(v) => Self::I32(v[range].to_vec()),
            Self::I64(v) => Self::I64(v[range].to_vec()),
            Self::U8(v) => Self::U8(v[range].to_vec()),
            Self::U16(v) => Self::U16(v[range].to_vec()),
            Self::U32(v) => Self::U32(v[range].to_vec()),
            Self::U64(v) => Self::U64(v[range].to_vec()),
            Self::F32(v) => Self::F32(v[range].to_vec()),
            Self::F64(v) => Self::F64(v[range].to_vec()),
        }
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        match self {
            Self::Bool(_) => DType::Bool,
            Self::I8(_) => DType::I8,
            Self::I16(_) => DType::I16,
            Self::I32(_) => DType::I32,
            Self::I64(_) => DType::I64,
            Self::U8(_) => DType::U8,
            Self::U16(_) => DType::U16,
            Self::U32(_) => DType::U32,
            Self::U64(_) => DType::U64,
            Self::F32(_) => DType::F32,
            Self::F64(_) => DType::F64,
        }
    }
}

/// An array in C order (last axis fastest), regardless of the order in the file.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Array {
    /// Length of each axis; empty for a scalar (`np.array(3)`).
    pub shape: Vec<usize>,
    /// The elements.
    pub data: Data,
    /// Where the array came from, for error messages.
    pub place: Place,
}

impl Array {
    /// Creates an array. Fails if the shape does not match the number of elements.
    pub fn new(shape: Vec<usize>, data: Data) -> Result<Self, DataError> {
        let array = Self { shape, data, place: Place::default() };
        if elements(&array.shape) == Some(array.data.len()) {
            Ok(array)
        } else {
            Err(DataError::ShapeMismatch { place: array.place, found: array.data.len(), shape: array.shape })
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.data.dtype()
    }

    /// Converts to `i64` from any integer type. A `uint64` out of range is an error that names its row.
    pub fn into_integers(self) -> Result<Vec<i64>, DataError> {
        match self.data {
            Data::I64(v) => Ok(v),
            Data::I8(v) => Ok(v.into_iter().map(i64::from).collect()),
            Data::I16(v) => Ok(v.into_iter().map(i64::from).collect()),
            Data::I32(v) => Ok(v.into_iter().map(i64::from).collect()),
            Data::U8(v) => Ok(v.into_iter().map(i64::from).collect()),
            Data::U16(v) => Ok(v.into_iter().map(i64::from).collect()),
            Data::U32(v) => Ok(v.into_iter().map(i64::from).collect()),
            Data::U64(ref v) => v
                .iter()
                .enumerate()
                .map(|(i, &x)| {
                    i64::try_from(x)
                        .map_err(|_| self.value_error(i, x, "at most 9223372036854775807 (int64)"))
                })
                .collect(),
            Data::Bool(_) | Data::F32(_) | Data::F64(_) => Err(self.type_error("an integer type")),
        }
    }

    /// Converts to `f64` from any type; `True` is 1. An integer beyond ±2^53, which would be rounded, is an
    /// error that names its row.
    pub fn into_floats(self) -> Result<Vec<f64>, DataError> {
        const EXACT: u64 = 1 << 53;
        let expected = "an integer within ±2^53 (exact in float64)";
        match self.data {
            Data::F64(v) => Ok(v),
            Data::F32(v) => Ok(v.into_iter().map(f64::from).collect()),
            Data::Bool(v) => Ok(v.into_iter().map(f64::from).collect()),
            Data::I8(v) => Ok(v.into_iter().map(f64::from).collect()),
            Data::I16(v) => Ok(v.into_iter().map(f64::from).collect()),
            Data::I32(v) => Ok(v.into_iter().map(f64::from).collect()),
            Data::U8(v) => Ok(v.into_iter().map(f64::from).collect()),
            Data::U16(v) => Ok(v.into_iter().map(f64::from).collect()),
            Data::U32(v) => Ok(v.into_iter().map(f64::from).collect()),
            Data::I64(ref v) => match v.iter().position(|x| x.unsigned_abs() > EXACT) {
                Some(i) => Err(self.value_error(i, v[i], expected)),
                None => Ok(v.iter().map(|&x| x as f64).collect()),
            },
            Data::U64(ref v) => match v.iter().position(|&x| x > EXACT) {
                Some(i) => Err(self.value_error(i, v[i], expected)),
                None => Ok(v.iter().map(|&x| x as f64).collect()),
            },
        }
    }

    /// Converts to `f32` from any type; `True` is 1. `float64` is rounded to nearest, as by
    /// `astype(np.float32)`. A finite number out of range, or an integer beyond ±2^24, which would be
    /// rounded, is an error that names its row.
    pub fn into_f32(self) -> Result<Vec<f32>, DataError> {
        if let Data::F32(v) = self.data {
            return Ok(v);
        }
        let shape = self.shape.clone();
        let place = self.place.clone();
        let integers = !matches!(self.data, Data::F64(_));
        let wide = self.into_floats()?;
        let fits = |x: &f64| {
            if integers { x.abs() <= f64::from(1 << 24) } else { !x.is_finite() || (*x as f32).is_finite() }
        };
        match wide.iter().position(|x| !fits(x)) {
            None => Ok(wide.into_iter().map(|x| x as f32).collect()),
            Some(i) => {
                let expected = if integers {
                    "an integer within ±2^24 (exact in float32)"
                } else {
                    "a number in the range of float32"
                };
                Err(value_error(place, &shape, i, wide[i], expected))
            }
        }
    }

    /// Converts to booleans from `bool`, or from any integer type that holds only 0 and 1.
    pub fn into_bools(self) -> Result<Vec<bool>, DataError> {
        if let Data::Bool(v) = self.data {
            return Ok(v);
        }
        macro_rules! flags {
            ($v:expr) => {
                match $v.iter().position(|&x| x != 0 && x != 1) {
                    Some(i) => Err(self.value_error(i, $v[i], "0 or 1")),
                    None => Ok($v.iter().map(|&x| x == 1).collect()),
                }
            };
        }
        match &self.data {
            Data::I8(v) => flags!(v),
            Data::I16(v) => flags!(v),
            Data::I32(v) => flags!(v),
            Data::I64(v) => flags!(v),
            Data::U8(v) => flags!(v),
            Data::U16(v) => flags!(v),
            Data::U32(v) => flags!(v),
            Data::U64(v) => flags!(v),
            Data::Bool(_) | Data::F32(_) | Data::F64(_) => {
                Err(self.type_error("bool, or an integer type holding only 0 and 1"))
            }
        }
    }

    fn type_error(&self, expected: &'static str) -> DataError {
        DataError::WrongType { place: self.place.clone(), found: self.dtype(), expected }
    }

    fn value_error(&self, index: usize, found: impl fmt::Display, expected: &'static str) -> DataError {
        value_error(self.place.clone(), &self.shape, index, found, expected)
    }
}

/// The error for the element at flat index `index`.
pub(crate) fn value_error(
    place: Place,
    shape: &[usize],
    index: usize,
    found: impl fmt::Display,
    expected: &'static str,
) -> DataError {
    // There is at least one element, so no axis is empty and the width is positive.
    let width: usize = shape.iter().skip(1).product();
    DataError::Value {
        place,
        row: index / width,
        column: (shape.len() > 1).then_some(index % width),
        found: found.to_string(),
        expected,
    }
}

/// Number of elements of a shape; `None` on overflow.
pub(crate) fn elements(shape: &[usize]) -> Option<usize> {
    // With an empty axis the array is empty, even if the product of the others overflows.
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1usize, |n, &axis| n.checked_mul(axis))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(shape: &[usize], data: Data) -> Array {
        Array::new(shape.to_vec(), data).unwrap()
    }

    #[test]
    fn the_shape_must_fit() {
        let error = Array::new(vec![2, 2], Data::I64(vec![1, 2, 3])).unwrap_err();
        assert_eq!(error.to_string(), "array in memory: 3 elements were given for shape [2, 2]");
        assert!(Array::new(vec![usize::MAX, 2], Data::I64(vec![])).is_err());
        assert!(Array::new(vec![usize::MAX, 2, 0], Data::I64(vec![])).is_ok());
        assert_eq!(array(&[], Data::I64(vec![3])).len(), 1);
    }

    #[test]
    fn integers() {
        let signed = array(&[2], Data::I8(vec![-128, 127]));
        assert_eq!(signed.into_integers().unwrap(), [-128, 127]);
        let unsigned = array(&[1], Data::U64(vec![i64::MAX as u64]));
        assert_eq!(unsigned.into_integers().unwrap(), [i64::MAX]);
        let over = array(&[2, 2], Data::U64(vec![0, 0, 0, 1 << 63]));
        let message = over.into_integers().unwrap_err().to_string();
        assert!(message.contains("row 1, column 1: found 9223372036854775808"), "{message}");
        assert!(array(&[1], Data::Bool(vec![true])).into_integers().is_err());
        assert!(array(&[1], Data::F32(vec![1.0])).into_integers().is_err());
    }

    #[test]
    fn floats() {
        let flags = array(&[2], Data::Bool(vec![false, true]));
        assert_eq!(flags.clone().into_floats().unwrap(), [0.0, 1.0]);
        assert_eq!(flags.into_f32().unwrap(), [0.0, 1.0]);
        let exact = array(&[2], Data::I64(vec![1 << 53, -(1 << 53)]));
        assert!(exact.into_floats().is_ok());
        let message = |data| array(&[2], data).into_floats().unwrap_err().to_string();
        assert!(message(Data::I64(vec![0, i64::MIN])).contains("row 1"));
        assert!(message(Data::U64(vec![0, (1 << 53) + 1])).contains("row 1"));
    }

    #[test]
    fn narrow_floats() {
        let rounded = array(&[3], Data::F64(vec![0.1, f64::NAN, f64::INFINITY]));
        let rounded = rounded.into_f32().unwrap();
        assert_eq!(rounded[0], 0.1f32);
        assert!(rounded[1].is_nan() && rounded[2].is_infinite());
        let message = |data| array(&[2], data).into_f32().unwrap_err().to_string();
        assert!(message(Data::F64(vec![0.0, 1e39])).contains("row 1: found 1000000"));
        assert!(message(Data::I32(vec![0, (1 << 24) + 1])).contains("row 1: found 16777217"));
    }

    #[test]
    fn flags() {
        for data in [Data::Bool(vec![false, true]), Data::I64(vec![0, 1]), Data::U8(vec![0, 1])] {
            assert_eq!(array(&[2], data).into_bools().unwrap(), [false, true]);
        }
        let message = |data| array(&[2], data).into_bools().unwrap_err().to_string();
        assert!(message(Data::I8(vec![0, -1])).contains("row 1: found -1, expected 0 or 1"));
        assert!(message(Data::U64(vec![u64::MAX, 1])).contains("row 0: found 18446744073709551615"));
        assert!(message(Data::F64(vec![0.0, 1.0])).contains("found dtype float64"));
    }
}
