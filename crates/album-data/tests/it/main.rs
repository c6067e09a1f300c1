//! The integration tests of album-data, by topic, in one program: linking is most of what building a test costs.

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
