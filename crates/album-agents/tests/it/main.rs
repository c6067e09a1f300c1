//! The integration tests of album-agents, by topic, in one program: linking is most of what building a test costs.

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
mod stubs;
mod support;
