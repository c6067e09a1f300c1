//! `album bench solve`.

use crate::output;
use album::Error as Failure;
use album_base::progress::{self, Amount};
use album_experiments::bench::solve::measure;
use std::path::PathBuf;

/// Arguments of `album bench solve`.
#[derive(clap::Args)]
pub struct Args {
    /// Rounds of the comparison; medians are reported
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Side lengths of the MudWorlds in the scaling run, in cells
    #[arg(long, value_delimiter = ',', default_values_t = [100, 200, 400, 800])]
    sizes: Vec<usize>,
    /// A Python with SciPy, for the comparison; without it only album is measured
    #[arg(long, env = "ALBUM_PYTHON")]
    python: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let bar = progress::bar(1000, Amount::Share).with_prefix("solve");
    let times = measure(args.rounds, &args.sizes, args.python.as_deref(), |what, share| {
        bar.set_message(what);
        bar.set_position((1000.0 * share) as u64);
    });
    bar.finish_and_clear();
    let times = times?;
    output::show(args.json, &times, || times.text())
}
