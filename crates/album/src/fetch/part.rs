//! A partial download, locked by the process that writes it; the lock is released when the process ends.

use super::{Event, FetchError, Record};
use album_base::atomic;
use album_base::files::{self, Links};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A partial download that only this process writes to.
pub struct Part {
    pub path: PathBuf,
    content: File,
    /// Bytes that have arrived.
    pub have: u64,
    /// What the server announced.
    pub origin: Record,
}

impl Part {
    /// Opens or starts the partial download of a file; `None` if the file is complete. Waits while another
    /// process downloads it.
    pub fn claim(whole: &Path, report: &mut dyn FnMut(Event)) -> Result<Option<Self>, FetchError> {
        let path = with_suffix(whole, ".part");
        while !whole.exists() {
            let options = OpenOptions::new().write(true).create(true).truncate(false).clone();
            let content = files::open_with(&options, &path, Links::Refuse);
            let content = content.map_err(FetchError::io(&path))?;
            if let Err(TryLockError::WouldBlock) = content.try_lock() {
                report(Event::Note("another process is downloading it; waiting".to_owned()));
                content.lock().map_err(FetchError::io(&path))?;
            } // Some network file systems lack locks; the content check must suffice there.
            if !is_at(&content, &path) {
                continue; // renamed or removed by the process that held the lock
            }
            let have = content.metadata().map_err(FetchError::io(&path))?.len();
            let origin = read_record(&path).unwrap_or_default();
            let mut part = Part { path, content, have, origin };
            if whole.exists() {
                part.remove();
                break;
            }
            if part.validator().is_none() {
                part.restart(Record::default())?;
            }
            return Ok(Some(part));
        }
        Ok(None)
    }

    /// The `If-Range` value that guarantees the remaining bytes belong to the same version; without one, the
    /// part cannot be resumed.
    pub fn validator(&self) -> Option<&str> {
        // A weak ETag does not guarantee identical bytes.
        let etag = self.origin.etag.as_deref().filter(|etag| !etag.starts_with("W/"));
        let fits = self.have > 0 && self.origin.size.is_none_or(|size| self.have <= size);
        etag.or(self.origin.last_modified.as_deref()).filter(|_| fits)
    }

    /// Discards the received bytes, to start over with another version of the file.
    pub fn restart(&mut self, origin: Record) -> Result<(), FetchError> {
        self.content.set_len(0).map_err(FetchError::io(&self.path))?;
        (self.have, self.origin) = (0, origin);
        write_record(&self.path, &self.origin)
    }

    /// Appends bytes, up to the announced length.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), FetchError> {
        let left = self.origin.size.map_or(u64::MAX, |size| size - self.have);
        let bytes = &bytes[..bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
        let seek = self.content.seek(SeekFrom::Start(self.have));
        seek.and_then(|_| self.content.write_all(bytes)).map_err(FetchError::io(&self.path))?;
        self.have += bytes.len() as u64;
        Ok(())
    }

    /// Renames the part to the final name.
    pub fn publish(self, whole: &Path) -> Result<(), FetchError> {
        self.content.sync_all().map_err(FetchError::io(&self.path))?;
        fs::rename(&self.path, whole).map_err(FetchError::io(whole))?;
        self.remove(); // its record
        Ok(())
    }

    /// Removes the part if no later call can resume it.
    pub fn remove_unless_resumable(&self) {
        if self.validator().is_none() {
            self.remove();
        }
    }

    fn remove(&self) {
        // A leftover record is harmless.
        let _ = fs::remove_file(with_suffix(&self.path, ".json"));
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |metadata: io::Result<fs::Metadata>| metadata.map(|m| (m.dev(), m.ino())).ok();
    id(file.metadata()) == id(fs::metadata(path))
}

#[cfg(not(unix))]
fn is_at(_file: &File, path: &Path) -> bool {
    path.exists()
}

/// The record beside a file, if it exists and is readable.
pub fn read_record(file: &Path) -> Option<Record> {
    let text = files::read(&with_suffix(file, ".json"), Links::Follow, 1 << 20).ok()?;
    serde_json::from_slice(&text).ok()
}

pub fn write_record(file: &Path, record: &Record) -> Result<(), FetchError> {
    let path = with_suffix(file, ".json");
    let text = serde_json::to_string_pretty(record).map_err(io::Error::from);
    text.and_then(|text| atomic::write(&path, format!("{text}\n").as_bytes())).map_err(FetchError::io(&path))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
