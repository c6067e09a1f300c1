//! `album bench`: how fast album is on this machine.

mod solve;
mod step;

use crate::failure::Failure;
use clap::Subcommand;

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
    /// One training step of ALBUM at the paper's sizes, and how it grows
    Step(step::Args),
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.what {
        What::Solve(args) => solve::run(args),
        What::Step(args) => step::run(args),
    }
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
