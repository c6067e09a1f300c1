//! The integration tests of album-nn, one module per topic, in one program: linking dominates the build time
//! of tests.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests

mod adam;
mod album_trace;
mod engine;
mod mlp_gradients;
mod op_gradients;
mod support;
