//! A long column of numbers, in memory or in a memory-mapped file.

use std::ops::Deref;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::formats::columns::MappedFile;

/// Numbers that are read like a slice, wherever they are stored. Clones share them.
#[derive(Debug, Clone)]
pub(crate) enum Column {
    Owned(Arc<Vec<f32>>),
    /// With the hash computed when the file was written.
    Mapped(Arc<MappedFile>, [u8; 32]),
}

impl Column {
    /// SHA-256 of all numbers, if it is known without reading them.
    pub fn known_sha256(&self) -> Option<[u8; 32]> {
        match self {
            Self::Owned(_) => None,
            Self::Mapped(_, hash) => Some(*hash),
        }
    }
}

impl From<Vec<f32>> for Column {
    fn from(numbers: Vec<f32>) -> Self {
        Self::Owned(Arc::new(numbers))
    }
}

impl Deref for Column {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        match self {
            Self::Owned(numbers) => numbers,
            Self::Mapped(file, _) => file.floats(),
        }
    }
}

/// SHA-256 of the numbers in consecutive slices, as little-endian bytes.
pub(crate) fn sha256<'a>(slices: impl Iterator<Item = &'a [f32]>) -> [u8; 32] {
    let mut hash = Sha256::new();
    let mut bytes = Vec::with_capacity(1 << 16);
    for part in slices.flat_map(|slice| slice.chunks(1 << 14)) {
        bytes.clear();
        bytes.extend(part.iter().flat_map(|x| x.to_le_bytes()));
        hash.update(&bytes);
    }
    hash.finalize().into()
}
