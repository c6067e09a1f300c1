//! The integration tests of album-agents, one module per topic, in one program: linking dominates the build
//! time of tests.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests

mod agents;
mod chunks;
mod cost;
mod device;
mod diffusion;
mod discrete;
mod jax_trace;
mod order;
mod pages;
mod presets;
mod references;
mod settling;
mod stubs;
mod support;
