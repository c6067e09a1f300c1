//! What can go wrong with a run.

use std::io;
use std::path::{Path, PathBuf};

use album_agents::AgentError;
use album_data::SegmentError;
use album_envs::EnvError;
use album_tabular::TabularError;

/// Why a run could not start, go on or be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// The system refused to read or write.
    #[error("{}: cannot {action}: {source}", .path.display())]
    Io {
        /// What was tried, such as `write`.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// A new run was to go where something is already. It is left alone.
    #[error(
        "{}: the directory is not empty (it holds `{found}`); continue the run in it with `album resume`, \
         or choose another directory",
        .path.display()
    )]
    NotEmpty {
        /// The directory.
        path: PathBuf,
        /// One of the things in it.
        found: String,
    },

    /// There is no run here.
    #[error("{}: not a run directory: found no `{expected}` in it", .path.display())]
    NotARun {
        /// The directory.
        path: PathBuf,
        /// The file that every run has.
        expected: &'static str,
    },

    /// Another process works on the run.
    #[error(
        "{}: the run is in use by {holder}; wait for it to end, or stop it with SIGTERM, which saves its state",
        .path.display()
    )]
    Locked {
        /// The run directory.
        path: PathBuf,
        /// Who has it, as far as that is known.
        holder: String,
    },

    /// There is no checkpoint of this step.
    #[error("{}: found no checkpoint of step {step}, expected one of {}", .path.display(), steps(.found))]
    NoSuchStep {
        /// The directory of checkpoints.
        path: PathBuf,
        /// The step that was asked for.
        step: u64,
        /// The steps that there are.
        found: Vec<u64>,
    },

    /// There is no checkpoint to load.
    #[error("{}: found no checkpoint; the run has not saved any yet", .path.display())]
    NoCheckpoint {
        /// The directory of checkpoints.
        path: PathBuf,
    },

    /// A file does not hold what was written to it.
    #[error("{}: damaged: {reason}", .path.display())]
    Damaged {
        /// The file or directory.
        path: PathBuf,
        /// How that shows.
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

    /// NaN or infinity in training.
    #[error("step {step}: {what} is {value}, expected a finite number; {}", kept(.checkpoint))]
    NotFinite {
        /// Updates done when it was seen.
        step: u64,
        /// Which number, such as `critic/critic_loss`.
        what: String,
        /// The number.
        value: f64,
        /// The step of the last good checkpoint.
        checkpoint: Option<u64>,
    },

    /// A device that failed.
    #[error("step {step}: {source}; {}", kept(.checkpoint))]
    Device {
        /// Updates done.
        step: u64,
        /// What the device says.
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

    /// A schedule that cannot be followed.
    #[error("{key} = {found}; expected {expected}")]
    Schedule {
        /// Which number.
        key: &'static str,
        /// What was given.
        found: u64,
        /// What would do.
        expected: &'static str,
    },

    /// Windows of the data that cannot be cut.
    #[error(transparent)]
    Segments(#[from] SegmentError),

    /// V*_D of the data could not be computed.
    #[error("V*_D of the data: {0}")]
    InSampleValues(#[from] Box<TabularError>),

    /// The environment failed during an evaluation.
    #[error("evaluation: {0}")]
    Env(#[from] EnvError),

    /// Environments were lost again and again.
    #[error("the environments were lost {lost} times in one evaluation; the last time: {last}")]
    Environments {
        /// How often.
        lost: usize,
        /// What was said the last time.
        last: String,
    },

    /// A thread of album's own came to an unexpected end.
    #[error("the evaluation came to an unexpected end; this is a fault of album")]
    EvaluationPanicked,

    /// No thread could be started.
    #[error("cannot start a thread for the evaluation: {0}; the last checkpoint was kept")]
    Thread(#[source] io::Error),

    /// A run that has come further than its configuration says.
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

    /// The process could not listen to signals.
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
    /// Whether numbers went wrong, rather than files or configurations.
    pub fn is_numerical(&self) -> bool {
        match self {
            TrainError::NotFinite { .. } => true,
            TrainError::InSampleValues(error) => error.is_numerical(),
            _ => false,
        }
    }

    /// Whether the system or an environment failed, rather than what was read being wrong.
    pub fn is_io(&self) -> bool {
        match self {
            TrainError::Env(e) => e.is_environment(),
            // Something else than a regular file stands in its place: a fault of what was read.
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
        [] => "none at all".to_owned(),
        _ => found.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
    }
}
