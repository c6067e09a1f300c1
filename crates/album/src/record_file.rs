//! Small JSON records in a run directory.

use crate::Error;
use album_base::atomic;
use album_base::files::{self, Links};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;

/// Writes a record atomically.
pub(crate) fn write(path: &Path, record: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_vec_pretty(record).map_err(|e| Error::Numerical(e.to_string()))?;
    atomic::write_with(path, &text, Links::Refuse).map_err(Error::io(path))
}

/// Reads a record, if it exists.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    match files::read(path, Links::Refuse, files::LONGEST_TEXT) {
        Ok(text) => {
            let record = serde_json::from_slice(&text);
            record.map(Some).map_err(|e| Error::Load(format!("{}: {e}", path.display())))
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io(path)(e)),
    }
}
