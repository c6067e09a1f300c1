//! The `album` command line. Every command takes `--json`: exactly one JSON object on standard output, everything else
//! on standard error. Exit codes: 0 done, 2 usage, 3 bad data or configuration, 4 numerical failure, 5 input/output.

mod bench;
mod failure;
mod output;
mod solve;
mod verify;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Offline reinforcement learning from the Lifted Bellman Linear Program.
#[derive(Parser)]
#[command(name = "album", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Solve the Lifted Bellman LP of a dataset exactly: the best values that it supports
    Solve(solve::Args),
    /// Check every statement of the theory with numbers and draw the figures
    Verify(verify::Args),
    /// Measure speed on this machine
    Bench(bench::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Solve(args) => solve::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Bench(args) => bench::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}
