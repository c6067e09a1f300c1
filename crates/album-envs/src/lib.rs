//! Environments to evaluate policies in, and recipes that record datasets in them.
//!
//! | folder | content |
//! |---|---|
//! | `native/` | environments in Rust, which need neither Python nor MuJoCo: [`PointMaze`], its [`Maze`] and [`Oracle`], its frames; [`MudWorldEnv`] |
//! | `python/` | worker processes that run Python environments: interpreter and set-up, supervision, protocol, one adapter per suite |
//! | `recording/` | datasets by recipe: [`navigate`] natively, [`play`] with OGBench's own oracles in workers, [`rollouts`] of any policy in any environment |
//!
//! An [`EnvPool`] runs episodes in parallel, and [`open_pool`] opens the one that a task needs: a [`NativePool`], or a
//! [`WorkerPool`] of processes. [`open_env`] opens any gymnasium environment that an [`EnvSpec`] names. A new suite is a file in `python/suites/` and a constructor of [`Suite`] beside it.
//!
//! ```
//! use album_envs::{Answer, open_pool};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let task = "pointmaze-giant-navigate-singletask-v0".parse()?;
//! let mut pool = open_pool(&task, 2, None)?;
//! let mut returns = vec![0.0; pool.slots()];
//! for slot in 0..pool.slots() {
//!     pool.reset(slot, slot as u64, false)?;
//! }
//! let mut running = pool.slots();
//! while running > 0 {
//!     for (slot, answer) in pool.wait()? {
//!         let observation = match answer {
//!             Answer::Started { observation, .. } => observation,
//!             Answer::Stepped(step) => {
//!                 returns[slot] += step.reward;
//!                 if step.terminated || step.truncated {
//!                     running -= 1;
//!                     continue;
//!                 }
//!                 step.observation
//!             }
//!             Answer::Lost { reason } => return Err(reason.into()),
//!         };
//!         // A policy that heads straight for the goal, and gets stuck at the first wall.
//!         pool.step(slot, &[52.0 - observation[0], 36.0 - observation[1]])?;
//!     }
//! }
//! assert_eq!(returns, [-1000.0, -1000.0]);
//! # Ok(())
//! # }
//! ```

mod env;
mod error;
mod native;
mod pool;
pub mod python;
mod recording;
mod spec;

pub use album_data::ActionSpace;
pub use env::{Env, EnvShape, FRAME_INTERVAL, Frame, Step};
pub use error::EnvError;
pub use native::{Maze, Motion, MudWorldEnv, NativePool, Oracle, PointMaze, SampleGrid, advance};
pub use pool::{Answer, EnvPool, is_native, open_env, open_pool};
pub use python::{Limits, Python, PythonError, Suite, WorkerError, WorkerPool};
pub use recording::{navigate, play, rollouts};
pub use spec::{EnvSource, EnvSpec};
