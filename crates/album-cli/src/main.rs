//! The `album` command line. Every command takes `--json`: exactly one JSON object on standard output, everything else
//! on standard error. Exit codes: 0 done, 2 usage, 3 bad data or configuration, 4 numerical failure, 5 input/output,
//! 75 stopped by a signal with the state saved.

mod act;
mod agents;
mod bench;
mod choices;
mod data;
mod eval;
mod export;
mod fqe;
mod help;
mod live_line;
mod log;
mod output;
#[cfg(test)]
#[path = "../tests/unit/reference.rs"]
mod reference;
mod report;
mod reproduce;
mod resources;
mod setup;
mod shell;
mod solve;
mod source_args;
mod train;
mod verify;

use album::Error as Failure;
use album_base::console::{self, Level};
use album_base::{error, limits};
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::process::ExitCode;

/// Offline reinforcement learning: the best policy that recorded data supports
#[derive(Parser)]
#[command(name = "album", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Print only the result, warnings and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Print details: every row of the log, every checkpoint, where data is read from
    #[arg(short, long, global = true)]
    verbose: bool,
}

// `help` orders and groups the commands.
#[derive(Subcommand)]
enum Command {
    /// Train an agent; without a task, ALBUM on PointMaze
    Train(Box<train::TrainArgs>),
    /// Resume a stopped run, bit for bit
    Resume(train::ResumeArgs),
    /// Evaluate the policy of a run
    Eval(eval::Args),
    /// Estimate the value of a run's policy from data alone: fitted Q evaluation
    Fqe(fqe::Args),
    /// Write the policy of a run to one file: ONNX, or safetensors for `album act`
    Export(export::Args),
    /// Run a policy file: observations on standard input, actions on output
    Act(act::Args),
    /// List the algorithms with their sizes and defaults
    Agents(agents::Args),
    /// List, download, record, inspect and import datasets
    Data(data::Args),
    /// Solve a finite log exactly: the best values and actions that it supports
    Solve(solve::Args),
    /// Check every statement of the theory with numbers and figures
    Verify(verify::Args),
    /// Reproduce a table or figure of the paper, at full scale or in minutes
    Reproduce(reproduce::Args),
    /// Install what cargo does not: OGBench, gymnasium, an XLA plugin
    Setup(setup::Args),
    /// Export the logs of a run to an experiment tracker: Weights & Biases
    Log(log::Args),
    /// Compare runs with each other and published numbers: page, tables, figures
    Report(report::Args),
    /// Measure the speed of album on this machine
    Bench(bench::Args),
    /// Print the completions of a shell: bash, zsh, fish, elvish, powershell
    Completions(shell::CompletionArgs),
    /// Print the manual page, or write one for every command
    Man(shell::ManArgs),
}

/// Runs a command.
fn dispatch(command: Command) -> Result<(), Failure> {
    match command {
        Command::Train(args) => train::train(&args),
        Command::Resume(args) => train::resume(&args),
        Command::Eval(args) => eval::run(&args),
        Command::Fqe(args) => fqe::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Act(args) => act::run(&args),
        Command::Agents(args) => agents::run(&args),
        Command::Data(args) => data::run(&args),
        Command::Solve(args) => solve::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Setup(args) => setup::run(&args),
        Command::Log(args) => log::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Reproduce(args) => reproduce::run(&args),
        Command::Completions(args) => shell::completions(&args, help::arrange(Cli::command())),
        Command::Man(args) => shell::man(&args, help::arrange(Cli::command())),
    }
}

fn main() -> ExitCode {
    let matches = help::arrange(Cli::command()).get_matches();
    match check_sizes(&matches)
        .and_then(|()| Cli::from_arg_matches(&matches).map_err(|e| Failure::Usage(e.to_string())))
        .and_then(|cli| {
            console::set_level(match (cli.quiet, cli.verbose) {
                (true, _) => Level::Quiet,
                (_, true) => Level::Verbose,
                _ => Level::Normal,
            });
            dispatch(cli.command)
        }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            error!("{failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Refuses values of numeric options above the limit of their name.
fn check_sizes(matches: &ArgMatches) -> Result<(), Failure> {
    for name in matches.ids().map(|id| id.as_str()).filter(|name| limits::most(name).is_some()) {
        for text in matches.try_get_raw(name).ok().flatten().into_iter().flatten() {
            // Anything that is not a number is refused by the option's own type.
            if let Some(number) = text.to_str().and_then(|text| text.parse::<u64>().ok()) {
                limits::check(name, number).map_err(|error| Failure::Usage(format!("--{error}")))?;
            }
        }
    }
    matches.subcommand().map_or(Ok(()), |(_, inner)| check_sizes(inner))
}

#[cfg(test)]
#[path = "../tests/unit/options.rs"]
mod tests;
