//! What has arrived of a file, and what it is a part of.
//!
//! Parts have names of their own, so that no two processes ever write to one file. The process that writes to a part
//! holds a lock on it, which the system takes away when the process dies; a part without a lock is free for the next
//! call to go on with. A process that finds a locked part waits, rather than to download the same file twice.

use super::record::beside;
use album::Error as Failure;
use album_base::atomic;
use album_train::StopFlag;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Between two looks at a part that another process writes to.
const LOOK: Duration = Duration::from_millis(100);

/// What the server said about the file of which a part has arrived.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Origin {
    pub url: String,
    pub etag: Option<String>,
    pub last_modified: Option<String>,
    /// Of the whole file.
    pub length: Option<u64>,
    /// Whether more than one response contributed.
    pub spliced: bool,
    /// The process that writes, or did last.
    pub process: u32,
}

impl Origin {
    /// What makes a server send the rest only if it is the rest of the same file.
    pub fn validator(&self) -> Option<&str> {
        // A weak ETag says that two files are good for the same purpose, not that they have the same bytes.
        self.etag.as_deref().filter(|etag| !etag.starts_with("W/")).or(self.last_modified.as_deref())
    }
}

/// A part that this process alone writes to.
pub struct Part {
    path: PathBuf,
    /// The name of the whole file.
    file: String,
    /// Locked as long as it is open.
    content: File,
    length: u64,
    /// Bytes of it that an earlier process brought.
    inherited: u64,
    origin: Origin,
}

/// What [`claim`] found.
pub enum Claim {
    /// The whole file.
    Whole,
    /// A part to go on with, maybe an empty one.
    Part(Part),
}

/// Finds the part of a file to go on with, or starts one. Waits while another process fetches the file.
pub fn claim(folder: &Path, file: &str, stop: &StopFlag) -> Result<Claim, Failure> {
    let whole = folder.join(file);
    let mut waiting = false;
    loop {
        if stop.is_set() {
            return Err(Failure::Stopped(format!("stopped before {file} was fetched")));
        }
        if whole.exists() {
            clear(folder, file);
            return Ok(Claim::Whole);
        }
        match free_part(folder, file)? {
            Free::Part(part) => return Ok(Claim::Part(part)),
            Free::Busy(process) => {
                if !waiting {
                    eprintln!("{process} is fetching {file} into {}; waiting for it", folder.display());
                }
                waiting = true;
                std::thread::sleep(LOOK);
            }
            Free::None => {
                let part = Part::create(folder, file)?;
                // The process that was fetching it may have ended since.
                if let Some(part) = part {
                    if !whole.exists() {
                        return Ok(Claim::Part(part));
                    }
                    part.remove();
                }
            }
        }
    }
}

/// Removes the parts of a file that nobody writes to.
pub fn clear(folder: &Path, file: &str) {
    // What cannot be removed does no harm.
    for part in parts(folder, file).unwrap_or_default() {
        if let Ok(content) = File::open(&part)
            && content.try_lock().is_ok()
        {
            let _ = fs::remove_file(beside(&part));
            let _ = fs::remove_file(&part);
        }
    }
}

enum Free {
    Part(Part),
    /// There is one, but this process writes to it.
    Busy(String),
    None,
}

/// The longest part that no process writes to.
fn free_part(folder: &Path, file: &str) -> Result<Free, Failure> {
    let mut found = parts(folder, file).map_err(Failure::io(folder))?;
    found.sort_by_key(|path| std::cmp::Reverse(fs::metadata(path).map_or(0, |m| m.len())));
    let mut busy = None;
    for path in found {
        let Ok(content) = OpenOptions::new().write(true).open(&path) else { continue };
        let origin: Option<Origin> =
            fs::read(beside(&path)).ok().and_then(|text| serde_json::from_slice(&text).ok());
        match content.try_lock() {
            // It may have become the whole file between finding and locking it.
            Ok(()) if path.exists() => {
                let length = content.metadata().map_err(Failure::io(&path))?.len();
                let mut part = Part {
                    path,
                    file: file.to_owned(),
                    content,
                    length,
                    inherited: length,
                    origin: Origin::default(),
                };
                match origin {
                    Some(origin) => part.origin = origin,
                    // Without its origin nobody knows what it is a part of.
                    None => part.forget()?,
                }
                return Ok(Free::Part(part));
            }
            Err(TryLockError::WouldBlock) => {
                busy = Some(match origin {
                    Some(origin) => format!("process {}", origin.process),
                    None => "another process".to_owned(),
                });
            }
            // A file system without locks: leave it alone.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
    }
    Ok(busy.map_or(Free::None, Free::Busy))
}

fn parts(folder: &Path, file: &str) -> std::io::Result<Vec<PathBuf>> {
    let mut parts = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if let Some(name) = entry.file_name().to_str()
            && name.strip_prefix(file).is_some_and(|rest| rest.starts_with('.') && rest.ends_with(".part"))
        {
            parts.push(entry.path());
        }
    }
    Ok(parts)
}

impl Part {
    /// Starts an empty part; `None` if another process took it at once.
    fn create(folder: &Path, file: &str) -> Result<Option<Self>, Failure> {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
        let path = folder.join(format!("{file}.{:x}-{time:x}.part", std::process::id()));
        let content =
            OpenOptions::new().write(true).create_new(true).open(&path).map_err(Failure::io(&path))?;
        if let Err(TryLockError::WouldBlock) = content.try_lock() {
            return Ok(None);
        }
        let mut part =
            Part { path, file: file.to_owned(), content, length: 0, inherited: 0, origin: Origin::default() };
        // So that whoever waits can say for whom.
        part.describe(Origin::default())?;
        Ok(Some(part))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name of the whole file.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Bytes that have arrived.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Bytes of it that an earlier process brought.
    pub fn inherited(&self) -> u64 {
        self.inherited
    }

    /// What it is a part of.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Drops what has arrived, to begin with another file or another version of it.
    pub fn restart(&mut self, origin: Origin) -> Result<(), Failure> {
        self.content.set_len(0).map_err(Failure::io(&self.path))?;
        (self.length, self.inherited) = (0, 0);
        self.describe(origin)
    }

    /// Another response goes on where the part ends.
    pub fn splice(&mut self) -> Result<(), Failure> {
        self.describe(Origin { spliced: true, ..self.origin.clone() })
    }

    /// Drops what has arrived.
    pub fn forget(&mut self) -> Result<(), Failure> {
        self.restart(Origin::default())
    }

    /// Appends what arrived.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let place = &self.path;
        self.content.seek(SeekFrom::Start(self.length)).map_err(Failure::io(place))?;
        self.content.write_all(bytes).map_err(Failure::io(place))?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Gives it the name of the whole file.
    pub fn publish(self, whole: &Path) -> Result<(), Failure> {
        self.content.sync_all().map_err(Failure::io(&self.path))?;
        fs::rename(&self.path, whole).map_err(Failure::io(whole))?;
        // It describes nothing any more.
        let _ = fs::remove_file(beside(&self.path));
        Ok(())
    }

    /// Leaves no trace of a download of which nothing arrived.
    pub fn remove_if_empty(self) {
        if self.length == 0 {
            self.remove();
        }
    }

    fn remove(self) {
        // An empty file that stays does no harm.
        let _ = fs::remove_file(beside(&self.path));
        let _ = fs::remove_file(&self.path);
    }

    fn describe(&mut self, origin: Origin) -> Result<(), Failure> {
        self.origin = Origin { process: std::process::id(), ..origin };
        let path = beside(&self.path);
        let text = serde_json::to_string(&self.origin).map_err(|e| Failure::Numerical(e.to_string()))?;
        atomic::write(&path, text.as_bytes()).map_err(Failure::io(&path))
    }
}
