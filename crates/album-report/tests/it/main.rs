//! The integration tests of album-report, by topic, in one program: linking is most of what building a test costs.

mod common;
mod golden;
mod robustness;
