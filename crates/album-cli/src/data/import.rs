//! `album data import`.

use crate::output;
use crate::source_args::SourceArgs;
use album::Error as Failure;
use album_base::number::seconds;
use album_base::progress::{self, Amount};
use album_base::say;
use album_data::columns::{Import, Imported, import, import_source, verify};
use album_data::ogbench::TaskName;
use album_data::{Description, Format, needs_task};
use album_train::StopFlag;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The arguments of `album data import`.
#[derive(clap::Args)]
pub struct Args {
    /// Files or folders that are one dataset, in any format that `album data inspect` reads, one after the other; a
    /// folder stands for its files in the order of their names, without those that end in -val.npz
    #[arg(required = true, value_name = "SOURCE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    source: SourceArgs,
    /// Check that the data has the columns and dimensions of this task (all five of an environment need the same)
    #[arg(long)]
    task: Option<String>,
    /// The folder to make, for `album train --data DIR` [default: the name of the one file, ending in .columns]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace an imported folder that already exists
    #[arg(long)]
    force: bool,
    /// Import nothing: check the files of the imported folder SOURCE against their hashes
    #[arg(long, conflicts_with_all = ["task", "out", "force"])]
    verify: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs `album data import`.
pub fn run(args: &Args) -> Result<(), Failure> {
    if args.verify {
        return verify_folders(args);
    }
    #[derive(Serialize)]
    struct Report {
        folder: PathBuf,
        sources: Vec<PathBuf>,
        #[serde(flatten)]
        imported: Imported,
        /// Where the sources are a log.
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<Description>,
        wall_seconds: f64,
    }
    let environment = match &args.task {
        Some(task) => {
            let task: TaskName = task.parse().map_err(|e| Failure::Config(format!("{e}")))?;
            Some(task.environment())
        }
        None => None,
    };
    let target = target(args)?;
    let source = args.source.source(args.files.clone());
    let recording = args.source.is_empty() && source.format()? == Format::Npz && {
        let files = sources(&args.files)?;
        args.task.is_some() || needs_task(&files[0])?
    };
    if args.task.is_some() && !recording {
        return Err(Failure::Usage("--task checks npz files without options for their columns".into()));
    }
    let sources = if recording { sources(&args.files)? } else { args.files.clone() };
    let start = Instant::now();
    let stop = StopFlag::on_signals()?;
    let bar = progress::bar(1000, Amount::Share).with_prefix("import");
    let imported = if recording {
        let what = Import { sources: &sources, target: &target, replace: args.force, environment };
        let imported = import(&what, &mut |done, total| {
            bar.set_position((1000.0 * done as f64 / total.max(1) as f64) as u64);
            !stop.is_set()
        });
        imported.map(|imported| imported.map(|imported| (imported, None)))
    } else {
        let imported = import_source(&source, &target, args.force, &mut |_| !stop.is_set());
        imported.map(|imported| imported.map(|(imported, description)| (imported, Some(description))))
    };
    bar.finish_and_clear();
    let Some((imported, description)) = imported? else {
        return Err(Failure::Stopped("import stopped; nothing was written".into()));
    };
    let wall_seconds = start.elapsed().as_secs_f64();
    for warning in &imported.warnings {
        say!("warning: {warning}");
    }
    for guess in description.iter().flat_map(|description| &description.guesses) {
        say!("guessed: {guess}");
    }
    if args.json {
        return output::print_json(&Report { folder: target, sources, imported, description, wall_seconds });
    }
    output::print(&format!(
        "{} transitions in {} episodes, {} bytes, into {} in {}",
        imported.transitions,
        imported.episodes,
        imported.bytes,
        target.display(),
        seconds(wall_seconds),
    ))
}

/// The folder to make.
fn target(args: &Args) -> Result<PathBuf, Failure> {
    match (&args.out, &args.files[..]) {
        (Some(out), _) => Ok(out.clone()),
        (None, [one]) if one.file_name().is_some() => {
            let name = if one.is_dir() { one.clone() } else { one.with_extension("") };
            Ok(PathBuf::from(format!("{}.columns", name.display())))
        }
        _ => Err(Failure::Usage(
            "several files are given; expected --out DIR to name the folder to make".into(),
        )),
    }
}

/// The files to import, in order.
fn sources(arguments: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut sources = Vec::new();
    for argument in arguments {
        if argument.is_dir() {
            sources.extend(slices(argument)?);
        } else {
            sources.push(argument.clone());
        }
    }
    Ok(sources)
}

/// The npz files of a folder that are for training.
fn slices(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(Failure::io(folder))? {
        let path = entry.map_err(Failure::io(folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".npz") && !name.ends_with("-val.npz") && !name.starts_with('.') {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(Failure::Config(format!(
            "{}: found no npz file for training in this folder",
            folder.display()
        )));
    }
    files.sort();
    Ok(files)
}

fn verify_folders(args: &Args) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Report<'a> {
        verified: &'a [PathBuf],
    }
    for folder in &args.files {
        verify(folder)?;
    }
    if args.json {
        return output::print_json(&Report { verified: &args.files });
    }
    output::print(&format!(
        "{} as imported",
        if args.files.len() == 1 { "the folder is" } else { "all folders are" }
    ))
}
