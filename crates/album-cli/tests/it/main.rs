//! The integration tests of album-cli, by topic, in one program: linking is most of what building a test costs.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests

mod agents;
mod bad_input;
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
mod report;
mod reproduce;
mod setup;
mod sizes;
mod slurm;
mod solve;
mod solve_log;
mod streams;
mod track;
mod train;
mod verify;
