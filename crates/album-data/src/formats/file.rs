//! File helpers shared by all formats.

use std::fs::File;
use std::path::Path;

use album_base::files::{self, Links};

use crate::error::{DataError, Place};

/// Opens a regular file and returns its size; refuses directories, pipes and devices.
pub(crate) fn open_regular(path: &Path) -> Result<(File, u64), DataError> {
    let io_error = |source| DataError::Io { place: Place::file(path), source };
    let file = files::open(path, Links::Follow).map_err(|source| match files::is_wrong_kind(&source) {
        true => DataError::WrongFileKind {
            place: Place::file(path),
            found: "a directory, pipe or device".to_owned(),
            expected: "a regular file",
        },
        false => io_error(source),
    })?;
    let size = file.metadata().map_err(io_error)?.len();
    Ok((file, size))
}

/// Describes a file by its first bytes, for error messages.
pub(crate) fn describe_kind(start: &[u8]) -> String {
    match start {
        [] => "an empty file".to_owned(),
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => "a zip archive (.npz)".to_owned(),
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => "a single .npy array".to_owned(),
        [0x80, 2..=5, ..] => "a Python pickle, which album never reads".to_owned(),
        [0x89, b'H', b'D', b'F', ..] => "an HDF5 file".to_owned(),
        [0x1f, 0x8b, ..] => "a gzip file".to_owned(),
        _ => format!("a file that starts with {}", quote(&start[..start.len().min(6)])),
    }
}

/// Bytes from a file as printable text, truncated to fit a message.
pub(crate) fn quote(bytes: &[u8]) -> String {
    const SHOWN: usize = 60;
    let shown = bytes[..bytes.len().min(SHOWN)].escape_ascii();
    let dots = if bytes.len() > SHOWN { "..." } else { "" };
    format!("`{shown}{dots}`")
}
