//! The integration tests of album-cli, one module per topic, in one program: linking dominates the build time
//! of tests.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests

mod agents;
mod bad_input;
mod book;
mod common;
mod data_fetch;
mod data_generate;
mod data_import;
mod data_inspect;
mod data_record;
mod device;
mod device_failures;
mod export;
mod foreign;
mod fqe;
mod in_sample;
mod ogbench;
mod precision;
mod promises;
mod report;
mod reproduce;
mod setup;
mod shell;
mod sizes;
mod slurm;
mod solve;
mod solve_log;
mod streams;
mod track;
mod train;
mod verify;
