//! The integration tests of album-envs, one module per topic, in one program: linking dominates the build
//! time of tests.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests

mod common;
mod fake;
mod gymnasium;
mod ogbench_broken_workers;
mod ogbench_episodes;
mod ogbench_pointmaze;
mod play;
mod python_setup;
mod rollouts;
