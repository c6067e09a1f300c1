//! The folder that `album reproduce` keeps its runs in.
//!
//! ```text
//! album-results.json   the format
//! runs/ID/             a run directory, or the files of a command
//! logs/ID.log          what the run printed
//! failed/ID.json       why it failed, until it is tried again
//! reports/NAME-SCALE/  the pages and tables
//! slurm/NAME-SCALE/    what was submitted
//! ```

use super::plan::{Planned, Work};
use album::Error as Failure;
use album_base::atomic;
use album_train::{Records, RunDir, RunResult};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

const FORMAT_FILE: &str = "album-results.json";
/// Changes when an older album could not make sense of a folder.
const FORMAT: u32 = 1;
const DONE: &str = "album-done.json";

/// A results folder.
#[derive(Clone)]
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
    /// The exit code; nothing if a signal ended the process.
    pub code: Option<u8>,
    /// What it said.
    pub message: String,
}

/// How far a run is.
#[derive(Clone, Debug)]
pub enum State {
    /// Not begun.
    Waiting,
    /// A process works on it.
    Running,
    /// Begun and stopped; it can go on.
    Interrupted,
    /// Done.
    Finished,
    /// Failed at its last try.
    Failed(FailureNote),
}

impl State {
    /// One word.
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

/// How many steps a run has done, and how fast.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Updates.
    pub step: u64,
    /// Milliseconds of one, evaluations included.
    pub ms_per_step: f64,
}

impl Results {
    /// Whether a folder is one.
    pub fn is_one(folder: &Path) -> bool {
        folder.join(FORMAT_FILE).is_file()
    }

    /// A folder to look at, which need not exist. One of another version is refused.
    pub fn at(folder: &Path) -> Result<Self, Failure> {
        let path = folder.join(FORMAT_FILE);
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let refuse = |what: String| {
                    Failure::Config(format!(
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
                // Someone may be making it just now; what is written first has a name that begins with a dot.
                let foreign = |name: std::ffi::OsString| !name.to_string_lossy().starts_with('.');
                let mut entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
                if entries.any(|entry| foreign(entry.file_name())) && !path.is_file() {
                    return Err(Failure::Config(format!(
                        "{} has files and is no results folder (there is no {FORMAT_FILE}); name a new one with \
                         --results DIR",
                        folder.display()
                    )));
                }
            }
            Err(e) => return Err(Failure::io(&path)(e)),
        }
        Ok(Results { folder: folder.to_path_buf() })
    }

    /// Makes what is missing of the folder.
    pub fn create(&self) -> Result<(), Failure> {
        std::fs::create_dir_all(&self.folder).map_err(Failure::io(&self.folder))?;
        // First, because it tells this folder from others.
        if !Self::is_one(&self.folder) {
            write_json(
                &self.folder.join(FORMAT_FILE),
                &Format { format: FORMAT, album: env!("CARGO_PKG_VERSION").into() },
            )?;
        }
        for part in ["runs", "logs", "failed", "reports"] {
            let path = self.folder.join(part);
            std::fs::create_dir_all(&path).map_err(Failure::io(&path))?;
        }
        Ok(())
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The directory of a run.
    pub fn run(&self, id: &str) -> PathBuf {
        self.folder.join("runs").join(id)
    }

    /// What a run printed.
    pub fn log(&self, id: &str) -> PathBuf {
        self.folder.join("logs").join(format!("{id}.log"))
    }

    /// Where a plan's report goes.
    pub fn report(&self, plan: &str) -> PathBuf {
        self.folder.join("reports").join(plan)
    }

    fn note(&self, id: &str) -> PathBuf {
        self.folder.join("failed").join(format!("{id}.json"))
    }

    /// Notes that a run failed.
    pub fn fail(&self, id: &str, note: &FailureNote) -> Result<(), Failure> {
        write_json(&self.note(id), note)
    }

    /// Forgets an earlier failure.
    pub fn forgive(&self, id: &str) -> Result<(), Failure> {
        let path = self.note(id);
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Failure::io(&path)(e)),
            _ => Ok(()),
        }
    }

    /// Notes that a command is done.
    pub fn done(&self, id: &str, seconds: f64) -> Result<(), Failure> {
        write_json(&self.run(id).join(DONE), &serde_json::json!({ "wall_seconds": seconds }))
    }

    /// How far a run is.
    pub fn state(&self, run: &Planned) -> State {
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
        let note = std::fs::read(self.note(&run.id)).ok().and_then(|text| serde_json::from_slice(&text).ok());
        match note {
            Some(note) => State::Failed(note),
            None if path.join("config.toml").is_file() => State::Interrupted,
            None => State::Waiting,
        }
    }

    /// The outcome of a training run, if it has one.
    pub fn result(&self, id: &str) -> Option<RunResult> {
        let text = std::fs::read(self.run(id).join("result.json")).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// What a run has written.
    pub fn records(&self, id: &str) -> Result<Option<Records>, Failure> {
        let path = self.run(id);
        if !path.join("config.toml").is_file() {
            return Ok(None);
        }
        Ok(Some(Records::read(&path)?))
    }

    /// The steps of a run by its log of times, which is written as it goes.
    pub fn progress(&self, id: &str) -> Progress {
        let text = std::fs::read_to_string(self.run(id).join("timing.csv")).unwrap_or_default();
        // A last line without its end is still being written.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut numbers = whole.lines().last().unwrap_or_default().rsplit(',');
        let mut next = || numbers.next().and_then(|field| field.parse::<f64>().ok());
        match (next(), next()) {
            (Some(step), Some(seconds)) if step > 0.0 => {
                Progress { step: step as u64, ms_per_step: 1e3 * seconds / step }
            }
            _ => Progress::default(),
        }
    }
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|e| Failure::Numerical(e.to_string()))?;
    text.push(b'\n');
    atomic::write(path, &text).map_err(Failure::io(path))
}
