//! Arrays of an HDF5 file, read a range of rows at a time.

use hdf5_reader::error::Error;
use hdf5_reader::group::Group;
use hdf5_reader::{Dataset, Datatype, H5Type, SliceInfo, SliceInfoElem};

use super::bands::Bands;
use super::damaged;
use crate::error::{DataError, Place};
use crate::limits::Limits;
use crate::source::log::{Field, FieldType, MAX_WIDTH, Values};
use crate::source::open::natural;

const MAX_ARRAYS: usize = 1 << 14;
/// Maximum nesting of groups.
const MAX_DEPTH: usize = 8;

/// An array and the field that it represents.
#[derive(Clone)]
pub(super) struct Array {
    pub field: Field,
    pub rows: usize,
    dataset: Dataset,
}

/// All arrays of a group and its subgroups, named by their paths. Unreadable arrays are reported in
/// `warnings`.
pub(super) fn arrays(
    group: &Group,
    place: &Place,
    warnings: &mut Vec<String>,
) -> Result<Vec<Array>, DataError> {
    let mut all = Vec::new();
    collect(group, "", 0, place, &mut all, warnings)?;
    all.sort_by_cached_key(|array: &Array| natural(&array.field.name));
    Ok(all)
}

fn collect(
    group: &Group,
    prefix: &str,
    depth: usize,
    place: &Place,
    all: &mut Vec<Array>,
    warnings: &mut Vec<String>,
) -> Result<(), DataError> {
    let (groups, names) = group.member_names().map_err(|e| damaged(place, &e))?;
    let limit = |what, found: usize, limit: usize| DataError::Limit {
        place: place.clone(),
        what,
        found: found as u64,
        limit: limit as u64,
    };
    if depth > MAX_DEPTH {
        return Err(limit("the depth of groups", depth, MAX_DEPTH));
    }
    if all.len() + names.len() + groups.len() > MAX_ARRAYS {
        return Err(limit("the number of arrays", all.len() + names.len() + groups.len(), MAX_ARRAYS));
    }
    for name in names {
        let path = format!("{prefix}{name}");
        let dataset = group.dataset(&name).map_err(|e| damaged(&place.array(&path), &e))?;
        match Array::new(path, dataset, place)? {
            Ok(array) => all.push(array),
            Err(sentence) => warnings.extend(sentence),
        }
    }
    for name in groups {
        let inner = group.group(&name).map_err(|e| damaged(&place.array(&name), &e))?;
        collect(&inner, &format!("{prefix}{name}/"), depth + 1, place, all, warnings)?;
    }
    Ok(())
}

/// Bytes that an array of f32 takes in memory; a file may claim any shape.
fn memory(rows: usize, width: usize) -> u64 {
    (rows as u64).saturating_mul(4).saturating_mul(width as u64)
}

impl Array {
    /// The array, or a sentence that says why it is skipped. Scalars are skipped silently.
    fn new(name: String, dataset: Dataset, place: &Place) -> Result<Result<Self, Option<String>>, DataError> {
        let shape = dataset.shape();
        let Some(&rows) = shape.first() else { return Ok(Err(None)) };
        let width = shape[1..].iter().try_fold(1u64, |width, &axis| width.checked_mul(axis));
        let width = width.and_then(|width| usize::try_from(width).ok()).unwrap_or(usize::MAX);
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        let kind = match dataset.dtype() {
            Datatype::FixedPoint { size: 1, .. } if shape.len() > 2 => {
                return Ok(Err(Some(format!(
                    "array `{}` is not read: it looks like images",
                    name.escape_debug()
                ))));
            }
            Datatype::FixedPoint { .. } => FieldType::Integer,
            Datatype::FloatingPoint { size: 2 | 4 | 8, .. } => FieldType::Float,
            Datatype::Enum { base, .. } if matches!(**base, Datatype::FixedPoint { size: 1, .. }) => {
                FieldType::Bool
            }
            _ => {
                let sentence = format!("array `{}` is not read: it holds no numbers", name.escape_debug());
                return Ok(Err(Some(sentence)));
            }
        };
        if width == 0 {
            return Ok(Err(None));
        }
        let limits = Limits::default();
        let bytes = memory(rows, width);
        // Unwritten chunks take no space in the file but do in memory, so a small file can claim a huge
        // array.
        let file = std::fs::metadata(&place.file).map_or(u64::MAX, |metadata| metadata.len());
        let honest = limits.ratio_free_bytes.max(file.saturating_mul(limits.max_ratio));
        for (what, found, limit) in [
            ("the width of a row", width as u64, MAX_WIDTH as u64),
            ("the size of the array in bytes", bytes, limits.max_total_bytes.min(honest)),
        ] {
            if found > limit {
                return Err(DataError::Limit { place: place.array(&name), what, found, limit });
            }
        }
        Ok(Ok(Self { field: Field::new(name, kind, width), rows, dataset }))
    }

    /// Size of a row in the file's element type.
    pub fn row_bytes(&self) -> usize {
        let size = self.dataset.raw_element_size().unwrap_or(8);
        size * self.field.width
    }

    /// Size of a decoded chunk; 0 if the array is in one piece.
    pub fn chunk_bytes(&self) -> usize {
        let axes = self.dataset.chunks().unwrap_or_default();
        let numbers = axes.iter().map(|&axis| axis as usize).reduce(usize::saturating_mul).unwrap_or(0);
        numbers.saturating_mul(self.dataset.raw_element_size().unwrap_or(8))
    }

    /// A reader of rows from first to last.
    pub fn rows_in_order(&self, place: &Place) -> Result<RowsInOrder<'_>, DataError> {
        // Only numbers whose bytes need no conversion.
        let native = [f32::hdf5_type(), f64::hdf5_type()].contains(self.dataset.dtype());
        let bands = if native { Bands::new(&self.dataset) } else { Ok(None) };
        let bands = bands.map_err(|e| damaged(&place.array(&self.field.name), &e))?;
        Ok(RowsInOrder { array: self, bands })
    }

    /// Reads a range of rows.
    pub fn read(&self, first: usize, rows: usize, place: &Place) -> Result<Values, DataError> {
        let mut selection = SliceInfo::all(self.dataset.ndim());
        selection.selections[0] =
            SliceInfoElem::Slice { start: first as u64, end: (first + rows) as u64, step: 1 };
        let error = |e: Error| damaged(&place.array(&self.field.name), &e);
        let values = match self.dataset.dtype() {
            Datatype::FloatingPoint { size: 4, .. } => Values::F32(self.slice(&selection).map_err(error)?),
            Datatype::FloatingPoint { size: 8, .. } => Values::F64(self.slice(&selection).map_err(error)?),
            Datatype::FloatingPoint { .. } => {
                let halves: Vec<Half> = self.slice(&selection).map_err(error)?;
                Values::F32(halves.into_iter().map(|half| half.0).collect())
            }
            Datatype::Enum { .. } => {
                let flags: Vec<Flag> = self.slice(&selection).map_err(error)?;
                Values::Bool(flags.into_iter().map(|flag| flag.0).collect())
            }
            Datatype::FixedPoint { size: 1, signed: false, .. } => {
                self.integers::<u8>(&selection).map_err(error)?
            }
            Datatype::FixedPoint { size: 1, .. } => self.integers::<i8>(&selection).map_err(error)?,
            Datatype::FixedPoint { size: 2, signed: false, .. } => {
                self.integers::<u16>(&selection).map_err(error)?
            }
            Datatype::FixedPoint { size: 2, .. } => self.integers::<i16>(&selection).map_err(error)?,
            Datatype::FixedPoint { size: 4, signed: false, .. } => {
                self.integers::<u32>(&selection).map_err(error)?
            }
            Datatype::FixedPoint { size: 4, .. } => self.integers::<i32>(&selection).map_err(error)?,
            Datatype::FixedPoint { signed: false, .. } => {
                let wide: Vec<u64> = self.slice(&selection).map_err(error)?;
                Values::I64(wide.into_iter().map(|x| i64::try_from(x).unwrap_or(i64::MAX)).collect())
            }
            _ => Values::I64(self.slice(&selection).map_err(error)?),
        };
        let expected = rows * self.field.width;
        let found = values.rows(1);
        if found != expected {
            return Err(DataError::DamagedTable {
                place: place.array(&self.field.name),
                format: "HDF5",
                problem: format!("found {found} numbers, expected {expected}"),
            });
        }
        Ok(values)
    }

    fn slice<T: H5Type>(&self, selection: &SliceInfo) -> Result<Vec<T>, Error> {
        let array = self.dataset.read_slice::<T>(selection)?;
        let (values, start) = array.into_raw_vec_and_offset();
        Ok(match start {
            None | Some(0) => values,
            Some(start) => values.into_iter().skip(start).collect(),
        })
    }

    fn integers<T: H5Type + Into<i64>>(&self, selection: &SliceInfo) -> Result<Values, Error> {
        Ok(Values::I64(self.slice::<T>(selection)?.into_iter().map(Into::into).collect()))
    }
}

/// A reader of rows from first to last, in bands if the array has them.
pub(super) struct RowsInOrder<'a> {
    array: &'a Array,
    bands: Option<Bands>,
}

impl RowsInOrder<'_> {
    /// Whether parts must be read one after the other.
    pub fn in_bands(&self) -> bool {
        self.bands.is_some()
    }

    /// Reads the rows that follow those read before.
    pub fn read(&mut self, first: usize, rows: usize, place: &Place) -> Result<Values, DataError> {
        if let Some(bands) = &mut self.bands {
            let bytes =
                bands.read(first, rows).map_err(|e| damaged(&place.array(&self.array.field.name), &e))?;
            if let Some(bytes) = bytes {
                return Ok(if self.array.dataset.dtype() == &f32::hdf5_type() {
                    Values::F32(bytes.as_chunks().0.iter().map(|four| f32::from_ne_bytes(*four)).collect())
                } else {
                    Values::F64(bytes.as_chunks().0.iter().map(|eight| f64::from_ne_bytes(*eight)).collect())
                });
            }
            self.bands = None; // slices fill what is missing
        }
        self.array.read(first, rows, place)
    }
}

/// A boolean as written by h5py: an enumeration of one byte.
#[derive(Clone)]
struct Flag(bool);

impl H5Type for Flag {
    fn hdf5_type() -> Datatype {
        u8::hdf5_type()
    }

    fn from_bytes(bytes: &[u8], _: &Datatype) -> Result<Self, Error> {
        Ok(Self(bytes.iter().any(|&byte| byte != 0)))
    }

    fn element_size(_: &Datatype) -> usize {
        1
    }
}

/// A half-precision float, converted to `f32`.
#[derive(Clone)]
struct Half(f32);

impl H5Type for Half {
    fn hdf5_type() -> Datatype {
        f32::hdf5_type()
    }

    fn from_bytes(bytes: &[u8], dtype: &Datatype) -> Result<Self, Error> {
        let &[a, b] = bytes else {
            return Err(Error::InvalidData(format!("expected 2 bytes, got {}", bytes.len())));
        };
        let big = format!("{dtype:?}").contains("BigEndian");
        Ok(Self(half(if big { u16::from_be_bytes([a, b]) } else { u16::from_le_bytes([a, b]) })))
    }

    fn element_size(_: &Datatype) -> usize {
        2
    }
}

/// Converts a half-precision float; exact.
fn half(bits: u16) -> f32 {
    let (sign, exponent, fraction) = (bits >> 15, bits >> 10 & 31, bits & 1023);
    let size = match exponent {
        0 => f32::from(fraction) * 2f32.powi(-24),
        31 if fraction == 0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1.0 + f32::from(fraction) / 1024.0) * 2f32.powi(i32::from(exponent) - 15),
    };
    if sign == 1 { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::{half, memory};

    #[test]
    fn shapes_that_lie_have_a_size() {
        assert_eq!(memory(10, 3), 120);
        assert_eq!(memory(1, usize::MAX), u64::MAX);
    }

    #[test]
    fn halves() {
        let expected = [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_95),
            (0x0001, 5.960_464_5e-8),
            (0x7bff, 65504.0),
        ];
        for (bits, x) in expected {
            assert_eq!(half(bits), x);
        }
        assert!(half(0x7c00).is_infinite() && half(0x7e00).is_nan());
    }
}
