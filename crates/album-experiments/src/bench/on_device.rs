//! One ALBUM update on a device: what an owner of a GPU measures, and can send in.

use super::step::{Size, learner};
use super::{check, median, mib, time_steps};
use album::Error;
use album::sizes::antmaze_large;
use album_agents::Agent;
use album_nn::Pool;
use album_xla::Device;
use serde::Serialize;

/// What [`measure`] found.
#[derive(Debug, Serialize)]
pub struct DeviceTimes {
    device: String,
    /// In the plugin's words.
    runtime: String,
    batch: usize,
    width: usize,
    ms_per_step: f64,
    /// Counted from the shapes, no row left out.
    gflop_per_step: f64,
    /// The share of the step that sampling and gathering the batch take.
    sampling_share: f64,
    parameters: usize,
    /// Lines of the program in StableHLO.
    program_lines: usize,
    compile_seconds: f64,
    /// What the compiler says that the program needs, arguments included.
    program_peak_mib: Option<f64>,
    /// What the device says that was in use at most, where it counts.
    device_peak_mib: Option<f64>,
}

/// Times `rounds` steps of a size.
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
    /// For a terminal.
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
