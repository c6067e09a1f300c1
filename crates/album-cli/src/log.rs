//! `album log`: the logs of a run for a tracker.

use crate::output;
use album::Error as Failure;
use album::track::wandb;
use std::path::PathBuf;

/// Which run, and where to.
#[derive(clap::Args)]
pub struct Args {
    /// The run directory
    run: PathBuf,
    /// Write an offline run of Weights & Biases into the run directory; `wandb sync` uploads it
    #[arg(long, required = true)]
    wandb: bool,
    /// Upload it at once (wandb must be logged in)
    #[arg(long)]
    online: bool,
    /// The project
    #[arg(long, default_value = "album", value_name = "NAME")]
    project: String,
    /// A Python that has the package wandb [default: ALBUM_PYTHON, else the one that `album setup` made]
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
