//! `album act`: observations on standard input, actions on standard output.

use album::Error as Failure;
use album::act::{act, load};
use std::path::PathBuf;

/// Arguments of `album act`.
#[derive(clap::Args)]
pub struct Args {
    /// A policy file written by `album export --format safetensors`
    file: PathBuf,
    /// Seed of the noise of a stochastic policy
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// Runs `album act`.
pub fn run(args: &Args) -> Result<(), Failure> {
    let mut policy = load(&args.file)?;
    policy.seed(args.seed);
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    act(&mut policy, &mut input, &mut output)?.finish()
}
