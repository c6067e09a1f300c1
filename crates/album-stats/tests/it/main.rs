//! The integration tests of album-stats, by topic, in one program: linking is most of what building a test costs.

mod rliable;
mod statistics;
