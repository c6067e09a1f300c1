//! `album data list`.

use crate::output;
use album::Error as Failure;
use album::catalogue::catalogue;

/// The arguments of `album data list`.
#[derive(clap::Args)]
pub struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs `album data list`.
pub fn run(args: &Args) -> Result<(), Failure> {
    let found = catalogue()?;
    output::show(args.json, &found, || found.to_string())
}
