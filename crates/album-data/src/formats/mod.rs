//! File formats.

pub mod columns;
pub(crate) mod npz;
pub mod table;
