//! Offline reinforcement learning from the Lifted Bellman Linear Program.

pub mod config;
pub mod doctor;
mod error;
mod problem;
mod resources;
pub mod run;
pub mod sizes;

pub use config::{Overrides, Preset, Resolved, RunConfig, TrainConfig};
pub use error::Error;
pub use problem::{Location, Problem};
pub use resources::{Resources, processors};
pub use run::{Finished, Run, Trained};
