//! File formats.

pub mod columns;
pub(crate) mod file;
pub(crate) mod hdf5;
pub(crate) mod lerobot;
pub(crate) mod minari;
pub(crate) mod npz;
pub mod table;
pub(crate) mod table_log;
