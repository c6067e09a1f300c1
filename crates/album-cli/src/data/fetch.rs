//! `album data fetch`: downloads the official files of a dataset.

use crate::output;
use album::Error as Failure;
use album::fetch::{Event, OGBENCH, Options, fetch};
use album_base::cache;
use album_base::number::bytes;
use album_base::progress::{self, Amount, Lines, ProgressBar};
use album_base::{error, warn};
use album_data::ogbench::{TaskName, load_task};
use album_train::StopFlag;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The arguments of `album data fetch`.
#[derive(clap::Args)]
pub struct Args {
    /// The dataset, e.g. antmaze-large-navigate-v0, or one of its tasks
    name: String,
    /// Base address of a mirror
    #[arg(long, value_name = "BASE", env = "ALBUM_DATA_URL", hide_env_values = true, default_value = OGBENCH)]
    from: String,
    /// Folder for the files [default: album's cache, where `album train` looks]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Seconds without data after which a connection is dropped
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, hide = true)]
    patience: f64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs `album data fetch`.
pub fn run(args: &Args) -> Result<(), Failure> {
    let task = TaskName::of_dataset(&args.name).map_err(|e| Failure::Config(e.to_string()))?;
    let patience = Duration::try_from_secs_f64(args.patience.min(3600.0))
        .map_err(|e| Failure::Usage(format!("--patience {}: {e}", args.patience)))?;
    let folder = match &args.out {
        Some(folder) => folder.clone(),
        None => cache::folder()?,
    };
    exit_on_signals()?;

    let check = |path: &Path| load_task(path, &task).map(drop).map_err(|e| e.to_string());
    let options = Options { patience, ..Options::default() };
    let mut files = Vec::new();
    for file in [task.dataset_file(), task.validation_file()] {
        let url = format!("{}/{file}", args.from.trim_end_matches('/'));
        let mut progress = DownloadBar::new(&file);
        let fetched = fetch(&url, &folder.join(&file), options, &check, &mut |event| progress.show(event));
        progress.bar.finish_and_clear();
        let fetched = fetched?;
        if let Some(earlier) = &fetched.earlier_sha256 {
            warn!("{file} differs from an earlier download, whose SHA-256 was {earlier}");
        }
        if !args.json {
            output::print(&fetched.to_string())?;
        }
        files.push(fetched);
    }
    if args.json {
        let dataset = task.dataset_name();
        output::print_json(&serde_json::json!({ "dataset": dataset, "folder": folder, "files": files }))?;
    }
    Ok(())
}

/// A download can be resumed at any point, so a signal ends the process at once, even while a server is silent.
fn exit_on_signals() -> Result<(), Failure> {
    let stop = StopFlag::on_signals()?;
    std::thread::spawn(move || {
        while !stop.is_set() {
            std::thread::sleep(Duration::from_millis(20));
        }
        let stopped = Failure::Stopped("stopped; the same command resumes".to_owned());
        error!("{stopped}");
        #[expect(clippy::exit, reason = "the main thread may be waiting for a server")]
        std::process::exit(stopped.exit_code().into());
    });
    Ok(())
}

/// A bar on a terminal, an occasional line elsewhere.
struct DownloadBar {
    bar: ProgressBar,
    lines: Lines,
}

impl DownloadBar {
    fn new(file: &str) -> Self {
        let bar = progress::bar(0, Amount::UnknownBytes).with_prefix(file.to_owned());
        DownloadBar { bar, lines: Lines::every(Duration::from_secs(10)) }
    }

    fn show(&mut self, event: Event) {
        let file = self.bar.prefix();
        match event {
            Event::Note(note) => progress::say(&self.bar, &format!("{file}: {note}")),
            Event::Received(have, length) => {
                if let Some(length) = length.filter(|length| self.bar.length() != Some(*length)) {
                    progress::show(&self.bar, Amount::Bytes);
                    self.bar.set_length(length);
                    self.bar.reset_eta(); // bytes from an earlier download would distort the speed
                }
                self.bar.set_position(have);
                self.lines.say(&self.bar, || format!("{file}: {}", bytes(have)));
            }
        }
    }
}
