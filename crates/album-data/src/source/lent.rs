//! Arrays borrowed from the caller: read like those of a file, and copied only once, into the dataset.

use std::ops::Range;
use std::sync::Arc;

use crate::formats::npz::array::{DType, Data};
use crate::formats::table::Text;

/// An array in memory, with one row per step.
#[derive(Debug, Clone)]
pub struct LentArray<'a> {
    /// Its name, as it would be in a file.
    pub name: String,
    /// Length of each axis.
    pub shape: Vec<usize>,
    /// The elements, last axis fastest.
    pub elements: Elements<'a>,
}

/// The elements of a [`LentArray`].
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names are the element types")]
pub enum Elements<'a> {
    F32(&'a [f32]),
    F64(&'a [f64]),
    I64(&'a [i64]),
    Bool(&'a [bool]),
    /// Labels: the index of each row's label, and the labels.
    Text(&'a [u32], Arc<Vec<String>>),
}

impl Elements<'_> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(v) => v.len(),
            Self::F64(v) => v.len(),
            Self::I64(v) => v.len(),
            Self::Bool(v) => v.len(),
            Self::Text(v, _) => v.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element type; for text, the type of its indices.
    pub(crate) fn dtype(&self) -> DType {
        match self {
            Self::F32(_) => DType::F32,
            Self::F64(_) => DType::F64,
            Self::I64(_) => DType::I64,
            Self::Bool(_) => DType::Bool,
            Self::Text(..) => DType::U32,
        }
    }

    /// Copies a range of elements.
    pub(crate) fn range(&self, range: Range<usize>) -> Data {
        match self {
            Self::F32(v) => Data::F32(v[range].to_vec()),
            Self::F64(v) => Data::F64(v[range].to_vec()),
            Self::I64(v) => Data::I64(v[range].to_vec()),
            Self::Bool(v) => Data::Bool(v[range].to_vec()),
            Self::Text(v, _) => Data::U32(v[range].to_vec()),
        }
    }

    /// Copies a range of labels; `None` if the elements are not text.
    pub(crate) fn text(&self, range: Range<usize>) -> Option<Text> {
        match self {
            Self::Text(codes, labels) => {
                Some(Text { codes: codes[range].to_vec(), categories: Arc::clone(labels) })
            }
            _ => None,
        }
    }
}
