//! `album data fetch`: downloads the official files of a dataset.
//!
//! ```text
//! NAME.npz                    only ever a whole, checked file
//! NAME.npz.json               where it came from, its size and SHA-256
//! NAME.npz.UNIQUE.part        what has arrived so far; locked by the process that fetches
//! NAME.npz.UNIQUE.part.json   what it is a part of, so that the next call can go on
//! ```

mod check;
mod http;
mod part;
mod progress;
mod record;
mod transfer;

use crate::output;
use album::Error as Failure;
use album_base::cache;
use album_data::ogbench::{Environment, Family, TaskName};
use album_train::StopFlag;
use indicatif::DecimalBytes;
use part::{Claim, Part};
use progress::Progress;
use record::Record;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;
use transfer::Transfer;

/// Where the package `ogbench` 1.2.2 gets its files.
const OFFICIAL: &str = "https://rail.eecs.berkeley.edu/datasets/ogbench";

/// The arguments of `album data fetch`.
#[derive(clap::Args)]
pub struct Args {
    /// The dataset, e.g. antmaze-large-navigate-v0, or one of its tasks
    name: String,
    /// The address of a folder with the files, if not the official one: a mirror
    #[arg(long, value_name = "BASE", env = "ALBUM_DATA_URL", default_value = OFFICIAL)]
    from: String,
    /// The folder to put them in, if not the cache, where `album train` looks
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Seconds without a byte after which a connection is given up; waits between attempts go with it
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, hide = true)]
    patience: f64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    dataset: String,
    folder: PathBuf,
    files: Vec<Fetched>,
}

#[derive(Serialize)]
struct Fetched {
    path: PathBuf,
    /// Whether the file was there before.
    kept: bool,
    /// Bytes of it that an earlier call had brought.
    resumed_from: u64,
    /// An earlier fetch of the same name brought other bytes: their SHA-256.
    #[serde(skip_serializing_if = "Option::is_none")]
    earlier_sha256: Option<String>,
    #[serde(flatten)]
    record: Record,
}

/// Runs `album data fetch`.
pub fn run(args: &Args) -> Result<(), Failure> {
    let task = TaskName::of_dataset(&args.name).map_err(|e| Failure::Config(e.to_string()))?;
    let base = args.from.trim_end_matches('/');
    let is_address = base.parse::<ureq::http::Uri>().is_ok_and(|address| {
        matches!(address.scheme_str(), Some("http" | "https"))
            && address.host().is_some_and(|h| !h.is_empty())
    });
    if !is_address {
        return Err(Failure::Usage(format!(
            "the address of the files is `{}`, expected one such as {OFFICIAL}; see --from and ALBUM_DATA_URL",
            args.from.escape_debug()
        )));
    }
    let patience = Duration::try_from_secs_f64(args.patience.min(3600.0))
        .map_err(|e| Failure::Usage(format!("--patience {}: {e}", args.patience)))?;
    let folder = match &args.out {
        Some(folder) => folder.clone(),
        None => cache::folder()?,
    };
    std::fs::create_dir_all(&folder).map_err(Failure::io(&folder))?;
    let stop = StopFlag::on_signals()?;

    let mut files = Vec::new();
    for file in [task.dataset_file(), task.validation_file()] {
        let url = format!("{base}/{file}");
        let fetched = fetch(&url, &folder, &file, task.environment(), patience, &stop)?;
        if !args.json {
            output::print(&fetched.line())?;
        }
        files.push(fetched);
    }
    if args.out.is_none() && matches!(task.environment().family, Family::PointMaze(_)) {
        eprintln!(
            "note: `album train` records pointmaze data itself; to train on this file, name it with --data"
        );
    }
    if args.json {
        output::print_json(&Report { dataset: task.dataset_name(), folder, files })?;
    }
    Ok(())
}

/// Brings one file into the folder, unless it is there.
fn fetch(
    url: &str,
    folder: &Path,
    file: &str,
    environment: &Environment,
    patience: Duration,
    stop: &StopFlag,
) -> Result<Fetched, Failure> {
    let path = folder.join(file);
    let mut part = match part::claim(folder, file, stop)? {
        Claim::Whole => return keep(path, environment, stop),
        Claim::Part(part) => part,
    };
    let mut progress = Progress::new(file);
    let brought = bring(url, &mut part, environment, patience, stop, &mut progress);
    progress.finish();
    let sha256 = match brought {
        Ok(sha256) => sha256,
        Err(failure) => {
            part.remove_if_empty();
            return Err(failure);
        }
    };

    let earlier = Record::of(&path).map(|record| record.sha256).filter(|earlier| *earlier != sha256);
    if let Some(earlier) = &earlier {
        eprintln!(
            "warning: {file} is not what an earlier fetch brought: its SHA-256 is {sha256}, then {earlier}"
        );
    }
    let resumed_from = part.inherited();
    let record = Record::new(url, part.length(), sha256, part.origin());
    part.publish(&path)?;
    record.write(&path)?;
    part::clear(folder, file);
    Ok(Fetched { path, kept: false, resumed_from, earlier_sha256: earlier, record })
}

/// Downloads until the part is a good file; tells its SHA-256.
fn bring(
    url: &str,
    part: &mut Part,
    environment: &Environment,
    patience: Duration,
    stop: &StopFlag,
    progress: &mut Progress,
) -> Result<String, Failure> {
    let mut first = true;
    loop {
        Transfer { url, part, stop, patience, progress }.run()?;
        progress.say(&format!("{} is here; checking it", part.file()));
        match check::contents(part.path(), environment) {
            Ok(()) => return check::sha256(part.path(), stop),
            // Two versions of the file, from a server that gives no hint which is which.
            Err(problem) if first && part.origin().spliced => {
                first = false;
                progress.say(&format!("the pieces do not fit together ({problem}); starting over"));
                part.forget()?;
            }
            Err(problem) => {
                part.forget()?;
                return Err(Failure::Load(format!(
                    "{url} is not a data file of {}: {problem}. Nothing was kept; is the address right? \
                     --from names another",
                    environment.name
                )));
            }
        }
    }
}

/// Looks at a file that is there already.
fn keep(path: PathBuf, environment: &Environment, stop: &StopFlag) -> Result<Fetched, Failure> {
    check::contents(&path, environment).map_err(|problem| {
        Failure::Load(format!(
            "{problem}. The file was there already and is no data file of {}; delete it to fetch it again",
            environment.name
        ))
    })?;
    let sha256 = check::sha256(&path, stop)?;
    let size = std::fs::metadata(&path).map_err(Failure::io(&path))?.len();
    let mut earlier_sha256 = None;
    let record = match Record::of(&path) {
        Some(record) if record.sha256 == sha256 => record,
        other => {
            if let Some(record) = other {
                eprintln!(
                    "warning: {} is not what was fetched on {}: its SHA-256 is {sha256}, then {}; \
                     delete it to fetch it again",
                    path.display(),
                    record.date,
                    record.sha256
                );
                earlier_sha256 = Some(record.sha256);
            }
            Record::of_unknown_origin(size, sha256)
        }
    };
    Ok(Fetched { path, kept: true, resumed_from: 0, earlier_sha256, record })
}

impl Fetched {
    fn line(&self) -> String {
        let Record { size, sha256, .. } = &self.record;
        let what = if self.kept { "was there (delete it to fetch it again)" } else { "fetched" };
        format!("{}: {what}, {}, sha256 {sha256}", self.path.display(), DecimalBytes(*size))
    }
}
