//! `album export`: the policy of a run in one file.

use crate::output;
use album::Error as Failure;
use album::export::{Export, Format, export};
use album_base::warn;
use clap::ValueEnum;
use std::path::PathBuf;

/// Arguments of `album export`.
#[derive(clap::Args)]
pub struct Args {
    /// The run directory
    run: PathBuf,
    /// Export the checkpoint of this step [default: the best one if kept, else the latest]
    #[arg(long)]
    step: Option<u64>,
    /// onnx for any runtime; safetensors for `album act` and the album-policy crate
    #[arg(long)]
    format: FormatArg,
    /// The file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Compare the file with the agent on N observations (ONNX needs onnxruntime in album's Python)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    check: Option<u32>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum FormatArg {
    Onnx,
    Safetensors,
}

/// Runs `album export`.
pub fn run(args: &Args) -> Result<(), Failure> {
    let format = match args.format {
        FormatArg::Onnx => Format::Onnx,
        FormatArg::Safetensors => Format::Safetensors,
    };
    let check = args.check.map(|n| n as usize);
    let exported = export(&args.run, &Export { step: args.step, format, out: args.out.clone(), check })?;
    if let Some(reason) = &exported.skipped {
        warn!("--check was skipped: {reason}");
    }
    output::show(args.json, &exported, || exported.to_string())
}
