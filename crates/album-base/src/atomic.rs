//! Files that are either completely new or untouched.
//!
//! Everything is written to a temporary file beside the target, which takes the
//! target's place only when it is whole and on the disk. After a crash or a
//! power cut there is the old file or the new one, never a part of either.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Replaces `path` by a file of these bytes, or leaves it as it was.
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("report.json");
/// album_base::atomic::write(&path, b"{}")?;
/// assert_eq!(std::fs::read(&path)?, b"{}");
/// # Ok(())
/// # }
/// ```
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(bytes)?;
    file.commit()
}

/// A file that appears under its name only on [`commit`](Self::commit).
///
/// Dropped without a commit, it leaves no trace. Writes are not buffered.
#[derive(Debug)]
pub struct AtomicFile {
    /// `None` once the temporary file has been renamed.
    temporary: Option<PathBuf>,
    target: PathBuf,
    file: File,
}

impl AtomicFile {
    /// Starts a new version of `path`.
    ///
    /// A symbolic link is followed, and an existing file's permissions are kept.
    /// Anything but a regular file (a directory, a device) is refused.
    pub fn create(path: &Path) -> io::Result<Self> {
        let (target, permissions) = match fs::canonicalize(path) {
            Ok(target) => {
                let metadata = fs::metadata(&target)?;
                if !metadata.is_file() {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidInput,
                        format!("{} exists and is not a regular file", path.display()),
                    ));
                }
                (target, Some(metadata.permissions()))
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => (path.to_path_buf(), None),
            Err(e) => return Err(e),
        };
        let (temporary, file) =
            create_beside(&target, |path| OpenOptions::new().write(true).create_new(true).open(path))?;
        // From here on, dropping `this` removes the temporary file.
        let this = Self { temporary: Some(temporary), target, file };
        if let Some(permissions) = permissions {
            this.file.set_permissions(permissions)?;
        }
        Ok(this)
    }

    /// Puts the file in its place, once its content is on the disk.
    pub fn commit(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        if let Some(temporary) = &self.temporary {
            fs::rename(temporary, &self.target)?;
        }
        self.temporary = None;
        sync_name(&self.target);
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for AtomicFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // There is no one to report a failure to.
            let _ = fs::remove_file(temporary);
        }
    }
}

/// A folder that appears under its name only on [`commit`](Self::commit), with all its files.
///
/// Dropped without a commit, it leaves no trace.
#[derive(Debug)]
pub struct AtomicFolder {
    /// `None` once the temporary folder has been renamed.
    temporary: Option<PathBuf>,
    target: PathBuf,
}

impl AtomicFolder {
    /// Starts a new version of the folder `target`.
    pub fn create(target: &Path) -> io::Result<Self> {
        let (temporary, ()) = create_beside(target, |path| fs::create_dir(path))?;
        Ok(Self { temporary: Some(temporary), target: target.to_path_buf() })
    }

    /// Where to write the files. The writer must also flush them to disk.
    pub fn path(&self) -> &Path {
        self.temporary.as_deref().unwrap_or(&self.target)
    }

    /// Puts the folder in its place, replacing an existing one. Where the system can exchange two folders,
    /// the name always refers to one of them; elsewhere it is missing for a moment.
    pub fn commit(mut self) -> io::Result<()> {
        let Some(temporary) = self.temporary.clone() else { return Ok(()) };
        sync_directory(&temporary)?;
        if self.target.exists() && exchange(&temporary, &self.target).is_ok() {
            // Dropping removes what is under the temporary name now: the old folder.
        } else if self.target.exists() {
            let (aside, ()) = create_beside(&self.target, |path| fs::rename(&self.target, path))?;
            if let Err(e) = fs::rename(&temporary, &self.target) {
                fs::rename(&aside, &self.target)?;
                return Err(e);
            }
            self.temporary = None;
            let _ = fs::remove_dir_all(&aside); // the new folder is in place already
        } else {
            fs::rename(&temporary, &self.target)?;
            self.temporary = None;
        }
        sync_name(&self.target);
        Ok(())
    }
}

impl Drop for AtomicFolder {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // There is no one to report a failure to.
            let _ = fs::remove_dir_all(temporary);
        }
    }
}

/// Creates something under a unique name in the target's directory, because a
/// rename is atomic only within one file system.
fn create_beside<T>(target: &Path, create: impl Fn(&Path) -> io::Result<T>) -> io::Result<(PathBuf, T)> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let Some(name) = target.file_name() else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{} has no file name", target.display()),
        ));
    };
    loop {
        // Process and counter make the name unique on this machine, the time
        // on a file system that several machines share.
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_nanos());
        let mut temporary = OsString::from(".");
        temporary.push(name);
        temporary.push(format!(".{:x}-{count:x}-{time:x}.tmp", std::process::id()));
        let temporary = directory_of(target).join(temporary);
        match create(&temporary) {
            Ok(created) => return Ok((temporary, created)),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
}

fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// Exchanges two folders, where the system can.
#[cfg(target_os = "linux")]
fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)?)
}

#[cfg(not(target_os = "linux"))]
fn exchange(_a: &Path, _b: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Syncs a new name to disk. A failure has no consequence for a reader: what was saved is in its place,
/// and calling it a failed save would make its caller undo or repeat what is done. Only a power cut
/// before the system writes the directory by itself brings back the old version.
fn sync_name(path: &Path) {
    let _ = sync_directory(&directory_of(path));
}

/// Waits until the names in a directory are on the disk.
#[cfg(unix)]
fn sync_directory(directory: &Path) -> io::Result<()> {
    match File::open(directory)?.sync_all() {
        // Some network file systems cannot do this, and order it themselves.
        Err(e) if e.kind() == io::ErrorKind::InvalidInput => Ok(()),
        done => done,
    }
}

/// Other systems cannot open a directory; there the rename has to suffice.
#[cfg(not(unix))]
fn sync_directory(_directory: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<OsString> {
        let mut names: Vec<_> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_old_file_stays_until_the_commit() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        write(&path, b"old").unwrap();
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(dir.path()).len(), 2);
        file.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(dir.path()), ["x"]);
    }

    #[test]
    fn dropping_leaves_no_trace() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        drop(file);
        assert!(names(dir.path()).is_empty());
    }

    #[test]
    fn folders_are_whole_or_not_there() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("folder");
        let build = |text: &str| {
            let folder = AtomicFolder::create(&target).unwrap();
            fs::write(folder.path().join("x"), text).unwrap();
            folder
        };
        drop(build("lost"));
        assert!(names(dir.path()).is_empty());
        build("old").commit().unwrap();
        let new = build("new");
        assert_eq!(fs::read(target.join("x")).unwrap(), b"old");
        new.commit().unwrap();
        assert_eq!(fs::read(target.join("x")).unwrap(), b"new");
        assert_eq!(names(dir.path()), ["folder"]);
        assert!(AtomicFolder::create(&dir.path().join("missing/folder")).is_err());
    }

    /// Replaces a folder again and again while another thread looks for it.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_replaced_folder_is_there_at_every_moment() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("folder");
        let replace = || {
            let folder = AtomicFolder::create(&target).unwrap();
            fs::write(folder.path().join("x"), "x").unwrap();
            folder.commit().unwrap();
        };
        replace();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let looking = scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    assert!(target.exists());
                }
            });
            (0..200).for_each(|_| replace());
            done.store(true, Ordering::Relaxed);
            looking.join().unwrap();
        });
        assert_eq!(names(dir.path()), ["folder"]);
    }

    #[test]
    fn two_writers_do_not_meet() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let mut first = AtomicFile::create(&path).unwrap();
        let mut second = AtomicFile::create(&path).unwrap();
        first.write_all(b"first").unwrap();
        second.write_all(b"second").unwrap();
        first.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"first");
        second.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(names(dir.path()), ["x"]);
    }

    #[test]
    fn only_regular_files_are_replaced() {
        let dir = tempfile::tempdir().unwrap();
        assert!(write(dir.path(), b"x").is_err());
        assert!(write(Path::new("/dev/null"), b"x").is_err());
        assert!(write(Path::new(""), b"x").is_err());
        assert!(write(&dir.path().join(".."), b"x").is_err());
        assert!(write(&dir.path().join("missing/x"), b"x").is_err());
        assert!(names(dir.path()).is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn links_and_permissions_are_kept() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("x"), dir.path().join("link"));
        write(&path, b"old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        symlink("x", &link).unwrap();
        write(&link, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }
}
