//! The run directory.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use album_base::atomic;
use album_base::files::{self, Links};

use crate::error::TrainError;
use crate::files::{names, sync_directory};

/// The resolved configuration; its presence marks a run directory.
const CONFIG: &str = "config.toml";
const LOCK: &str = "run.lock";

/// A run directory that only this process may write to, until the value is dropped.
///
/// ```text
/// config.toml          the resolved configuration
/// train.csv            metrics of training, every `log_every` steps
/// eval.csv             means over the episodes of each evaluation
/// timing.csv           all that depends on the clock; the other logs do not
/// episodes.jsonl       each evaluation's episodes, with the paths of some
/// value_maps.jsonl     V at given points, at each evaluation
/// events.out.tfevents.album   the same numbers for TensorBoard
/// checkpoints/         the last two checkpoints
/// result.json          the outcome
/// report.html          the figures
/// run.lock             locked while a process works here
/// ```
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    /// Locked while open; the system releases it when the process dies.
    _lock: File,
}

impl RunDir {
    /// Creates the directory of a new run, with its configuration.
    ///
    /// The directory may exist if it is empty.
    pub fn create(path: impl Into<PathBuf>, config: &str) -> Result<Self, TrainError> {
        let path = path.into();
        fs::create_dir_all(&path).map_err(TrainError::io("create the directory", &path))?;
        refuse_content(&path)?;
        let lock = lock(&path)?;
        // Another process may have created a run here in the meantime.
        refuse_content(&path)?;
        let run = RunDir { path, _lock: lock };
        run.write(CONFIG, config.as_bytes())?;
        run.prepare()?;
        Ok(run)
    }

    /// Refuses a place where [`RunDir::create`] would find something. What a run leaves that died while being created is
    /// nothing.
    pub fn check_new(path: &Path) -> Result<(), TrainError> {
        if path.is_dir() { refuse_content(path) } else { Ok(()) }
    }

    /// Opens a run directory to resume, and cleans up after an interrupted save.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, TrainError> {
        let path = path.into();
        Self::config_of(&path)?; // fails if it is not a run, or a link
        let run = RunDir { _lock: lock(&path)?, path };
        run.prepare()?;
        Ok(run)
    }

    /// Reads the configuration of a run that another process may be working on.
    pub fn config_of(path: impl AsRef<Path>) -> Result<String, TrainError> {
        let path = path.as_ref();
        let file = path.join(CONFIG);
        fs::metadata(path).map_err(TrainError::io("open the run directory", path))?;
        if !fs::symlink_metadata(&file).is_ok_and(|found| !found.is_dir()) {
            return Err(TrainError::NotARun { path: path.to_path_buf(), expected: CONFIG });
        }
        files::refuse_links_inside(path).map_err(TrainError::io("use", path))?;
        files::read_text(&file, Links::Refuse, files::LONGEST_TEXT).map_err(TrainError::io("read", &file))
    }

    /// Locks a directory for this process, until the file is dropped.
    pub fn lock(path: &Path) -> Result<File, TrainError> {
        lock(path)
    }

    /// Whether a process is working on a run.
    pub fn is_locked(path: impl AsRef<Path>) -> bool {
        let shared = files::open(&path.as_ref().join(LOCK), Links::Refuse).map(|file| file.try_lock_shared());
        matches!(shared, Ok(Err(TryLockError::WouldBlock)))
    }

    /// The checkpoints of a run that another process may be working on.
    pub fn checkpoints_of(path: impl AsRef<Path>) -> PathBuf {
        path.as_ref().join("checkpoints")
    }

    /// The path of the run.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The configuration that it was created with.
    pub fn config(&self) -> Result<String, TrainError> {
        Self::config_of(&self.path)
    }

    /// The directory of the checkpoints.
    pub fn checkpoints(&self) -> PathBuf {
        Self::checkpoints_of(&self.path)
    }

    /// The path of a file in the directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Replaces a file in the directory atomically.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), TrainError> {
        let path = self.file(name);
        atomic::write_with(&path, bytes, Links::Refuse).map_err(TrainError::io("write", &path))
    }

    fn prepare(&self) -> Result<(), TrainError> {
        files::refuse_links_inside(&self.path).map_err(TrainError::io("use", &self.path))?;
        let checkpoints = self.checkpoints();
        if !checkpoints.is_dir() {
            fs::create_dir(&checkpoints).map_err(TrainError::io("create the directory", &checkpoints))?;
            sync_directory(&self.path)?;
        }
        crate::checkpoint::recover(&checkpoints)?;
        // Temporary files of `atomic::write`; no other process writes here while the lock is held.
        for name in names(&self.path)? {
            if name.starts_with('.') && name.ends_with(".tmp") {
                let path = self.file(&name);
                fs::remove_file(&path).map_err(TrainError::io("remove", &path))?;
            }
        }
        Ok(())
    }
}

fn refuse_content(path: &Path) -> Result<(), TrainError> {
    // A run that died while being created leaves only these.
    let ours = |name: &str| name == LOCK || name.starts_with(".config.toml.") && name.ends_with(".tmp");
    match names(path)?.into_iter().find(|name| !ours(name)) {
        Some(found) => Err(TrainError::NotEmpty { path: path.to_path_buf(), found }),
        None => Ok(()),
    }
}

fn lock(directory: &Path) -> Result<File, TrainError> {
    let path = directory.join(LOCK);
    let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).clone();
    let mut file = files::open_with(&options, &path, Links::Refuse).map_err(TrainError::io("open", &path))?;
    // A process that only checks the lock holds it for a moment.
    let mut tries = 0;
    let locked = loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if tries < 5 => tries += 1,
            result => break result,
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    match locked {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let holder = files::read_text(&path, Links::Refuse, 100).unwrap_or_default();
            let holder = match holder.trim() {
                "" => "another process".to_owned(),
                pid => format!("process {pid}"),
            };
            return Err(TrainError::Locked { path: directory.to_path_buf(), holder });
        }
        Err(TryLockError::Error(source)) => return Err(TrainError::Io { action: "lock", path, source }),
    }
    // Before truncating it, make sure that it is a lock: a hard link may stand for another file.
    let mut found = String::new();
    let ours = |found: &str| found.len() < 32 && found.trim().bytes().all(|byte| byte.is_ascii_digit());
    if !Read::by_ref(&mut file).take(33).read_to_string(&mut found).is_ok_and(|_| ours(&found)) {
        return Err(TrainError::damaged(&path, "found other contents than a process id"));
    }
    file.set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .map_err(TrainError::io("write", &path))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_run_needs_an_empty_directory() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b");
        let run = RunDir::create(&path, "seed = 1\n").unwrap();
        assert_eq!(run.config().unwrap(), "seed = 1\n");
        drop(run);
        let error = RunDir::create(&path, "").unwrap_err();
        assert!(matches!(error, TrainError::NotEmpty { .. }), "{error}");
        assert_eq!(RunDir::config_of(&path).unwrap(), "seed = 1\n");
        RunDir::open(&path).unwrap();

        let stillborn = dir.path().join("stillborn");
        fs::create_dir(&stillborn).unwrap();
        fs::write(stillborn.join(LOCK), "1\n").unwrap();
        fs::write(stillborn.join(".config.toml.1-0-2.tmp"), "se").unwrap();
        RunDir::check_new(&stillborn).unwrap();
        drop(RunDir::create(&stillborn, "seed = 2\n").unwrap());
        assert_eq!(names(&stillborn).unwrap(), ["checkpoints", "config.toml", "run.lock"]);

        let foreign = dir.path().join("foreign");
        fs::create_dir(&foreign).unwrap();
        fs::write(foreign.join("thesis.tex"), "").unwrap();
        let message = RunDir::create(&foreign, "").unwrap_err().to_string();
        assert!(message.contains("thesis.tex") && message.contains("album resume"), "{message}");
        assert_eq!(names(&foreign).unwrap(), ["thesis.tex"]);
        RunDir::check_new(&foreign).unwrap_err();
        RunDir::check_new(&dir.path().join("nowhere")).unwrap();
    }

    #[test]
    fn a_second_user_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run");
        let run = RunDir::create(&path, "").unwrap();
        let error = RunDir::open(&path).unwrap_err();
        assert!(error.is_io());
        assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
        drop(run);
        RunDir::open(&path).unwrap();
    }

    #[test]
    fn other_directories_and_files_are_no_runs() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(RunDir::open(dir.path()), Err(TrainError::NotARun { .. })));
        assert!(RunDir::open(dir.path().join("none")).unwrap_err().is_io());
        assert!(names(dir.path()).unwrap().is_empty());
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let error = RunDir::create(&file, "").unwrap_err();
        assert!(error.is_io() && error.to_string().contains("file"), "{error}");
    }

    #[test]
    fn temporaries_are_cleared() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run");
        drop(RunDir::create(&path, "").unwrap());
        fs::write(path.join(".result.json.1-2-3.tmp"), "{").unwrap();
        drop(RunDir::open(&path).unwrap());
        assert_eq!(names(&path).unwrap(), ["checkpoints", "config.toml", "run.lock"]);
    }
}
