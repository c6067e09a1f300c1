//! The integration tests of album, one module per topic, in one program: linking dominates the build time of
//! tests.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests

mod act;
mod doctor;
mod export;
mod fqe;
mod own;
mod report;
mod weights;
