//! Times training steps at the sizes of antmaze-large, and exact solutions, on this machine.

pub mod cost;
pub mod on_device;
pub mod solve;
pub mod step;

use album::Error;
use album_agents::{Agent, AgentError, Learner};
use album_data::{Batch, Dataset, Sampler, Segments};
use std::time::Instant;

/// Time of a training step in seconds.
struct Lap {
    whole: f64,
    /// The part spent on sampling and gathering the batch.
    sampling: f64,
}

/// Times `steps` updates after a warm-up, and returns the times and the last batch.
fn time_steps(agent: &mut Learner, data: &Dataset, steps: usize) -> Result<(Vec<Lap>, Batch), Error> {
    const WARM_UP: usize = 6;
    let segments = Segments::new(agent.segments()).map_err(|e| Error::Config(e.to_string()))?;
    let sampler = Sampler::new(0, data.len());
    let mut batch = segments.batch(data, agent.batch_size());
    let mut laps = Vec::with_capacity(WARM_UP + steps);
    for step in 0..(WARM_UP + steps) as u64 {
        let start = Instant::now();
        sampler.fill(step, batch.indices_mut());
        segments.gather(data, &mut batch);
        let sampling = start.elapsed().as_secs_f64();
        agent.update(&batch, step, None);
        laps.push(Lap { whole: start.elapsed().as_secs_f64(), sampling });
    }
    Ok((laps.split_off(WARM_UP), batch))
}

/// Whether the device of an agent is still there.
fn check(agent: &Learner) -> Result<(), Error> {
    match agent.failure() {
        Some(AgentError::Device(error)) => Err(error.into()),
        _ => Ok(()),
    }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / (1 << 20) as f64
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    album_stats::median(values).unwrap_or(f64::NAN)
}

/// Peak resident memory of this process so far in MiB, if /proc has it.
pub fn peak_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix("kB")?.trim();
    Some(kib.parse::<f64>().ok()? / 1024.0)
}
