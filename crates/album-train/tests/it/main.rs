//! The integration tests of album-train, by topic, in one program: linking is most of what building a test costs.

mod common;
mod guards;
mod processes;
mod resume;
