//! A long column of numbers, in memory or in a mapped file.

use std::ops::Deref;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::columns::MappedFile;

/// Numbers that are read like a slice, wherever they are.
#[derive(Debug, Clone)]
pub(crate) enum Column {
    Owned(Vec<f32>),
    /// With the hash that was computed when the file was written.
    Mapped(Arc<MappedFile>, [u8; 32]),
}

impl Column {
    /// SHA-256 of the numbers' bytes, little-endian.
    pub fn sha256(&self) -> [u8; 32] {
        match self {
            Self::Owned(numbers) => sha256(numbers),
            Self::Mapped(_, hash) => *hash,
        }
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

impl PartialEq for Column {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

/// SHA-256 of the numbers' bytes, little-endian.
pub(crate) fn sha256(numbers: &[f32]) -> [u8; 32] {
    let mut hash = Sha256::new();
    let mut bytes = Vec::with_capacity(1 << 16);
    for part in numbers.chunks(1 << 14) {
        bytes.clear();
        bytes.extend(part.iter().flat_map(|x| x.to_le_bytes()));
        hash.update(&bytes);
    }
    hash.finalize().into()
}
