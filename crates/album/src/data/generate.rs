//! `album data generate`.

use crate::failure::Failure;

/// The arguments of `album data generate`.
#[derive(clap::Args)]
pub struct Args {}

/// Runs `album data generate`.
pub fn run(_args: &Args) -> Result<(), Failure> {
    Err(Failure::Config("not there yet".into()))
}
