//! Atomic files: either completely new or untouched.
//!
//! Everything is written to a temporary file beside the target, which replaces the target only once it is
//! complete and synced. After a crash or a power cut there is the old file or the new one, never a part of
//! either.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::files::{self, Links};

/// Replaces `path` by a file with these bytes, or leaves it as it was.
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
    write_with(path, bytes, Links::Follow)
}

/// The same with a choice about symbolic links: in an untrusted folder they are refused.
pub fn write_with(path: &Path, bytes: &[u8], links: Links) -> io::Result<()> {
    let mut file = AtomicFile::create_with(path, links)?;
    file.write_all(bytes)?;
    file.commit()
}

/// Replaces several files of a folder, which is created if missing: all of them are synced before the first
/// replaces its target, so that a full disk leaves everything as it was. The error names its file.
pub fn write_together(
    folder: &Path,
    files: impl IntoIterator<Item = (String, String)>,
) -> Result<Vec<PathBuf>, (PathBuf, io::Error)> {
    let at = |path: &Path| {
        let path = path.to_path_buf();
        move |e| (path, e)
    };
    let made = !folder.exists();
    fs::create_dir_all(folder).map_err(at(folder))?;
    let write = || {
        let mut written = Vec::new();
        for (name, content) in files {
            let path = folder.join(name);
            let mut file = AtomicFile::create(&path).map_err(at(&path))?;
            file.write_all(content.as_bytes()).and_then(|()| file.file.sync_all()).map_err(at(&path))?;
            written.push((path, file));
        }
        Ok(written)
    };
    let written = write().inspect_err(|_| {
        if made {
            let _ = fs::remove_dir(folder); // fails if another process has put files into it
        }
    })?;
    let commit = |(path, file): (PathBuf, AtomicFile)| file.commit().map_err(at(&path)).map(|()| path);
    written.into_iter().map(commit).collect()
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
    /// A symbolic link is followed, and an existing file's permissions are kept. Anything but a regular file
    /// (a directory, a device) is refused.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::create_with(path, Links::Follow)
    }

    /// The same with a choice about symbolic links.
    pub fn create_with(path: &Path, links: Links) -> io::Result<Self> {
        if links == Links::Refuse && path.is_symlink() {
            files::open(path, links)?; // fails with a description of what it found
        }
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

    /// Syncs the file and moves it to its place.
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
            // A failure cannot be reported from here.
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
        sweep(target);
        let (temporary, ()) = create_beside(target, |path| fs::create_dir(path))?;
        Ok(Self { temporary: Some(temporary), target: target.to_path_buf() })
    }

    /// Where to write the files. The writer must also sync them.
    pub fn path(&self) -> &Path {
        self.temporary.as_deref().unwrap_or(&self.target)
    }

    /// Moves the folder to its place, replacing an existing one. Where the system can exchange two folders
    /// atomically, the name always refers to one of them; elsewhere it is missing for a moment.
    pub fn commit(mut self) -> io::Result<()> {
        let Some(temporary) = self.temporary.clone() else { return Ok(()) };
        sync_directory(&temporary)?;
        if self.target.exists() && exchange(&temporary, &self.target).is_ok() {
            // Dropping removes what now has the temporary name: the old folder.
        } else if self.target.exists() {
            let (aside, ()) = create_beside(&self.target, |path| fs::rename(&self.target, path))?;
            if let Err(e) = fs::rename(&temporary, &self.target) {
                fs::rename(&aside, &self.target)?;
                return Err(e);
            }
            self.temporary = None;
            let _ = fs::remove_dir_all(&aside); // the new folder is already in place
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
            // A failure cannot be reported from here.
            let _ = fs::remove_dir_all(temporary);
        }
    }
}

/// Creates something under a unique name in the target's directory, because a rename is atomic only within
/// one file system.
fn create_beside<T>(target: &Path, create: impl Fn(&Path) -> io::Result<T>) -> io::Result<(PathBuf, T)> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let Some(name) = target.file_name() else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{} has no file name", target.display()),
        ));
    };
    loop {
        // Process id and counter make the name unique on this machine, the time on a file system shared by
        // several machines.
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

/// How long a temporary file or folder is kept after its process is gone. A process on another machine would
/// write to it more often.
const ABANDONED: Duration = Duration::from_secs(3600);

/// Removes what killed processes of this user left beside a target, before something large is written there
/// again. Failures are harmless.
pub fn sweep(target: &Path) {
    let Some(name) = target.file_name().and_then(|name| name.to_str()) else { return };
    for entry in fs::read_dir(directory_of(target)).into_iter().flatten().flatten() {
        let process = entry.file_name().to_str().and_then(|found| process_of(found, name));
        let path = entry.path();
        if process.is_none_or(is_alive) || !is_mine(&path) || !is_abandoned(&path) {
            continue;
        }
        let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
    }
}

/// The id of the process that created a temporary name for a target.
fn process_of(found: &str, target: &str) -> Option<u32> {
    let made = found.strip_prefix('.')?.strip_prefix(target)?.strip_prefix('.')?.strip_suffix(".tmp")?;
    let mut numbers = made.split('-').map(|digits| u128::from_str_radix(digits, 16).ok());
    let (Some(process), Some(_), Some(_), None) =
        (numbers.next()?, numbers.next()?, numbers.next()?, numbers.next())
    else {
        return None;
    };
    u32::try_from(process).ok()
}

#[cfg(unix)]
fn is_alive(process: u32) -> bool {
    use rustix::process::{Pid, test_kill_process};
    let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) else { return false };
    test_kill_process(pid) != Err(rustix::io::Errno::SRCH)
}

#[cfg(not(unix))]
fn is_alive(_process: u32) -> bool {
    false
}

#[cfg(unix)]
fn is_mine(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let me = rustix::process::geteuid().as_raw();
    fs::symlink_metadata(path).is_ok_and(|found| found.uid() == me && !found.is_symlink())
}

#[cfg(not(unix))]
fn is_mine(path: &Path) -> bool {
    !path.is_symlink()
}

/// Whether neither it nor a file in it was modified for a while.
fn is_abandoned(path: &Path) -> bool {
    let old = |path: &Path| {
        let changed = fs::symlink_metadata(path).and_then(|found| found.modified());
        changed.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > ABANDONED))
    };
    old(path) && fs::read_dir(path).into_iter().flatten().flatten().all(|entry| old(&entry.path()))
}

fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// Exchanges two folders atomically, if the system can.
#[cfg(target_os = "linux")]
fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)?)
}

#[cfg(not(target_os = "linux"))]
fn exchange(_a: &Path, _b: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Syncs a new name to disk. A failure does not matter to a reader: the saved data is in place, and reporting
/// a failed save would make the caller undo or repeat it. Only a power cut before the system writes the
/// directory by itself brings back the old version.
fn sync_name(path: &Path) {
    let _ = sync_directory(&directory_of(path));
}

/// Syncs the entries of a directory to disk.
#[cfg(unix)]
fn sync_directory(directory: &Path) -> io::Result<()> {
    match File::open(directory)?.sync_all() {
        // Some network file systems do not support this and order writes themselves.
        Err(e) if e.kind() == io::ErrorKind::InvalidInput => Ok(()),
        done => done,
    }
}

/// Other systems cannot open a directory; there the rename must suffice.
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
    fn several_files_change_together() {
        let dir = tempfile::tempdir().unwrap();
        let files = |names: [&str; 2], text: &str| names.map(|name| (name.to_owned(), text.to_owned()));
        let folder = dir.path().join("new/report");
        write_together(&folder, files(["a", "b"], "old")).unwrap();
        fs::create_dir(folder.join("c")).unwrap(); // cannot be replaced by a file
        let (path, _) = write_together(&folder, files(["a", "c"], "new")).unwrap_err();
        assert_eq!(path, folder.join("c"));
        assert_eq!(fs::read(folder.join("a")).unwrap(), b"old");
        assert_eq!(names(&folder), ["a", "b", "c"]);
        assert!(write_together(&dir.path().join("none"), files(["a", "b/c"], "new")).is_err());
        assert!(!dir.path().join("none").exists());
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

    /// Replaces a folder repeatedly while another thread looks for it.
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

    #[cfg(unix)]
    #[test]
    fn what_killed_processes_left_is_swept() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("log.columns");
        // No process has an id this high.
        let left = |process: u32, name: &str, age: Duration| {
            let path = dir.path().join(format!(".{name}.{process:x}-0-17f.tmp"));
            fs::create_dir(&path).unwrap();
            fs::write(path.join("observations.f32"), [0; 8]).unwrap();
            for path in [path.join("observations.f32"), path] {
                File::open(path).unwrap().set_modified(SystemTime::now() - age).unwrap();
            }
        };
        let day = Duration::from_secs(86_400);
        left(0x7fff_fffe, "log.columns", day);
        left(0x7fff_fffd, "log.columns", Duration::from_secs(60)); // another machine may still write to it
        left(std::process::id(), "log.columns", day);
        left(0x7fff_fffe, "other.columns", day);
        fs::create_dir(dir.path().join(".log.columns.mine.tmp")).unwrap();
        drop(AtomicFolder::create(&target).unwrap());
        let mine = format!(".log.columns.{:x}-0-17f.tmp", std::process::id());
        let mut kept = [
            ".log.columns.7ffffffd-0-17f.tmp",
            ".log.columns.mine.tmp",
            ".other.columns.7ffffffe-0-17f.tmp",
            &mine,
        ];
        kept.sort_unstable();
        assert_eq!(names(dir.path()), kept);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_refused_where_it_may_be_a_strangers() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("x"), dir.path().join("link"));
        write(&path, b"old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(files::is_wrong_kind(&write_with(&link, b"new", Links::Refuse).unwrap_err()));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        write_with(&path, b"new", Links::Refuse).unwrap();
        write_with(&dir.path().join("y"), b"new", Links::Refuse).unwrap();
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
