//! `album log`: exports the logs of a run to an experiment tracker.

use crate::output;
use album::Error as Failure;
use album::track::wandb;
use std::path::PathBuf;

/// Arguments of `album log`.
#[derive(clap::Args)]
pub struct Args {
    /// The run directory
    run: PathBuf,
    /// Write an offline Weights & Biases run into the run directory; `wandb sync` uploads it
    #[arg(long, required = true)]
    wandb: bool,
    /// Upload it immediately (wandb must be logged in)
    #[arg(long)]
    online: bool,
    /// Name of the project
    #[arg(long, default_value = "album", value_name = "NAME")]
    project: String,
    /// A Python with wandb installed [default: ALBUM_PYTHON, else the one made by `album setup`]
    #[arg(long, value_name = "FILE")]
    python: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs `album log`.
pub fn run(args: &Args) -> Result<(), Failure> {
    let logged = wandb::log(&args.run, &args.project, args.online, args.python.as_deref())?;
    output::show(args.json, &logged, || logged.to_string())
}
