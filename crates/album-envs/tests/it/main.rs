//! The integration tests of album-envs, by topic, in one program: linking is most of what building a test costs.

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
