//! The integration tests of album-train, by topic, in one program: linking is most of what building a test costs.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests

mod common;
mod guards;
mod online;
mod processes;
mod resume;
