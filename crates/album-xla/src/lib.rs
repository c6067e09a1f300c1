//! Runs album's training steps on any device with a PJRT plugin: GPUs, TPUs, CPUs.
//!
//! A deferring tape ([`album_nn::Tape::that_defers`]) records what an algorithm computes. A [`Group`] turns
//! the recording into one StableHLO program (losses, gradients, clipping, Adam, target networks, metrics),
//! for one seed or several, and runs it on a [`Device`], where the networks stay between steps. Algorithms
//! need not know about it.
//!
//! ```no_run
//! use album_xla::DeviceName;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let second: DeviceName = "xla:1".parse()?;
//! let device = second.open()?; // loads the plugin that `album setup xla` installed
//! println!("{}", device.name());
//! # Ok(())
//! # }
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `pjrt.rs`, `abi.rs` | safe bindings to the C API (the only unsafe code), and the structs of its header |
//! | `hlo.rs` | a writer of StableHLO text |
//! | `emit/` | StableHLO for a recording and its gradients |
//! | `step.rs`, `program.rs` | an update as data, and as one program |
//! | `session.rs` | the networks on a device, and a cache of compiled programs |
//! | `group.rs` | seeds that are updated together |
//! | `plugin.rs` | finds the plugin and opens its devices |

#![deny(unsafe_op_in_unsafe_fn)]

mod abi;
mod emit;
mod error;
mod group;
mod hlo;
mod pjrt;
mod plugin;
mod program;
mod session;
mod step;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

pub use error::XlaError;
pub use group::{Group, Seat, Table};
pub use pjrt::{Buffer, Device, Element, Executable, Memory};
pub use plugin::{DeviceName, PLUGIN, choose, plugin, try_out};
pub use session::{ProgramSize, UpdateMetrics};
pub use step::{Measure, Net, Role, Stage, Step};
