//! The integration tests of album-experiments, one module per topic, in one program: linking dominates the
//! build time of tests.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests

mod browser;
mod common;
mod files;
mod measures;
mod plans;
mod published;
mod report;
