//! `album bench`: how fast album is on this machine.

pub mod cost;
mod solve;
mod step;

use album::Error as Failure;
use clap::Subcommand;

/// What to measure.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// One training step of ALBUM at the paper's sizes, and how it grows
    Step(step::Args),
    /// The paper's cost table for every agent: parameters, operations, time, value networks, memory
    Cost(cost::Args),
    /// The exact solvers on MudWorld against SciPy's linprog, and how they scale
    Solve(solve::Args),
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.what {
        What::Step(args) => step::run(args),
        What::Cost(args) => cost::run(args),
        What::Solve(args) => solve::run(args),
    }
}
