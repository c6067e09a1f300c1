//! `album data`: list, download, record, inspect and import datasets.

mod expert;
mod fetch;
mod generate;
mod import;
mod inspect;
mod list;
mod record;

use album::Error as Failure;
use clap::Subcommand;

/// The subcommands of `album data`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the datasets, their tasks and presets, and which are on this machine
    List(list::Args),
    /// Download the official files of a dataset
    Fetch(fetch::Args),
    /// Record a dataset by the official recipe
    Generate(generate::Args),
    /// Train the expert that ant datasets are recorded with
    Expert(expert::Args),
    /// Record a dataset in a gymnasium environment, with random actions, a trained policy or a Python
    /// function
    Record(record::Args),
    /// Inspect a data file: its contents, its rewards under a task, and its problems
    Inspect(inspect::Args),
    /// Store a data file as memory-mapped columns, for data larger than memory
    Import(import::Args),
}

/// Runs `album data`.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::List(args) => list::run(args),
        Command::Fetch(args) => fetch::run(args),
        Command::Generate(args) => generate::run(args),
        Command::Expert(args) => expert::run(args),
        Command::Record(args) => record::run(args),
        Command::Inspect(args) => inspect::run(args),
        Command::Import(args) => import::run(args),
    }
}
