//! `album eval`: evaluates the policy of a run, and its critic.

use crate::output;
use crate::resources::ResourceArgs;
use album::Error as Failure;
use album::judge::{Look, judge};
use album_base::warn;
use album_train::StopFlag;
use std::path::PathBuf;

/// Arguments of `album eval`.
#[derive(clap::Args)]
pub struct Args {
    /// The run directory
    run: PathBuf,
    /// Number of evaluation episodes
    #[arg(long, default_value_t = 50)]
    episodes: usize,
    /// Evaluate the checkpoint of this step [default: the latest]
    #[arg(long)]
    step: Option<u64>,
    /// Seed of the episodes [default: the run's]
    #[arg(long)]
    seed: Option<u64>,
    /// Write videos of the first N episodes (GIF) into the run directory
    #[arg(long, value_name = "N", default_value_t = 0)]
    video: usize,
    /// Also compare the critic's values with the best values that the data supports
    #[arg(long)]
    critic: bool,
    #[command(flatten)]
    resources: ResourceArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs `album eval`.
pub fn run(args: &Args) -> Result<(), Failure> {
    let Args { episodes, step, seed, video: videos, critic, .. } = *args;
    if episodes == 0 && !critic {
        return Err(Failure::Usage("--episodes is 0; expected at least 1, or --critic".into()));
    }
    let look = Look { episodes, step, seed, videos, critic };
    let judged = judge(&args.run, &look, &args.resources.get(), &StopFlag::on_signals()?)?;
    for warning in &judged.warnings {
        warn!("{warning}");
    }
    output::show(args.json, &judged, || judged.to_string())
}
