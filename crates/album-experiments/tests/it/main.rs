//! The integration tests of album-experiments, by topic, in one program: linking is most of what building a test costs.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests

mod browser;
mod common;
mod files;
mod measures;
mod plans;
mod published;
mod report;
