//! `album export`: the policy of a run in one file.

use crate::choices::choices;
use crate::output;
use album::Error as Failure;
use album::export::{Export, Format, export};
use album_base::warn;
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
    #[arg(long, value_parser = choices([("onnx", Format::Onnx, ""), ("safetensors", Format::Safetensors, "")]))]
    format: Format,
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

/// Runs `album export`.
pub fn run(args: &Args) -> Result<(), Failure> {
    let check = args.check.map(|n| n as usize);
    let how = Export { step: args.step, format: args.format, out: args.out.clone(), check };
    let exported = export(&args.run, &how)?;
    if let Some(reason) = &exported.skipped {
        warn!("--check was skipped: {reason}");
    }
    output::show(args.json, &exported, || exported.to_string())
}
