//! `album fqe`: estimates the value of a run's policy from data alone.

use crate::output;
use crate::source_args::SourceArgs;
use album::fqe::{Request, evaluate_run};
use album::{Error as Failure, Resources};
use album_base::progress::{self, Amount};
use album_base::warn;
use album_train::StopFlag;
use std::path::PathBuf;

/// Arguments of `album fqe`.
#[derive(clap::Args)]
pub struct Args {
    /// The run directory
    run: PathBuf,
    /// Episodes to evaluate on, as files or folders [default: those held out by the run]
    #[arg(long, value_name = "SOURCE", num_args = 1..)]
    data: Vec<PathBuf>,
    #[command(flatten)]
    source: SourceArgs,
    /// Column with the behaviour policy's probability of each recorded action [default: estimated by
    /// behaviour cloning]
    #[arg(long, value_name = "COLUMN")]
    propensity: Option<String>,
    /// Evaluate the checkpoint of this step [default: the best one if kept, else the latest]
    #[arg(long)]
    step: Option<u64>,
    /// Number of networks in the ensemble [default: 5]
    #[arg(long, value_name = "N")]
    ensemble: Option<usize>,
    /// Gradient steps for the behaviour's values, and as many for the policy's [default: by the discount,
    /// 5,000 to 50,000]
    #[arg(long, value_name = "N")]
    updates: Option<u64>,
    /// Seed of the networks and of the bootstrap
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Worker threads; results do not depend on how many (0: all processors)
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs `album fqe`.
pub fn run(args: &Args) -> Result<(), Failure> {
    let data = args.source.optional(args.data.clone())?;
    let Args { propensity, step, ensemble, updates, seed, threads, .. } = args;
    let request = Request {
        data,
        step: *step,
        propensity: propensity.clone(),
        ensemble: *ensemble,
        updates: *updates,
        seed: *seed,
    };
    let bar = progress::bar(0, Amount::Share).with_prefix("evaluating");
    let mut observer = |done, of| {
        bar.set_length(of);
        bar.set_position(done);
    };
    let resources = Resources { threads: *threads, ..Resources::default() };
    let found = evaluate_run(&args.run, &request, &resources, &StopFlag::on_signals()?, &mut observer);
    bar.finish_and_clear();
    let found = found?;
    for warning in &found.warnings {
        warn!("{warning}");
    }
    output::show(args.json, &found, || found.to_string())
}
