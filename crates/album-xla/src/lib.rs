//! Training steps of album on any device that has a PJRT plugin: GPUs, TPUs, CPUs.
//!
//! A tape that defers ([`album_nn::Tape::that_defers`]) records what an algorithm asks for; a [`Group`] makes one StableHLO
//! program of it, losses, gradients, clipping, Adam, targets and measures, for one seed or for several, and runs it on a
//! [`Device`], where the networks stay from step to step. Algorithms are not told.
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
//! | file | what it is |
//! |---|---|
//! | `pjrt.rs`, `abi.rs` | the C interface: the only unsafe code, and the structs of its header |
//! | `hlo.rs` | StableHLO as text |
//! | `emit/` | a recording and its gradients |
//! | `step.rs`, `program.rs` | an update as data, and as one program |
//! | `session.rs` | networks on a device, programs by what they do |
//! | `group.rs` | seeds that are updated together |
//! | `plugin.rs` | which plugin, which device |

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
pub use session::{ProgramSize, Report};
pub use step::{Measure, Net, Role, Stage, Step};
