//! `album bench step`.

use crate::output;
use album::{Error as Failure, Precision};
use album_experiments::bench::on_device;
use album_experiments::bench::step::{Size, measure};
use album_xla::DeviceName;

/// Arguments of `album bench step`.
#[derive(clap::Args)]
pub struct Args {
    /// Worker threads (0: all processors)
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Batch size
    #[arg(long, default_value_t = 256)]
    batch: usize,
    /// Width of the four hidden layers
    #[arg(long, default_value_t = 512)]
    width: usize,
    /// Steps to time; the median is reported
    #[arg(long, default_value_t = 60)]
    rounds: usize,
    /// Also time other batch sizes, widths and thread counts
    #[arg(long, conflicts_with = "device")]
    sweep: bool,
    /// Time the step on a device of the plugin that `album setup xla` installed
    #[arg(long, value_name = "xla[:N]")]
    device: Option<DeviceName>,
    /// Precision of the factors of matrix products
    #[arg(long, value_name = "f32|bf16", default_value = "f32", conflicts_with = "device")]
    precision: Precision,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let Args { threads, batch, width, rounds, sweep, device, precision, json } = *args;
    if batch == 0 || width == 0 || rounds == 0 {
        return Err(Failure::Usage("--batch, --width and --rounds must be at least 1".into()));
    }
    let size = Size { threads, batch, width, precision };
    if let Some(device) = device {
        let times = on_device::measure(size, rounds, &device.open()?)?;
        return output::show(json, &times, || times.text());
    }
    let times = measure(size, rounds, sweep)?;
    output::show(json, &times, || times.text())
}
