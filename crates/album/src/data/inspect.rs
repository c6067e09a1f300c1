//! `album data inspect`.

use crate::failure::Failure;

/// The arguments of `album data inspect`.
#[derive(clap::Args)]
pub struct Args {}

/// Runs `album data inspect`.
pub fn run(_args: &Args) -> Result<(), Failure> {
    Err(Failure::Config("not there yet".into()))
}
