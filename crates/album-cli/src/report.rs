//! `album report`: compares runs with each other and with the published numbers.

use crate::output;
use album::Error as Failure;
use album_base::number::plural;
use album_base::warn;
use album_experiments::collect;
use std::path::PathBuf;

/// Arguments of `album report`.
#[derive(clap::Args)]
pub struct Args {
    /// Run directories, or folders that contain them
    #[arg(required = true, value_name = "RUNS")]
    runs: Vec<PathBuf>,
    /// Folder for index.html, the tables (CSV, LaTeX) and the figures (SVG)
    #[arg(long, default_value = "album-report", value_name = "DIR")]
    out: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let named: Vec<String> = args.runs.iter().map(|path| path.display().to_string()).collect();
    let command = format!("album report {} --out {}", named.join(" "), args.out.display());
    let found = collect(&args.runs, command)?;
    for skipped in &found.skipped {
        warn!("{} is left out: {}", skipped.run.display(), skipped.reason);
    }
    let (runs, finished) = found.count();
    if runs == 0 && found.studies.iter().all(|study| study.outputs.is_none()) {
        return Err(Failure::Load("none of the runs can be read; there is nothing to report".into()));
    }
    let written = album_experiments::write(&found.studies, &found.own, &args.out)?;
    let variants = found.variants();
    let json = serde_json::json!({
        "page": written.page,
        "files": written.files,
        "runs": runs,
        "finished": finished,
        "variants": variants,
        "skipped": found.skipped,
    });
    output::show(args.json, &json, || {
        format!(
            "{finished} of {} finished, {}; report in {}",
            plural(runs, "run", "runs"),
            plural(variants, "variant", "variants"),
            written.page.display()
        )
    })
}
