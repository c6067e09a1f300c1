//! The integration tests of album-stats, one module per topic, in one program: linking dominates the build
//! time of tests.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests

mod rliable;
mod statistics;
