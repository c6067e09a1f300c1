//! The algorithms of album, one file each, every file reading like its paper.
//!
//! An [`Agent`] learns from batches and acts on observations. It knows no files and no environments; the trainer knows no
//! algorithm by name.

mod agent;
pub mod album;
mod encoding;
mod schedule;

pub use agent::{Agent, AgentError, AgentState, Metrics, NetworkState, Policy};
pub use encoding::Encoding;
pub use schedule::Decay;
