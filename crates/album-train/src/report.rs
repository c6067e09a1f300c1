//! The report of a run: one HTML page with its figures.

use std::path::{Path, PathBuf};

use album_data::atomic;
use album_report::html::Page;

use crate::error::TrainError;
use crate::run_dir::RunDir;

/// Builds the report of a run from the files in its directory, which it may still be growing in.
pub fn page(run: &Path) -> Result<Page, TrainError> {
    Ok(Page::new("A run of album").section("Configuration").code(RunDir::config_of(run)?))
}

/// Writes `report.html` into the directory of a run and returns its path.
pub fn write(run: &Path) -> Result<PathBuf, TrainError> {
    let path = run.join("report.html");
    atomic::write(&path, page(run)?.render().as_bytes()).map_err(TrainError::io("write", &path))?;
    Ok(path)
}
