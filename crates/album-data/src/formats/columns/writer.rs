//! Writes one column, on a thread of its own beside the reading of the next rows.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use album_base::hex::hex;
use sha2::{Digest, Sha256};

use crate::error::{DataError, Place};
use crate::formats::columns::manifest::{ColumnFile, dtype, file_name};
use crate::formats::npz::array::DType;

/// Buffers on their way to a column's thread: memory stays small if the disk is slow.
const WAITING: usize = 2;

/// Writes, hashes and syncs one column.
pub(super) struct ColumnWriter {
    path: PathBuf,
    bytes: u64,
    dtype: DType,
    width: usize,
    work: SyncSender<Work>,
    /// Buffers to use again.
    spare: Receiver<Vec<u8>>,
    /// Returns the hash; `None` after its end.
    thread: Option<JoinHandle<io::Result<String>>>,
}

enum Work {
    Write(Vec<u8>),
    /// Everything is written: sync it.
    Keep,
    /// Everything is written, and will be read again soon, but not kept.
    Leave,
}

impl ColumnWriter {
    pub(super) fn create(folder: &Path, name: &str, width: usize) -> Result<Self, DataError> {
        Self::create_as(&folder.join(file_name(name, dtype(name).unwrap_or(DType::F32))), name, width)
    }

    /// Creates a column in a file with another name than usual.
    pub(super) fn create_as(path: &Path, name: &str, width: usize) -> Result<Self, DataError> {
        let dtype = dtype(name).unwrap_or(DType::F32);
        let file = create_new(path)?;
        let ((work, todo), (done, spare)) = (sync_channel(WAITING), channel());
        let thread = std::thread::Builder::new().name(format!("column {name}"));
        let thread = thread.spawn(move || write_down(file, &todo, &done)).map_err(io_error(path))?;
        Ok(Self { path: path.to_path_buf(), bytes: 0, dtype, width, work, spare, thread: Some(thread) })
    }

    /// The number of bytes so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), DataError> {
        let mut buffer = self.spare.try_recv().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(bytes);
        self.bytes += bytes.len() as u64;
        self.give(Work::Write(buffer))
    }

    /// Begins to sync the column; [`finish`](Self::finish) waits for it.
    pub(super) fn end(&mut self) -> Result<(), DataError> {
        self.give(Work::Keep)
    }

    /// Waits until the ended column is on disk.
    pub(super) fn finish(mut self) -> Result<ColumnFile, DataError> {
        let sha256 = self.join()?;
        Ok(ColumnFile { dtype: self.dtype.to_string(), width: self.width, bytes: self.bytes, sha256 })
    }

    /// Waits until everything can be read from the file, which is only temporary.
    pub(super) fn leave(mut self) -> Result<(), DataError> {
        self.give(Work::Leave)?;
        self.join().map(drop)
    }

    fn give(&mut self, work: Work) -> Result<(), DataError> {
        match self.work.send(work) {
            Ok(()) => Ok(()),
            // Its thread has ended: with an error.
            Err(_) => self.join().map(drop),
        }
    }

    fn join(&mut self) -> Result<String, DataError> {
        let ended = self.thread.take().and_then(|thread| thread.join().ok());
        let ended = ended.unwrap_or_else(|| Err(io::Error::other("the thread that writes it has ended")));
        ended.map_err(io_error(&self.path))
    }
}

/// The work of a column's thread, until the column has ended or its writer is gone.
fn write_down(mut file: File, todo: &Receiver<Work>, done: &Sender<Vec<u8>>) -> io::Result<String> {
    let mut hash = Sha256::new();
    for work in todo {
        match work {
            Work::Write(bytes) => {
                file.write_all(&bytes)?;
                hash.update(&bytes);
                let _ = done.send(bytes); // nobody needs it any more if the writer is gone
            }
            Work::Keep => {
                keep(&file)?;
                break;
            }
            Work::Leave => break,
        }
    }
    let hash: [u8; 32] = hash.finalize().into();
    Ok(hex(&hash))
}

pub(super) fn write_new(path: &Path, bytes: &[u8]) -> Result<(), DataError> {
    let mut file = create_new(path)?;
    file.write_all(bytes).and_then(|()| keep(&file)).map_err(io_error(path))
}

fn create_new(path: &Path) -> Result<File, DataError> {
    OpenOptions::new().write(true).create_new(true).open(path).map_err(io_error(path))
}

/// Syncs a file to disk and makes it read-only: memory maps rely on files that do not change.
fn keep(file: &File) -> io::Result<()> {
    let mut permissions = file.metadata()?.permissions();
    permissions.set_readonly(true);
    file.set_permissions(permissions)?;
    file.sync_all()
}

pub(super) fn io_error(path: &Path) -> impl FnOnce(io::Error) -> DataError {
    let place = Place::file(path);
    move |source| DataError::Io { place, source }
}
