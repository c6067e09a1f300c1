//! The integration tests of album-data, one module per topic, in one program: linking dominates the build
//! time of tests.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests

mod columns;
mod common;
mod damage;
mod formats;
mod hostile;
mod memory;
mod numpy;
mod ogbench_files;
mod relabel;
mod round_trip;
mod segments;
mod sources;
mod streamed;
mod table;
mod truncation;
