//! The algorithms of album, one file each, every file reading like its paper.
//!
//! An [`Algorithm`] is hyperparameters, networks, a loss and a way to act. A [`Learner`] makes an [`Agent`] of it, which
//! learns from batches and acts on observations. Agents know no files and no environments; the trainer knows no algorithm
//! by name. [`AGENTS`] lists them all.

mod acting;
mod agent;
pub mod album;
mod algorithm;
pub mod bc;
pub mod cac;
mod categorical;
pub mod cgq;
mod common;
mod critic;
pub mod deas;
mod diffusion;
mod distilled_flow;
pub mod dqc;
mod encoding;
pub mod fawac;
pub mod fbrac;
mod flow;
pub mod fql;
mod gaussian;
pub mod hinge_iql;
pub mod idql;
pub mod ifql;
pub mod ifql_album;
pub mod iql;
mod learner;
mod networks;
pub mod nfql;
mod noise;
pub mod qc_fql;
pub mod rebrac;
mod registry;
mod schedule;
pub mod srpo;

pub use acting::{Moment, Policy, Situation};
pub use agent::{Agent, AgentError, AgentState, Metrics, NetworkState};
pub use algorithm::{Algorithm, Decide, Inputs, Loss, Measures, Setup, Sizes};
pub use common::Common;
pub use critic::{Aggregate, CriticConfig};
pub use encoding::Encoding;
pub use learner::Learner;
pub use networks::{Id, Networks};
pub use noise::Noise;
pub use registry::{AGENTS, Kind, SMALL, find};
pub use schedule::Decay;
