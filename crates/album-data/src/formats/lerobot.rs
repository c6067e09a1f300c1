//! LeRobot v3 datasets: `meta/info.json`, and Parquet tables `data/chunk-000/file-000.parquet`, ...

use std::path::{Path, PathBuf};

use crate::error::{DataError, Place};

/// Whether a folder is a LeRobot dataset.
pub(crate) fn is_dataset(folder: &Path) -> bool {
    folder.join("meta").join("info.json").is_file() && folder.join("data").is_dir()
}

/// The tables, ordered by number and therefore by episode.
pub(crate) fn tables(folder: &Path) -> Result<Vec<PathBuf>, DataError> {
    let mut tables = Vec::new();
    for chunk in sorted(&folder.join("data"))? {
        if chunk.is_dir() {
            tables.extend(
                sorted(&chunk)?.into_iter().filter(|path| path.extension().is_some_and(|e| e == "parquet")),
            );
        }
    }
    if tables.is_empty() {
        return Err(DataError::WrongFileKind {
            place: Place::file(folder),
            found: "meta/info.json without tables".to_owned(),
            expected: "tables data/chunk-000/file-000.parquet, ... as LeRobot v3 writes",
        });
    }
    Ok(tables)
}

/// The paths in a folder, sorted as strings; this is the numeric order, since the numbers are zero-padded.
fn sorted(folder: &Path) -> Result<Vec<PathBuf>, DataError> {
    let io_error = |source| DataError::Io { place: Place::file(folder), source };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(io_error)? {
        paths.push(entry.map_err(io_error)?.path());
    }
    paths.sort();
    Ok(paths)
}
