//! The integration tests of album, by topic, in one program: linking is most of what building a test costs.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests

mod act;
mod doctor;
mod export;
mod fqe;
mod own;
mod report;
mod weights;
