//! Runs: training, checkpoints, bit-exact resume, logs, evaluation, reports.

pub mod checkpoint;
mod error;
mod evaluate;
mod files;
mod guard;
mod identity;
mod logs;
mod records;
pub mod report;
mod result;
mod run_dir;
mod schedule;
mod signals;
mod state_file;
mod tensorboard;
mod trainer;
mod value_map;

pub use error::TrainError;
pub use evaluate::{Episode, Evaluation, EvaluationSummary, episode_seeds, evaluate, wilson};
pub use identity::Identity;
pub use records::{Columns, Records};
pub use result::RunResult;
pub use run_dir::RunDir;
pub use schedule::Schedule;
pub use signals::StopFlag;
pub use state_file::weights_sha256;
pub use trainer::{Evaluator, Event, Trainer};
pub use value_map::{ValueMap, ValuePoints};
