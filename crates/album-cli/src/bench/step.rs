//! `album bench step`: one ALBUM update as training does it, sampling included.

use super::{median, peak_mib, time_steps};
use crate::output;
use album::Error as Failure;
use album::sizes::antmaze_large;
use album_agents::agents::album::Config;
use album_agents::{Agent, Common, Learner};
use album_base::number::compact;
use album_data::{Dataset, Segments};
use album_nn::{Pool, product_rate};
use album_report::table::Table;
use serde::Serialize;

/// One training step.
#[derive(clap::Args)]
pub struct Args {
    /// Threads (0: all processors)
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Rows in a batch
    #[arg(long, default_value_t = 256)]
    batch: usize,
    /// Width of the four hidden layers
    #[arg(long, default_value_t = 512)]
    width: usize,
    /// Steps that are timed; the median is reported
    #[arg(long, default_value_t = 60)]
    rounds: usize,
    /// Also how the time grows with batch, width and threads
    #[arg(long)]
    sweep: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct StepTimes {
    #[serde(flatten)]
    step: Timing,
    /// Measured GEMM rate of one thread in GFLOP/s.
    gemm_gflops_per_thread: f64,
    parameters: usize,
    peak_rss_mib: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sweep: Vec<Timing>,
}

#[derive(Serialize)]
struct Timing {
    threads: usize,
    batch: usize,
    width: usize,
    ms_per_step: f64,
    /// Counted from the shapes, no row left out.
    gflop_per_step: f64,
    /// The share of this machine's measured GEMM rate that a step reaches.
    gemm_share: f64,
    /// The share of the step that sampling and gathering the batch take.
    sampling_share: f64,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    if args.batch == 0 || args.width == 0 || args.rounds == 0 {
        return Err(Failure::Usage("--batch, --width and --rounds must be at least 1".into()));
    }
    let data = antmaze_large(20)?;
    let rate = product_rate(&Pool::new(1));
    let (step, parameters) = time(args.threads, args.batch, args.width, args.rounds, &data, rate)?;
    let peak_rss_mib = peak_mib();
    let mut sweep = Vec::new();
    if args.sweep {
        let threads = Pool::new(0).threads();
        let batches = [64, 128, 256, 512, 1024, 2048, 4096].map(|batch| (threads, batch, 512));
        let widths = [128, 256, 512, 1024, 2048].map(|width| (threads, 256, width));
        let thread_counts = (1..=threads).map(|threads| (threads, 256, 512));
        for (threads, batch, width) in batches.into_iter().chain(widths).chain(thread_counts) {
            // The large ones take seconds; a few rounds tell.
            let rounds = if batch * width > 512 * 1024 { 5 } else { 15 };
            sweep.push(time(threads, batch, width, rounds, &data, rate)?.0);
        }
    }
    let times = StepTimes { step, gemm_gflops_per_thread: rate, parameters, peak_rss_mib, sweep };
    if args.json { output::print_json(&times) } else { output::print(&text(&times)) }
}

fn time(
    threads: usize,
    batch: usize,
    width: usize,
    rounds: usize,
    data: &Dataset,
    rate: f64,
) -> Result<(Timing, usize), Failure> {
    let pool = Pool::new(threads);
    let paper = Config::default();
    let common = Common { hidden: vec![width; 4], batch_size: batch, ..paper.common };
    let mut agent = Learner::new(&Config { common, ..paper }, data, 1_000_000, 0, &pool)?;
    let timed = time_steps(&mut agent, data, rounds)?;
    let seconds = median(&timed, |t| t.0);
    let segments = Segments::new(agent.segments()).map_err(|e| Failure::Config(e.to_string()))?;
    let mut rows = segments.batch(data, batch);
    segments.gather(data, &mut rows);
    let gflop = agent.operations(&rows) / 1e9;
    let timing = Timing {
        threads: pool.threads(),
        batch,
        width,
        ms_per_step: 1e3 * seconds,
        gflop_per_step: gflop,
        gemm_share: gflop / seconds / (rate * pool.threads() as f64),
        sampling_share: median(&timed, |t| t.1 / t.0),
    };
    Ok((timing, agent.parameters()))
}

fn text(times: &StepTimes) -> String {
    let header = ["threads", "batch", "width", "ms/step", "GFLOP", "share of GEMM rate", "sampling"];
    let table = std::iter::once(&times.step).chain(&times.sweep).fold(Table::new(header), |table, t| {
        table.row([
            t.threads.to_string(),
            t.batch.to_string(),
            t.width.to_string(),
            compact(t.ms_per_step),
            compact(t.gflop_per_step),
            format!("{:.0} %", 100.0 * t.gemm_share),
            format!("{:.2} %", 100.0 * t.sampling_share),
        ])
    });
    let peak = times.peak_rss_mib.map_or("unknown".into(), |m| format!("{m:.0} MiB"));
    format!(
        "{}{} parameters, peak memory {peak}, GEMM rate {:.0} GFLOP/s a thread",
        table.to_text(),
        times.parameters,
        times.gemm_gflops_per_thread
    )
}
