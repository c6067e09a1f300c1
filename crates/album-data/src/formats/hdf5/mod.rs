//! HDF5 files: D4RL's flat arrays, and the layouts of robomimic and Minari with one group per episode.
//!
//! Untrusted sizes are bounded by the limits of the reader crate (chunks, headers) and ours (columns, widths,
//! episode size). Strings, compound types and references are not read.

mod arrays;
mod bands;
pub(crate) mod flat;
pub(crate) mod groups;

use std::path::Path;

use hdf5_reader::error::Error;
use hdf5_reader::{Hdf5File, OpenOptions};

use crate::error::{DataError, Place};
use crate::formats::file::open_regular;

/// Maximum size of a chunk after decompression.
const MAX_CHUNK_BYTES: usize = 256 << 20;
/// Maximum size of all decoded chunks that are kept.
const MAX_CACHE_BYTES: usize = 64 << 20;
/// Maximum size of a single read.
const MAX_READ_BYTES: usize = 1 << 30;

/// The layout of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Arrays that span all episodes.
    Flat,
    /// `data/demo_N/...`
    Robomimic,
    /// `episode_N/...`
    Minari,
}

pub(crate) fn open(path: &Path) -> Result<Hdf5File, DataError> {
    open_with_cache(path, MAX_CACHE_BYTES)
}

/// Opens a file that keeps at most this many bytes of decoded chunks.
fn open_with_cache(path: &Path, cache: usize) -> Result<Hdf5File, DataError> {
    let options = OpenOptions::default()
        .with_chunk_cache_bytes(cache)
        .with_max_chunk_bytes(MAX_CHUNK_BYTES)
        .with_max_read_bytes(MAX_READ_BYTES)
        .with_max_object_header_bytes(16 << 20);
    let place = Place::file(path);
    let (_, size) = open_regular(path)?;
    let file = Hdf5File::open_with_options(path, options).map_err(|e| damaged(&place, &e))?;
    let expected = file.superblock().eof_address;
    if size < expected {
        let problem = format!("it is cut off: found {size} bytes, expected {expected}");
        return Err(DataError::DamagedTable { place, format: "HDF5", problem });
    }
    Ok(file)
}

/// Detects the layout of a file.
pub(crate) fn layout(path: &Path) -> Result<Option<Layout>, DataError> {
    let place = Place::file(path);
    let root = open(path)?.root_group().map_err(|e| damaged(&place, &e))?;
    let (groups, arrays) = root.member_names().map_err(|e| damaged(&place, &e))?;
    Ok(if arrays.iter().any(|name| name.to_lowercase().starts_with("act")) {
        Some(Layout::Flat)
    } else if groups.iter().any(|name| name.starts_with("episode_")) {
        Some(Layout::Minari)
    } else if groups.iter().any(|name| name == "data") {
        Some(Layout::Robomimic)
    } else if !arrays.is_empty() {
        Some(Layout::Flat)
    } else {
        None
    })
}

pub(crate) fn damaged(place: &Place, error: &Error) -> DataError {
    DataError::DamagedTable { place: place.clone(), format: "HDF5", problem: error.to_string() }
}
