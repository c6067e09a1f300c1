//! Times one ALBUM update on a device.

use super::step::{Size, learner};
use super::{check, median, mib, time_steps};
use album::Error;
use album::sizes::antmaze_large;
use album_agents::Agent;
use album_nn::Pool;
use album_xla::Device;
use serde::Serialize;

/// The result of [`measure`].
#[derive(Debug, Serialize)]
pub struct DeviceTimes {
    device: String,
    /// The plugin's description of itself.
    runtime: String,
    batch: usize,
    width: usize,
    ms_per_step: f64,
    /// Counted from the shapes of all products, counting all rows.
    gflop_per_step: f64,
    /// Fraction of the step spent on sampling and gathering the batch.
    sampling_share: f64,
    parameters: usize,
    /// Length of the StableHLO program in lines.
    program_lines: usize,
    compile_seconds: f64,
    /// The compiler's estimate of the program's memory, including arguments.
    program_peak_mib: Option<f64>,
    /// Peak memory in use according to the device, if it reports it.
    device_peak_mib: Option<f64>,
}

/// Times `rounds` steps.
pub fn measure(size: Size, rounds: usize, device: &Device) -> Result<DeviceTimes, Error> {
    let data = antmaze_large(20)?;
    let mut agent = learner(size, &data, &Pool::new(size.threads))?;
    agent.move_to(device);
    let (laps, batch) = time_steps(&mut agent, &data, rounds)?;
    check(&agent)?;
    let programs = agent.programs();
    Ok(DeviceTimes {
        device: device.name().to_owned(),
        runtime: device.version()?,
        batch: size.batch,
        width: size.width,
        ms_per_step: 1e3 * median(laps.iter().map(|lap| lap.whole)),
        sampling_share: median(laps.iter().map(|lap| lap.sampling / lap.whole)),
        program_lines: programs.iter().map(|program| program.lines).sum(),
        compile_seconds: programs.iter().map(|program| program.compile_time.as_secs_f64()).sum(),
        program_peak_mib: programs.iter().filter_map(|program| program.peak_memory).max().map(mib),
        device_peak_mib: device.memory().and_then(|memory| memory.peak).map(mib),
        parameters: agent.parameters(),
        gflop_per_step: agent.operations(&batch) / 1e9,
    })
}

impl DeviceTimes {
    /// The table for a terminal.
    pub fn text(&self) -> String {
        let mib = |mib: Option<f64>| mib.map_or("unknown".into(), |mib| format!("{mib:.0} MiB"));
        format!(
            "{}: {:.2} ms per step, batch {}, width {}, {:.1} GFLOP, sampling {:.2} %\nprogram of {} lines, compiled \
             in {:.1} s, memory {}; device memory at most {}\n{}",
            self.device,
            self.ms_per_step,
            self.batch,
            self.width,
            self.gflop_per_step,
            100.0 * self.sampling_share,
            self.program_lines,
            self.compile_seconds,
            mib(self.program_peak_mib),
            mib(self.device_peak_mib),
            self.runtime.trim_end()
        )
    }
}
