//! `album data list`.

use crate::failure::Failure;

/// The arguments of `album data list`.
#[derive(clap::Args)]
pub struct Args {}

/// Runs `album data list`.
pub fn run(_args: &Args) -> Result<(), Failure> {
    Err(Failure::Config("not there yet".into()))
}
