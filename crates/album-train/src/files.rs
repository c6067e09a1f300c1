//! File helpers of a run.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::error::TrainError;
use album_base::hex::hex;

/// SHA-256 as 64 hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(Sha256::digest(bytes).as_slice())
}

/// Writes a new file and syncs it to disk.
pub(crate) fn write_synced(path: &Path, bytes: &[u8]) -> Result<(), TrainError> {
    let mut file = File::create_new(path).map_err(TrainError::io("create", path))?;
    file.write_all(bytes).map_err(TrainError::io("write", path))?;
    file.sync_all().map_err(TrainError::io("write", path))
}

/// Syncs the entries of a directory to disk.
pub(crate) fn sync_directory(path: &Path) -> Result<(), TrainError> {
    #[cfg(unix)]
    match File::open(path).and_then(|directory| directory.sync_all()) {
        // Some network file systems do not support this and order writes themselves.
        Err(e) if e.kind() == io::ErrorKind::InvalidInput => {}
        done => done.map_err(TrainError::io("sync", path))?,
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

/// The names in a directory, sorted, without those that are not UTF-8.
pub(crate) fn names(directory: &Path) -> Result<Vec<String>, TrainError> {
    let read = || -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(directory)? {
            names.extend(entry?.file_name().into_string());
        }
        names.sort();
        Ok(names)
    };
    read().map_err(TrainError::io("list", directory))
}
