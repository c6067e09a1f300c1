//! `album bench cost`.

use crate::output;
use album::Error as Failure;
use album_base::progress::{self, Amount};
use album_experiments::CostOptions;
use album_experiments::bench::cost::{CostBench, measure};
use album_xla::DeviceName;
use std::path::{Path, PathBuf};

/// Arguments of `album bench cost`.
#[derive(clap::Args)]
pub struct Args {
    /// Agents, separated by commas; `rebrac*` updates its actor at every step [default: all]
    #[arg(long, value_delimiter = ',')]
    agents: Vec<String>,
    /// Thread counts to time the steps with, separated by commas (0: all processors)
    #[arg(long, value_delimiter = ',', default_values_t = [1, 0])]
    threads: Vec<usize>,
    /// Number of seeds; the agents take turns within each, and medians are reported
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Steps to time per seed
    #[arg(long, default_value_t = 20)]
    steps: usize,
    /// Time steps on a device of the plugin that `album setup xla` fetched, with its memory
    #[arg(long, value_name = "xla[:N]", conflicts_with = "threads")]
    device: Option<DeviceName>,
    /// Folder for the figures and the table
    #[arg(long, value_name = "DIR", default_value = "album-cost")]
    out: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Measure one agent in this process; used by the command itself
    #[arg(long, hide = true)]
    measure: Option<String>,
    /// The seed of that measurement
    #[arg(long, hide = true, default_value_t = 0)]
    seed: u64,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    if args.rounds == 0 || args.steps == 0 || args.threads.is_empty() {
        return Err(Failure::Usage(
            "--rounds, --steps and the numbers of --threads must be at least 1".into(),
        ));
    }
    if let Some(agent) = &args.measure {
        let threads = args.threads.last().copied().unwrap_or(0);
        return output::print_json(&measure(agent, threads, args.seed, args.steps, args.device)?);
    }
    let Args { rounds, steps, device, .. } = *args;
    let (agents, threads) = (args.agents.clone(), args.threads.clone());
    bench(&CostBench { agents, threads, rounds, steps, device }, &args.out, args.json)
}

/// Measures the agents that an experiment lists.
pub fn experiment(options: &CostOptions, out: &Path) -> Result<(), Failure> {
    bench(&CostBench { rounds: options.rounds, ..CostBench::default() }, out, false)
}

fn bench(bench: &CostBench, out: &Path, json: bool) -> Result<(), Failure> {
    let album = std::env::current_exe().map_err(Failure::io(Path::new("album")))?;
    let bar = progress::bar(0, Amount::Share);
    let costs = bench.run(&album, &mut |what, done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
        bar.set_message(what.to_owned());
    })?;
    bar.finish_and_clear();
    costs.write(out)?;
    output::show(json, &costs, || format!("{}; figures in {}", costs.text(), out.display()))
}
