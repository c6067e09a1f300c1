//! Errors of runs.

use std::io;
use std::path::{Path, PathBuf};

use album_agents::AgentError;
use album_data::SegmentError;
use album_envs::EnvError;
use album_tabular::TabularError;

/// Why a run could not start, resume or be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// An input or output operation failed.
    #[error("{}: cannot {action}: {source}", .path.display())]
    Io {
        /// The attempted operation, such as `write`.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },

    /// The directory of a new run is not empty. Its contents are not touched.
    #[error(
        "{}: the directory is not empty (it holds `{found}`); continue the run in it with `album resume`, \
         or choose another directory",
        .path.display()
    )]
    NotEmpty {
        /// The directory.
        path: PathBuf,
        /// One of the files in it.
        found: String,
    },

    /// The directory is not a run.
    #[error("{}: not a run directory: found no `{expected}` in it", .path.display())]
    NotARun {
        /// The directory.
        path: PathBuf,
        /// The file that every run has.
        expected: &'static str,
    },

    /// Another process is working on the run.
    #[error(
        "{}: the run is in use by {holder}; wait for it to end, or stop it with SIGTERM, which saves its state",
        .path.display()
    )]
    Locked {
        /// The run directory.
        path: PathBuf,
        /// The process that holds the lock, if known.
        holder: String,
    },

    /// There is no checkpoint of this step.
    #[error("{}: found no checkpoint of step {step}, expected one of {}", .path.display(), steps(.found))]
    NoSuchStep {
        /// The directory of checkpoints.
        path: PathBuf,
        /// The requested step.
        step: u64,
        /// The available steps.
        found: Vec<u64>,
    },

    /// There is no checkpoint to load.
    #[error("{}: found no checkpoint; the run has not saved any yet", .path.display())]
    NoCheckpoint {
        /// The directory of checkpoints.
        path: PathBuf,
    },

    /// A file does not contain what was written to it.
    #[error("{}: damaged: {reason}", .path.display())]
    Damaged {
        /// The file or directory.
        path: PathBuf,
        /// The evidence of damage.
        reason: String,
    },

    /// A checkpoint in a format that this version does not read.
    #[error(
        "{}: checkpoint format {found} (written by album {writer}), expected format {expected}; train again, \
         or use the version of album that wrote it",
        .path.display()
    )]
    Version {
        /// The checkpoint.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The version of album that wrote it.
        writer: String,
        /// The format of this version.
        expected: u32,
    },

    /// A checkpoint of another run.
    #[error("{}: the checkpoint belongs to another run: {what} is {found} there, expected {expected}", .path.display())]
    Mismatch {
        /// The checkpoint.
        path: PathBuf,
        /// What differs, such as `task` or `config key agent.gamma`.
        what: String,
        /// Its value in the checkpoint.
        found: String,
        /// Its value here.
        expected: String,
    },

    /// A checkpoint whose tensors do not fit the agent.
    #[error("{}: {source}", .path.display())]
    Agent {
        /// The checkpoint.
        path: PathBuf,
        /// What does not fit.
        source: AgentError,
    },

    /// NaN or infinity during training.
    #[error("step {step}: {what} is {value}, expected a finite number; {}", kept(.checkpoint))]
    NotFinite {
        /// Updates done when it was detected.
        step: u64,
        /// Name of the number, such as `critic/critic_loss`.
        what: String,
        /// Its value.
        value: f64,
        /// The step of the last good checkpoint.
        checkpoint: Option<u64>,
    },

    /// A device failed.
    #[error("step {step}: {source}; {}", kept(.checkpoint))]
    Device {
        /// Updates done.
        step: u64,
        /// The device's error.
        source: AgentError,
        /// The step of the last checkpoint.
        checkpoint: Option<u64>,
    },

    /// An agent changed the names of its metrics during a run.
    #[error("{}: found metrics `{found}`, expected `{expected}` as in the file's first line", .path.display())]
    Columns {
        /// The log file.
        path: PathBuf,
        /// The columns of the new row.
        found: String,
        /// The columns of the file.
        expected: String,
    },

    /// An invalid schedule.
    #[error("{key} = {found}; expected {expected}")]
    Schedule {
        /// Name of the setting.
        key: &'static str,
        /// Its value.
        found: u64,
        /// What was expected.
        expected: &'static str,
    },

    /// Segments cannot be cut from the data.
    #[error(transparent)]
    Segments(#[from] SegmentError),

    /// V*_D of the data could not be computed.
    #[error("V*_D of the data: {0}")]
    InSampleValues(#[from] Box<TabularError>),

    /// The environment failed during an evaluation.
    #[error("evaluation: {0}")]
    Env(#[from] EnvError),

    /// Environments failed repeatedly.
    #[error("the environments failed {lost} times in one evaluation; the last error: {last}")]
    Environments {
        /// Number of failures.
        lost: usize,
        /// The last error.
        last: String,
    },

    /// A thread of album itself ended unexpectedly.
    #[error("the evaluation ended unexpectedly; this is a bug in album")]
    EvaluationPanicked,

    /// A thread could not be started.
    #[error("cannot start a thread for the evaluation: {0}; the last checkpoint was kept")]
    Thread(#[source] io::Error),

    /// The checkpoint is beyond the configured end of the run.
    #[error(
        "{}: the checkpoint is of step {step}, beyond the run's end at step {end}; raise `steps` in config.toml or with \
         `album resume --steps {step}`",
        .path.display()
    )]
    BeyondEnd {
        /// The checkpoint.
        path: PathBuf,
        /// Its step.
        step: u64,
        /// The last step of the run.
        end: u64,
    },

    /// Signal handlers could not be installed.
    #[error("cannot listen to signals: {0}")]
    Signals(#[source] io::Error),
}

fn kept(checkpoint: &Option<u64>) -> String {
    match checkpoint {
        Some(step) => format!("the checkpoint of step {step} is the last good one and was kept"),
        None => "no checkpoint had been saved before".into(),
    }
}

impl TrainError {
    /// Whether the failure is numerical, rather than one of files or configurations.
    pub fn is_numerical(&self) -> bool {
        match self {
            TrainError::NotFinite { .. } => true,
            TrainError::InSampleValues(error) => error.is_numerical(),
            _ => false,
        }
    }

    /// Whether the system or an environment failed, rather than the input being invalid.
    pub fn is_io(&self) -> bool {
        match self {
            TrainError::Env(e) => e.is_environment(),
            // Something other than a regular file is in its place: invalid input.
            TrainError::Io { source, .. } if album_base::files::is_wrong_kind(source) => false,
            TrainError::Io { .. }
            | TrainError::Locked { .. }
            | TrainError::Signals(_)
            | TrainError::Thread(_) => true,
            TrainError::Environments { .. } | TrainError::Device { .. } => true,
            _ => false,
        }
    }

    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| TrainError::Io { action, path, source }
    }

    pub(crate) fn damaged(path: &Path, reason: impl Into<String>) -> Self {
        TrainError::Damaged { path: path.to_path_buf(), reason: reason.into() }
    }
}

fn steps(found: &[u64]) -> String {
    match found {
        [] => "none".to_owned(),
        _ => found.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
    }
}
