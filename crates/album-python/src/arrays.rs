//! NumPy arrays as slices.

use crate::errors::bad_data;
use album_data::Elements;
use numpy::{
    PyArray1, PyArrayDyn, PyArrayMethods, PyReadonlyArray1, PyReadonlyArrayDyn, PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use std::sync::Arc;

/// An array of a supported type, borrowed for as long as the GIL is held.
pub enum Lent<'py> {
    F32(PyReadonlyArrayDyn<'py, f32>),
    F64(PyReadonlyArrayDyn<'py, f64>),
    I64(PyReadonlyArrayDyn<'py, i64>),
    Bool(PyReadonlyArrayDyn<'py, bool>),
    Text(PyReadonlyArrayDyn<'py, u32>, Arc<Vec<String>>),
}

impl<'py> Lent<'py> {
    /// Borrows an array, or a pair of indices and labels.
    pub fn new(name: &str, array: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok((codes, labels)) = array.extract::<(Bound<'py, PyAny>, Vec<String>)>() {
            return Ok(Self::Text(codes.cast::<PyArrayDyn<u32>>()?.try_readonly()?, Arc::new(labels)));
        }
        if let Ok(array) = array.cast::<PyArrayDyn<f32>>() {
            return Ok(Self::F32(array.try_readonly()?));
        }
        if let Ok(array) = array.cast::<PyArrayDyn<f64>>() {
            return Ok(Self::F64(array.try_readonly()?));
        }
        if let Ok(array) = array.cast::<PyArrayDyn<i64>>() {
            return Ok(Self::I64(array.try_readonly()?));
        }
        if let Ok(array) = array.cast::<PyArrayDyn<bool>>() {
            return Ok(Self::Bool(array.try_readonly()?));
        }
        Err(bad_data(array.py(), format!("{name}: found {}, expected an array of numbers", array.get_type())))
    }

    pub fn shape(&self) -> &[usize] {
        match self {
            Self::F32(array) => array.shape(),
            Self::F64(array) => array.shape(),
            Self::I64(array) => array.shape(),
            Self::Bool(array) => array.shape(),
            Self::Text(array, _) => array.shape(),
        }
    }

    /// The elements. `album_rl/_arrays.py` has made the array contiguous.
    pub fn elements(&self) -> PyResult<Elements<'_>> {
        Ok(match self {
            Self::F32(array) => Elements::F32(array.as_slice()?),
            Self::F64(array) => Elements::F64(array.as_slice()?),
            Self::I64(array) => Elements::I64(array.as_slice()?),
            Self::Bool(array) => Elements::Bool(array.as_slice()?),
            Self::Text(array, labels) => Elements::Text(array.as_slice()?, Arc::clone(labels)),
        })
    }
}

/// Rows of f32, and whether the caller passed a single row as a vector. Arrays of another type or layout are
/// converted once.
pub struct Rows<'py> {
    array: PyReadonlyArrayDyn<'py, f32>,
    pub single: bool,
    pub rows: usize,
}

impl<'py> Rows<'py> {
    /// Takes rows of `width` numbers. Refuses other shapes, NaN and infinity.
    pub fn new(name: &str, array: &Bound<'py, PyAny>, width: usize) -> PyResult<Self> {
        let py = array.py();
        let as_it_is = array.cast::<PyArrayDyn<f32>>().ok().filter(|array| array.is_c_contiguous());
        let array = match as_it_is {
            Some(array) => array.try_readonly()?,
            None => {
                let converted = py.import("album_rl._arrays")?.call_method1("as_f32", (name, array))?;
                converted.cast::<PyArrayDyn<f32>>()?.try_readonly()?
            }
        };
        let (single, rows) = match *array.shape() {
            [found] if found == width => (true, 1),
            [rows, found] if found == width => (false, rows),
            [] if width == 1 => (true, 1),
            ref found => {
                return Err(bad_data(
                    py,
                    format!("{name}: found shape {found:?}, expected [{width}] or [rows, {width}]"),
                ));
            }
        };
        let rows = Self { array, single, rows };
        if let Some(at) = rows.numbers()?.iter().position(|x| !x.is_finite()) {
            let (row, column, found) = (at / width, at % width, rows.numbers()?[at]);
            return Err(bad_data(
                py,
                format!("{name}: row {row}, column {column}: found {found}, expected a finite number"),
            ));
        }
        Ok(rows)
    }

    pub fn numbers(&self) -> PyResult<&[f32]> {
        Ok(self.array.as_slice()?)
    }
}

/// A column of integers.
pub fn integers(array: &PyReadonlyArray1<'_, i64>) -> PyResult<Vec<i64>> {
    Ok(array.as_slice()?.to_vec())
}

/// Hands a vector to NumPy without copying it.
pub fn column<T: numpy::Element>(py: Python<'_>, numbers: Vec<T>) -> Bound<'_, PyArray1<T>> {
    PyArray1::from_vec(py, numbers)
}
