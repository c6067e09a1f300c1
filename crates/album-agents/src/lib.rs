//! The algorithms of album, one file each, written to read like their papers.
//!
//! An [`Algorithm`] is hyperparameters, networks, a loss and a way to act. A [`Learner`] makes it an
//! [`Agent`], which learns from batches and acts on observations. Agents know nothing of files and
//! environments; the trainer knows no algorithm by name. [`AGENTS`] lists them all.
//!
//! ```
//! use album_agents::{Agent, AgentKind, Learner};
//! use album_data::{Dataset, Rows, Sampler, Segments};
//! use album_nn::Pool;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let data = Dataset::from_rows(Rows {
//! #     observation_dim: 1, action_dim: 1, observations: vec![0.0, 1.0, 2.0], actions: vec![0.5; 3],
//! #     rewards: vec![-1.0; 3], masks: vec![1.0; 3], terminals: vec![false, false, true],
//! # })?;
//! let kind = AgentKind::find("iql")?;
//! let mut settings = kind.defaults()?;
//! settings.insert("hidden".into(), vec![8, 8].into());
//! let mut agent = Learner::new(kind.setup(&settings)?.as_ref(), &data, 100, 0, &Pool::new(1))?;
//!
//! let segments = Segments::new(agent.segments())?; // what a row of a batch must know of the steps that follow
//! let sampler = Sampler::new(0, data.len());
//! let mut batch = segments.batch(&data, agent.batch_size());
//! for step in 0..3 {
//!     sampler.fill(step, batch.indices_mut());
//!     segments.gather(&data, &mut batch);
//!     assert!(agent.update(&batch, step, None).is_finite());
//! }
//! # Ok(())
//! # }
//! ```

mod acting;
mod agent;
pub mod agents;
mod algorithm;
mod blueprint;
mod common;
mod device;
mod encoding;
mod learner;
mod networks;
mod noise;
mod parts;
mod presets;
mod recorded;
mod registry;
mod schedule;

pub use acting::{Moment, Policy, Situation};
pub use agent::{Agent, AgentError, AgentState, Metrics, NetworkState};
pub use algorithm::{Algorithm, Decide, Inputs, Loss, Measures, Setup, Sizes, Stage};
pub use blueprint::{Blueprint, value_range};
pub use common::Common;
pub use encoding::Encoding;
pub use learner::Learner;
pub use networks::{NetworkId, Networks};
pub use noise::Noise;
pub use parts::critic::{Aggregate, CriticConfig};
pub use presets::{Preset, PresetFile, Section};
pub use recorded::{Mark, RecordedPolicy};
pub use registry::{AGENTS, AgentKind, check_sizes};
pub use schedule::Decay;
