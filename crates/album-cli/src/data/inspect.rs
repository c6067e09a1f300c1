//! `album data inspect`.

use crate::output;
use crate::source_args::SourceArgs;
use album::Error as Failure;
use album::doctor::FileInspection;
use std::path::PathBuf;

/// The arguments of `album data inspect`.
#[derive(clap::Args)]
pub struct Args {
    /// Files or folders that form one dataset: npz, npy, HDF5 (D4RL, robomimic, Minari), Parquet, CSV, a
    /// Minari or LeRobot dataset, or a folder made by `album data import`; or the name of an OGBench dataset
    #[arg(required = true, value_name = "SOURCE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    source: SourceArgs,
    /// The task that defines the rewards: a name, or a number from 1 to 5 if the file has its official name
    /// [default: the file's own rewards, else the default task of the dataset that the file is named after]
    #[arg(long)]
    task: Option<String>,
    /// Discount factor of the values
    #[arg(long, default_value_t = 0.995)]
    gamma: f64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs `album data inspect`.
pub fn run(args: &Args) -> Result<(), Failure> {
    let source = args.source.source(args.files.clone());
    let found = FileInspection::new(&source, args.task.as_deref(), args.gamma)?;
    if args.json { output::print_json(&found) } else { output::print(&found.to_string()) }
}
