//! The folder of unfinished work.

use std::fs::{File, TryLockError};
use std::path::Path;

use super::play::RecordError;

/// Locks the folder until the file is dropped or this process ends.
pub(super) fn lock(work: &Path) -> Result<File, RecordError> {
    let path = work.join("lock");
    let file = File::create(&path).map_err(RecordError::io(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(RecordError::Busy { folder: work.to_path_buf() }),
        Err(TryLockError::Error(source)) => Err(RecordError::Io { path, source }),
    }
}
