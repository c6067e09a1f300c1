//! Environments to evaluate policies in, and oracles that record data in them.
//!
//! An [`EnvPool`] runs episodes side by side, and [`open_pool`] makes the one that a task
//! needs: a [`NativePool`] of environments in Rust, or a [`WorkerPool`] of processes that run
//! a Python package such as `ogbench` ([`python`]). [`PointMaze`] is native: nothing but this crate is needed
//! to record its data ([`navigate`]), to train on it and to evaluate the result.
//!
//! ```
//! use album_data::ogbench::TaskName;
//! use album_envs::{Env, PointMaze};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let task: TaskName = "pointmaze-giant-navigate-singletask-v0".parse()?;
//! let mut env = PointMaze::new(&task)?;
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
mod error;
mod native;
mod pool;
pub mod python;
mod recording;

pub use env::{Env, EnvSpec, FRAME_INTERVAL, Frame, Step};
pub use error::EnvError;
pub use native::{Maze, Motion, NativePool, Oracle, PointMaze, SampleGrid, advance};
pub use pool::{Answer, EnvPool, is_native, open_pool};
pub use python::{Limits, Python, PythonError, Suite, WorkerError, WorkerPool};
pub use recording::{navigate, play};
