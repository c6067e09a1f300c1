//! The integration tests of album-policy, by topic.

#![allow(clippy::unwrap_used)] // helpers of tests

mod acting;
mod hostile;
mod numbers;
mod support;
