//! Offline reinforcement learning from the Lifted Bellman Linear Program: learn a policy from logged
//! decisions, evaluate it, use it.
//!
//! Arrays in, a policy out, without any file or environment:
//!
//! ```
//! use album::{Dataset, Fit, Rows};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A thousand episodes of ten steps on a line. The log pushes left and right at random; being near 0 is good.
//! let (episodes, length) = (1000, 10);
//! let mut rows = Rows { observation_dim: 1, action_dim: 1, ..Rows::default() };
//! for episode in 0..episodes {
//!     let mut x = (episode % 21) as f32 / 10.0 - 1.0;
//!     for step in 0..length {
//!         let push = if (episode * 7 + step * 13) % 11 < 5 { -0.8 } else { 0.8 };
//!         rows.observations.push(x);
//!         rows.actions.push(push);
//!         rows.rewards.push(-x.abs());
//!         rows.masks.push(1.0); // no step ends the task
//!         rows.terminals.push(step + 1 == length); // the recording ends
//!         x = (x + 0.2 * push).clamp(-1.0, 1.0);
//!     }
//! }
//! let data = Dataset::from_rows(rows)?;
//!
//! let mut agent = Fit::new("album")?
//!     .set("hidden", vec![32, 32])?
//!     .set("gamma", 0.9)?
//!     .set("k", 5)?
//!     .steps(300)
//!     .seed(0)
//!     .run(&data)?;
//! let action = agent.act(&[0.7]);
//! assert!(action.len() == 1 && action[0].abs() <= 1.0);
//! # Ok(())
//! # }
//! ```
//!
//! With a directory, checkpoints, logs, evaluation and a report: a [`RunConfig`] names a [`Problem`] and an agent, a
//! [`Run`] trains it, and [`Trained`] is what a checkpoint holds. The command line is a thin layer over these types;
//! `examples/train.rs` writes the loop out by hand.
//!
//! | module | contents |
//! |---|---|
//! | [`config`] | defaults < preset < file < options < `key=value` |
//! | [`run`] | a run from its first step to its report, and its policy |
//! | [`report`] | the page of a run |
//! | [`judge`](mod@judge) | evaluation of a trained policy and its critic |
//! | [`fqe`] | the value of a policy, estimated from data alone |
//! | [`doctor`], [`import`], [`catalogue`](mod@catalogue), [`fetch`](mod@fetch), [`record`], [`expert`], [`rollouts`] | data: inspect it, store it, list it, download it, record it |
//! | [`export`](mod@export), [`act`](mod@act) | a policy in one file, and running it |
//! | [`track`] | logging to MLflow or Weights & Biases |
//! | [`agents`] | the algorithms with their sizes and defaults |
//! | [`setup`] | the Python installation for OGBench's environments |
//! | [`verify`](mod@verify) | numerical checks of every statement of the theory |
//! | [`sizes`] | synthetic data with the sizes of antmaze-large, for benchmarks |

pub mod act;
pub mod agents;
pub mod catalogue;
pub mod config;
mod differences;
pub mod doctor;
mod error;
mod exact;
pub mod expert;
pub mod export;
pub mod fetch;
mod fit;
pub mod fqe;
mod http;
pub mod import;
pub mod judge;
mod mudworld;
mod names;
mod own;
mod problem;
pub mod record;
mod record_file;
pub mod report;
mod resources;
pub mod rollouts;
pub mod run;
pub mod setup;
pub mod setup_xla;
pub mod sizes;
pub mod solve;
mod support;
pub mod together;
pub mod track;
pub mod verify;
mod video;

pub use album_data::{Dataset, Rows};
pub use config::{Overrides, Precision, Preset, Resolved, RunConfig, Sampling, TrainConfig};
pub use differences::Differences;
pub use error::Error;
pub use exact::Compared;
pub use fit::{Fit, Fitted};
pub use mudworld::MudWorldProblem;
pub use own::Own;
pub use problem::{Loaded, Location, Problem};
pub use resources::{Resources, processors};
pub use run::{Finished, Run, Trained};

/// Compiles and runs the examples of the page for contributors.
#[cfg(doctest)]
#[doc = include_str!("../docs/extending.md")]
struct Extending;
