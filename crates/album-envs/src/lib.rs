//! Environments to evaluate policies in, and oracles that record data in them.
//!
//! [`Env`] is what evaluation needs of an environment, and [`make`] finds the one
//! that a task names. [`PointMaze`] is native: nothing but this crate is needed to
//! record its data ([`navigate`]), to train on it and to evaluate the result. [`Envs`]
//! are environments side by side, native ones or those of the Python package [`ogbench`]
//! in worker processes.
//!
//! ```
//! use album_data::ogbench::TaskName;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let task: TaskName = "pointmaze-giant-navigate-singletask-v0".parse()?;
//! let mut env = album_envs::make(&task)?;
//! let mut observation = env.reset(0)?;
//! let mut total = 0.0;
//! loop {
//!     // A policy that runs towards the goal, and against the first wall.
//!     let action = [52.0 - observation[0], 36.0 - observation[1]];
//!     let step = env.step(&action)?;
//!     total += step.reward;
//!     if step.terminated || step.truncated {
//!         assert!(!step.success);
//!         break;
//!     }
//!     observation = step.observation;
//! }
//! assert_eq!(total, -1000.0);
//! # Ok(())
//! # }
//! ```

mod env;
mod envs;
mod error;
mod maze;
pub mod navigate;
pub mod ogbench;
mod oracle;
pub mod play;
mod point;
mod pointmaze;
pub mod python;
mod stamp;

pub use env::{Env, Frame, Step, make};
pub use envs::{Answer, Envs, make_envs};
pub use error::EnvError;
pub use maze::{Maze, SampleGrid};
pub use oracle::Oracle;
pub use point::{Motion, advance};
pub use pointmaze::PointMaze;
pub use python::{Python, PythonError};
