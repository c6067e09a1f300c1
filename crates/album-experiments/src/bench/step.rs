//! Times one ALBUM training step, including sampling, and how it scales.

use super::{median, peak_mib, time_steps};
use album::sizes::antmaze_large;
use album::{Error, Precision};
use album_agents::agents::album::Config;
use album_agents::{Agent, Common, Learner};
use album_base::number::compact;
use album_data::Dataset;
use album_nn::{Pool, product_rate};
use album_report::table::Table;
use serde::Serialize;

/// The sizes that determine the time of a step.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Worker threads; 0 means all processors.
    pub threads: usize,
    /// Batch size.
    pub batch: usize,
    /// Width of the four hidden layers.
    pub width: usize,
    /// Precision of the factors of matrix products; a device has its own.
    pub precision: Precision,
}

/// The result of [`measure`].
#[derive(Debug, Serialize)]
pub struct StepTimes {
    #[serde(flatten)]
    step: Timing,
    /// Measured GEMM rate of one thread in GFLOP/s, in single precision.
    gemm_gflops_per_thread: f64,
    parameters: usize,
    peak_rss_mib: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sweep: Vec<Timing>,
}

#[derive(Debug, Serialize)]
struct Timing {
    threads: usize,
    batch: usize,
    width: usize,
    precision: Precision,
    ms_per_step: f64,
    /// Counted from the shapes of all products, counting all rows.
    gflop_per_step: f64,
    /// Fraction of this machine's measured GEMM rate that a step reaches.
    gemm_share: f64,
    /// Fraction of the step spent on sampling and gathering the batch.
    sampling_share: f64,
}

/// Times `rounds` steps; with `sweep`, also how the time scales with batch size, width and threads.
pub fn measure(size: Size, rounds: usize, sweep: bool) -> Result<StepTimes, Error> {
    let data = antmaze_large(20)?;
    let rate = product_rate(&Pool::new(1));
    let (step, parameters) = time(size, rounds, &data, rate)?;
    let mut times = StepTimes {
        step,
        gemm_gflops_per_thread: rate,
        parameters,
        peak_rss_mib: peak_mib(),
        sweep: Vec::new(),
    };
    if sweep {
        let threads = Pool::new(0).threads();
        let usual = Size { threads, batch: 256, width: 512, ..size };
        let batches = [64, 128, 256, 512, 1024, 2048, 4096].map(|batch| Size { batch, ..usual });
        let widths = [128, 256, 512, 1024, 2048].map(|width| Size { width, ..usual });
        let counts = (1..=threads).map(|threads| Size { threads, ..usual });
        for size in batches.into_iter().chain(widths).chain(counts) {
            // The large sizes take seconds; a few rounds are enough.
            let rounds = if size.batch * size.width > 512 * 1024 { 5 } else { 15 };
            times.sweep.push(time(size, rounds, &data, rate)?.0);
        }
    }
    Ok(times)
}

/// An ALBUM agent with networks of this size.
pub(super) fn learner(size: Size, data: &Dataset, pool: &Pool) -> Result<Learner, Error> {
    let paper = Config::default();
    let common = Common { hidden: vec![size.width; 4], batch_size: size.batch, ..paper.common };
    Ok(Learner::new(&Config { common, ..paper }, data, 1_000_000, 0, pool)?)
}

fn time(size: Size, rounds: usize, data: &Dataset, rate: f64) -> Result<(Timing, usize), Error> {
    let pool = Pool::new(size.threads).with_precision(size.precision.into());
    let mut agent = learner(size, data, &pool)?;
    let (laps, batch) = time_steps(&mut agent, data, rounds)?;
    let seconds = median(laps.iter().map(|lap| lap.whole));
    let gflop = agent.operations(&batch) / 1e9;
    let timing = Timing {
        threads: pool.threads(),
        batch: size.batch,
        width: size.width,
        precision: size.precision,
        ms_per_step: 1e3 * seconds,
        gflop_per_step: gflop,
        gemm_share: gflop / seconds / (rate * pool.threads() as f64),
        sampling_share: median(laps.iter().map(|lap| lap.sampling / lap.whole)),
    };
    Ok((timing, agent.parameters()))
}

impl StepTimes {
    /// The table for a terminal.
    pub fn text(&self) -> String {
        let header = ["threads", "batch", "width", "ms/step", "GFLOP", "share of GEMM rate", "sampling"];
        let table = std::iter::once(&self.step).chain(&self.sweep).fold(Table::new(header), |table, t| {
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
        let peak = self.peak_rss_mib.map_or("unknown".into(), |mib| format!("{mib:.0} MiB"));
        let (parameters, rate) = (self.parameters, self.gemm_gflops_per_thread);
        format!(
            "{}{parameters} parameters, peak memory {peak}, GEMM rate {rate:.0} GFLOP/s per thread",
            table.to_text()
        )
    }
}
