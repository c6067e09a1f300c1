//! `album data fetch`.

use crate::failure::Failure;

/// The arguments of `album data fetch`.
#[derive(clap::Args)]
pub struct Args {}

/// Runs `album data fetch`.
pub fn run(_args: &Args) -> Result<(), Failure> {
    Err(Failure::Config("not there yet".into()))
}
