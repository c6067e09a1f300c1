//! The integration tests of album-nn, by topic, in one program: linking is most of what building a test costs.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests

mod adam;
mod album_trace;
mod engine;
mod mlp_gradients;
mod op_gradients;
mod support;
