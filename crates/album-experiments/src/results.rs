//! The results folder of `album reproduce`.
//!
//! ```text
//! album-results.json   the format
//! runs/ID/             a run directory, or the files of a command
//! logs/ID.log          what the run printed
//! jobs/ID.json         what a process was told to do
//! finished/ID          an empty file for each run that is done
//! failed/ID.json       why it failed, until it is tried again
//! reports/NAME-SCALE/  the pages and tables
//! slurm/NAME-SCALE/    what was submitted
//! ```

use crate::plan::{PlannedRun, Work};
use album::Error;
use album_base::atomic;
use album_base::files::{self, Links};
use album_train::{Records, RunDir, RunResult};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

const FORMAT_FILE: &str = "album-results.json";
/// Increased when older versions of album could no longer read the folder.
const FORMAT: u32 = 1;
const DONE: &str = "album-done.json";

/// A results folder.
#[derive(Clone, Debug)]
pub struct Results {
    folder: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Format {
    format: u32,
    album: String,
}

/// Why a run failed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FailureNote {
    /// The exit code; `None` if a signal ended the process.
    pub code: Option<u8>,
    /// The error message.
    pub message: String,
}

/// The state of a run.
#[derive(Clone, Debug)]
pub enum State {
    /// Not started.
    Waiting,
    /// A process is working on it.
    Running,
    /// Started and stopped; can be resumed.
    Interrupted,
    /// Done.
    Finished,
    /// The last attempt failed.
    Failed(FailureNote),
}

impl State {
    /// The state as one word.
    pub fn word(&self) -> &'static str {
        match self {
            State::Waiting => "waiting",
            State::Running => "running",
            State::Interrupted => "interrupted",
            State::Finished => "finished",
            State::Failed(_) => "failed",
        }
    }
}

/// Number of steps done, and the speed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pace {
    /// Gradient steps.
    pub step: u64,
    /// Milliseconds per step, including evaluations.
    pub ms_per_step: f64,
}

/// The contents of a results folder, from the listings of three subfolders: the states of thousands of runs
/// can be told without opening each of them.
#[derive(Debug)]
pub struct Listing<'a> {
    results: &'a Results,
    started: HashSet<OsString>,
    finished: HashSet<OsString>,
    failed: HashSet<OsString>,
}

impl Listing<'_> {
    /// The state of a run at the time of the listing; only runs that are neither waiting nor finished are
    /// opened.
    pub fn state(&self, run: &PlannedRun) -> State {
        let id = OsStr::new(&run.id);
        let started = self.started.contains(id);
        if started && self.finished.contains(id) {
            return State::Finished;
        }
        if !started && !self.failed.contains(OsStr::new(&format!("{}.json", run.id))) {
            return State::Waiting;
        }
        self.results.state(run)
    }
}

impl Results {
    /// Whether a folder is a results folder.
    pub fn is_one(folder: &Path) -> bool {
        folder.join(FORMAT_FILE).is_file()
    }

    /// Opens a folder for reading, which need not exist. One of another format is refused.
    pub fn at(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(FORMAT_FILE);
        match files::read_text(&path, Links::Refuse, SHORT) {
            Ok(text) => {
                let refuse = |what: String| {
                    Error::Config(format!(
                        "{}: {what}, expected format {FORMAT}; use another folder (--results DIR), or the album \
                         that made this one",
                        path.display()
                    ))
                };
                let found: Format =
                    serde_json::from_str(&text).map_err(|e| refuse(format!("not readable ({e})")))?;
                if found.format != FORMAT {
                    return Err(refuse(format!("format {} of album {}", found.format, found.album)));
                }
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                // Another process may be creating it right now; the first file it writes has a name that
                // starts with a dot.
                let foreign = |name: OsString| !name.to_string_lossy().starts_with('.');
                let mut entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
                if entries.any(|entry| foreign(entry.file_name())) && !path.is_file() {
                    return Err(Error::Config(format!(
                        "{} has files and is not a results folder (there is no {FORMAT_FILE}); name a new one with \
                         --results DIR",
                        folder.display()
                    )));
                }
            }
            Err(e) => return Err(Error::io(&path)(e)),
        }
        Ok(Results { folder: folder.to_path_buf() })
    }

    /// Creates the missing parts of the folder.
    pub fn create(&self) -> Result<(), Error> {
        std::fs::create_dir_all(&self.folder).map_err(Error::io(&self.folder))?;
        // First, because it marks the folder.
        if !Self::is_one(&self.folder) {
            write_json(
                &self.folder.join(FORMAT_FILE),
                &Format { format: FORMAT, album: env!("CARGO_PKG_VERSION").into() },
            )?;
        }
        for part in ["runs", "logs", "jobs", "finished", "failed", "reports"] {
            let path = self.folder.join(part);
            std::fs::create_dir_all(&path).map_err(Error::io(&path))?;
        }
        Ok(())
    }

    /// The path of the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The directory of a run.
    pub fn run(&self, id: &str) -> PathBuf {
        self.folder.join("runs").join(id)
    }

    /// The log of a run's output.
    pub fn log(&self, id: &str) -> PathBuf {
        self.folder.join("logs").join(format!("{id}.log"))
    }

    /// The folder of a plan's report.
    pub fn report(&self, plan: &str) -> PathBuf {
        self.folder.join("reports").join(plan)
    }

    fn note(&self, id: &str) -> PathBuf {
        self.folder.join("failed").join(format!("{id}.json"))
    }

    /// Records the failure of a run.
    pub fn fail(&self, id: &str, note: &FailureNote) -> Result<(), Error> {
        write_json(&self.note(id), note)
    }

    /// Removes the record of an earlier failure.
    pub fn forgive(&self, id: &str) -> Result<(), Error> {
        let path = self.note(id);
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io(&path)(e)),
            _ => Ok(()),
        }
    }

    /// The job file of a process.
    pub fn job(&self, id: &str) -> PathBuf {
        self.folder.join("jobs").join(format!("{id}.json"))
    }

    /// Lists its contents.
    pub fn list(&self) -> Listing<'_> {
        let names = |part: &str| {
            let entries = std::fs::read_dir(self.folder.join(part)).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name()).collect()
        };
        Listing {
            results: self,
            started: names("runs"),
            finished: names("finished"),
            failed: names("failed"),
        }
    }

    /// Records that a command is done.
    pub fn done(&self, id: &str, seconds: f64) -> Result<(), Error> {
        write_json(&self.run(id).join(DONE), &serde_json::json!({ "wall_seconds": seconds }))
    }

    /// Marks a run as finished, for [`Results::list`]; the run's own files say so too.
    pub fn mark_finished(&self, id: &str) -> Result<(), Error> {
        let path = self.folder.join("finished").join(id);
        // The file is empty, so there is nothing to sync.
        let options = OpenOptions::new().write(true).create(true).truncate(false).clone();
        files::open_with(&options, &path, Links::Refuse).map(drop).map_err(Error::io(&path))
    }

    /// The state of a run, from its own files.
    pub fn state(&self, run: &PlannedRun) -> State {
        let path = self.run(&run.id);
        let finished = match &run.work {
            Work::Train { .. } => self.result(&run.id).is_some_and(|result| result.finished),
            Work::Command(_) => path.join(DONE).is_file(),
        };
        if finished {
            return State::Finished;
        }
        if RunDir::is_locked(&path) {
            return State::Running;
        }
        let note = files::read(&self.note(&run.id), Links::Refuse, SHORT).ok();
        let note = note.and_then(|text| serde_json::from_slice(&text).ok());
        match note {
            Some(note) => State::Failed(note),
            None if path.join("config.toml").is_file() => State::Interrupted,
            None => State::Waiting,
        }
    }

    /// The outcome of a training run, if it has one.
    pub fn result(&self, id: &str) -> Option<RunResult> {
        let text = files::read(&self.run(id).join("result.json"), Links::Refuse, files::LONGEST_TEXT).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// The files of a run.
    pub fn records(&self, id: &str) -> Result<Option<Records>, Error> {
        let path = self.run(id);
        if !path.join("config.toml").is_file() {
            return Ok(None);
        }
        Ok(Some(Records::read(&path)?))
    }

    /// The progress of a run, from the end of its timing log.
    pub fn pace(&self, id: &str) -> Pace {
        let text = tail(&self.run(id).join("timing.csv"), 512);
        // A last line without a newline is still being written, and the first may be truncated.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut numbers = whole.lines().last().unwrap_or_default().rsplit(',');
        let mut next = || numbers.next().and_then(|field| field.parse::<f64>().ok());
        match (next(), next()) {
            (Some(step), Some(seconds)) if step > 0.0 => {
                Pace { step: step as u64, ms_per_step: 1e3 * seconds / step }
            }
            _ => Pace::default(),
        }
    }

    /// The last lines of a run's output.
    pub fn log_end(&self, id: &str, lines: usize) -> String {
        let text = tail(&self.log(id), 8192);
        let all: Vec<&str> = text.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }
}

/// The largest note read from a results folder.
const SHORT: u64 = 16 << 20;

/// The last bytes of a file; empty if it cannot be read.
fn tail(path: &Path, bytes: u64) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = files::open(path, Links::Refuse)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(bytes)))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        Ok(text)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}

pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|e| Error::Numerical(e.to_string()))?;
    text.push(b'\n');
    atomic::write_with(path, &text, Links::Refuse).map_err(Error::io(path))
}
