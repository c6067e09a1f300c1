//! `album bench`: how fast album is on this machine.

pub mod cost;
mod solve;
mod step;

use album::Error as Failure;
use clap::Subcommand;

/// Arguments of `album bench`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Time a training step of ALBUM at the paper's sizes, and show how it scales
    Step(step::Args),
    /// Measure the paper's cost table for every agent: parameters, operations, time, value networks, memory
    Cost(cost::Args),
    /// Time the exact solvers on MudWorld against SciPy's linprog, and show how they scale
    Solve(solve::Args),
}

pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.what {
        What::Step(args) => step::run(args),
        What::Cost(args) => cost::run(args),
        What::Solve(args) => solve::run(args),
    }
}
