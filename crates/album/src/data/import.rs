//! `album data import`.

use crate::failure::Failure;

/// The arguments of `album data import`.
#[derive(clap::Args)]
pub struct Args {}

/// Runs `album data import`.
pub fn run(_args: &Args) -> Result<(), Failure> {
    Err(Failure::Config("not there yet".into()))
}
