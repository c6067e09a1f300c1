//! The algorithms of album, one file each, every file reading like its paper.
//!
//! An [`Algorithm`] is hyperparameters, networks, a loss and a way to act. A [`Learner`] makes an [`Agent`] of it, which
//! learns from batches and acts on observations. Agents know no files and no environments; the trainer knows no algorithm
//! by name. [`AGENTS`] lists them all.

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
pub use blueprint::Blueprint;
pub use common::Common;
pub use encoding::Encoding;
pub use learner::Learner;
pub use networks::{NetworkId, Networks};
pub use noise::Noise;
pub use parts::critic::{Aggregate, CriticConfig};
pub use presets::{Preset, PresetFile, Section};
pub use recorded::{Mark, RecordedPolicy};
pub use registry::{AGENTS, AgentKind};
pub use schedule::Decay;
