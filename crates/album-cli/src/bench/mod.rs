//! `album bench`: how fast album is on this machine.

pub mod cost;
mod solve;
mod step;

use album::Error as Failure;
use album_agents::{Agent, Learner};
use album_data::{Dataset, Sampler, Segments};
use clap::Subcommand;
use std::time::Instant;

/// What to measure.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// The exact solvers on MudWorld against SciPy's linprog, and how they scale
    Solve(solve::Args),
    /// The paper's cost table for every agent: parameters, operations, time, value networks, memory
    Cost(cost::Args),
    /// One training step of ALBUM at the paper's sizes, and how it grows
    Step(step::Args),
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.what {
        What::Solve(args) => solve::run(args),
        What::Cost(args) => cost::run(args),
        What::Step(args) => step::run(args),
    }
}

/// Seconds of each of `steps` updates as training does them, after some to warm up, and of sampling within them.
fn time_steps(agent: &mut Learner, data: &Dataset, steps: usize) -> Result<Vec<(f64, f64)>, Failure> {
    const WARM_UP: usize = 6;
    let segments = Segments::new(agent.segments()).map_err(|e| Failure::Config(e.to_string()))?;
    let sampler = Sampler::new(0, data.len());
    let mut rows = segments.batch(data, agent.batch_size());
    let mut times = Vec::with_capacity(WARM_UP + steps);
    for step in 0..(WARM_UP + steps) as u64 {
        let start = Instant::now();
        sampler.fill(step, rows.indices_mut());
        segments.gather(data, &mut rows);
        let sampled = start.elapsed().as_secs_f64();
        agent.update(&rows, step, None);
        times.push((start.elapsed().as_secs_f64(), sampled));
    }
    Ok(times.split_off(WARM_UP))
}

fn median<T>(rounds: &[T], value: impl Fn(&T) -> f64) -> f64 {
    let mut values: Vec<f64> = rounds.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    let n = values.len();
    if n == 0 { f64::NAN } else { 0.5 * (values[(n - 1) / 2] + values[n / 2]) }
}

/// The largest resident memory of this process so far, where /proc tells.
fn peak_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix("kB")?.trim();
    Some(kib.parse::<f64>().ok()? / 1024.0)
}
