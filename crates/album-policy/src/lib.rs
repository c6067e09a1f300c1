#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod compute;
mod error;
mod file;
mod graph;
mod kernel;
mod manifest;
mod math;
mod policy;
mod random;

pub use error::PolicyError;
pub use file::{PolicyFile, Tensors, VERSION};
pub use graph::{Function, Graph, Operator, Reduction, Shape, Step};
pub use manifest::{Actions, Manifest, Noise};
pub use policy::Policy;
