//! The integration tests of album-experiments, by topic, in one program: linking is most of what building a test costs.

mod browser;
mod common;
mod files;
mod measures;
mod plans;
mod published;
mod report;
