//! Training runs: checkpoints, bit-exact resumption, logs, evaluation.
//!
//! A [`Trainer`] takes an agent, a dataset and a [`RunDir`] and does the rest. The checkpoints in the
//! directory decide whether a run starts or resumes; `train` and `resume` are the same call.
//!
//! # Guarantees
//!
//! * A run that is stopped or killed at any point and resumed ends with the same weights, moments, `train.csv`,
//!   `eval.csv`, `episodes.jsonl` and `value_maps.jsonl`, bit for bit, as an uninterrupted one. Timings are kept
//!   apart, in `timing.csv`, the TensorBoard file and `result.json`.
//! * A checkpoint is complete or absent, and every byte is verified when it is read. After `kill -9`, a full disk
//!   or a power cut, the latest complete one is used.
//! * NaN and infinity stop a run before they reach a checkpoint.
//! * One process at a time works on a run; a signal makes it save and stop ([`StopFlag`]).
//! * Evaluations depend only on the run's seed and the step, not on how many episodes run in parallel.
//!
//! The trainer knows no algorithm by name. Randomness within an agent's update must be a function of its seed
//! and the step, as the batches are.
//!
//! ```
//! use album_agents::{Common, Learner, agents::album::Config};
//! use album_data::{Dataset, Rows};
//! use album_nn::Pool;
//! use album_train::{Identity, RunDir, Schedule, StopFlag, Trainer};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! // A walk along a line.
//! let n = 50;
//! let dataset = Dataset::from_rows(Rows {
//!     observation_dim: 1,
//!     action_dim: 1,
//!     observations: (0..n).map(|i| i as f32 / n as f32).collect(),
//!     actions: vec![0.5; n],
//!     rewards: vec![-1.0; n],
//!     masks: vec![1.0; n],
//!     terminals: (0..n).map(|i| i + 1 == n).collect(),
//! })?;
//! let common = Common { hidden: vec![8], batch_size: 4, ..Common::default() };
//! let config = Config { common, ..Config::default() };
//! let text = "hidden = [8]\nbatch_size = 4\n";
//! let (seed, steps) = (1, 20);
//!
//! let run = RunDir::create(dir.path().join("run"), text)?;
//! let mut agent = Learner::new(&config, &dataset, steps, seed, &Pool::new(1))?;
//! let result = Trainer {
//!     agent: &mut agent,
//!     dataset: &dataset,
//!     groups: None,
//!     held_out: None,
//!     run: &run,
//!     identity: &Identity::new("a walk", "album", seed, &dataset, text),
//!     schedule: Schedule { log_every: 5, ..Schedule::new(steps) },
//!     evaluator: None,
//!     value_points: None,
//!     watch: false,
//!     probe: None,
//!     stop: StopFlag::new(),
//!     observer: &mut |_event| {},
//! }
//! .train()?;
//! assert!(result.finished && result.steps == 20);
//! assert!(run.file("train.csv").exists() && run.checkpoints().join("step_000000020").exists());
//! # Ok(())
//! # }
//! ```

mod assess;
mod best;
pub mod checkpoint;
mod critic;
mod error;
mod evaluate;
mod files;
mod guard;
mod identity;
mod logs;
mod numbers;
mod online;
mod records;
mod result;
mod run_dir;
mod schedule;
mod signals;
mod state_file;
mod tensorboard;
mod trainer;
mod value_map;
mod watch;

pub use best::Best;
pub use critic::{CriticStatistics, DataStatistics, SAMPLE, critic_statistics};
pub use error::TrainError;
pub use evaluate::{
    Episode, Evaluation, EvaluationPlan, EvaluationSummary, Outcome, episode_seeds, evaluate, wilson,
};
pub use identity::Identity;
pub use online::{Online, OnlineEvent, OnlinePlan, OnlineProgress, Recent};
pub use records::{Columns, Records};
pub use result::RunResult;
pub use run_dir::RunDir;
pub use schedule::Schedule;
pub use signals::StopFlag;
pub use state_file::weights_sha256;
pub use trainer::{Evaluator, Event, Probe, Trainer};
pub use value_map::{ValueMap, ValuePoints};
