//! What has arrived of a file. The process that writes it holds a lock, which ends with the process.

use super::{Event, FetchError, Record};
use album_base::atomic;
use album_base::files::{self, Links};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A part that this process alone writes to.
pub struct Part {
    pub path: PathBuf,
    content: File,
    /// Bytes that have arrived.
    pub have: u64,
    /// What the server announced.
    pub origin: Record,
}

impl Part {
    /// Finds the part of a file, or starts one; `None` if the whole file is there. Waits while another process
    /// downloads it.
    pub fn claim(whole: &Path, report: &mut dyn FnMut(Event)) -> Result<Option<Self>, FetchError> {
        let path = with_suffix(whole, ".part");
        while !whole.exists() {
            let options = OpenOptions::new().write(true).create(true).truncate(false).clone();
            let content = files::open_with(&options, &path, Links::Refuse);
            let content = content.map_err(FetchError::io(&path))?;
            if let Err(TryLockError::WouldBlock) = content.try_lock() {
                report(Event::Note("another process downloads it; waiting".to_owned()));
                content.lock().map_err(FetchError::io(&path))?;
            } // Some network file systems have no locks; there the check of the content must do.
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

    /// What makes a server send the rest only of the same bytes; without it the part cannot be resumed.
    pub fn validator(&self) -> Option<&str> {
        // A weak ETag does not promise the same bytes.
        let etag = self.origin.etag.as_deref().filter(|etag| !etag.starts_with("W/"));
        let fits = self.have > 0 && self.origin.size.is_none_or(|size| self.have <= size);
        etag.or(self.origin.last_modified.as_deref()).filter(|_| fits)
    }

    /// Drops what has arrived, to begin with another file or another version of it.
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

    /// Gives it the name of the whole file.
    pub fn publish(self, whole: &Path) -> Result<(), FetchError> {
        self.content.sync_all().map_err(FetchError::io(&self.path))?;
        fs::rename(&self.path, whole).map_err(FetchError::io(whole))?;
        self.remove(); // its record
        Ok(())
    }

    /// Leaves nothing behind that no later call can use.
    pub fn remove_unless_resumable(&self) {
        if self.validator().is_none() {
            self.remove();
        }
    }

    fn remove(&self) {
        // A leftover does no harm.
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

/// The record beside a file, if there is one that can be read.
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
