//! `album data generate`.

use crate::output;
use album::Error as Failure;
use album::record::{Event, RecordRequest};
use album_base::cache;
use album_base::progress::{self, Amount, ProgressBar};
use album_base::say;
use album_data::ogbench::TaskName;
use album_envs::play;
use album_train::StopFlag;
use std::io::IsTerminal;
use std::num::NonZero;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The arguments of `album data generate`.
#[derive(clap::Args)]
pub struct Args {
    /// The dataset, e.g. `cube-single-play-v0`: play and noisy of cube, scene and puzzle, navigate of pointmaze, navigate, stitch and explore of antmaze
    name: String,
    /// Training episodes; a tenth as many are added for validation [default: those of the official data]
    #[arg(long, value_name = "N")]
    episodes: Option<NonZero<usize>>,
    /// Worker processes; the data does not depend on their number [default: the number of cores]
    #[arg(long, value_name = "W")]
    workers: Option<NonZero<usize>>,
    /// Seed of the recording
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Folder for the two files [default: album's cache, where `album train` looks]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Antmaze: the policy file that `album data expert` wrote [default: that in album's cache]
    #[arg(long, value_name = "FILE")]
    expert: Option<PathBuf>,
    /// A Python that has ogbench [default: ALBUM_PYTHON, or what `album setup ogbench` made]
    #[arg(long)]
    python: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs `album data generate`.
pub fn run(args: &Args) -> Result<(), Failure> {
    let task = TaskName::of_dataset(&args.name).map_err(|e| Failure::Config(e.to_string()))?;
    let folder = match &args.out {
        Some(folder) => folder.clone(),
        None => cache::folder()?,
    };
    let cores = || std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    let request = RecordRequest {
        task,
        episodes: args.episodes,
        workers: args.workers.unwrap_or_else(cores),
        seed: args.seed,
        folder: &folder,
        expert: args.expert.as_deref(),
        python: args.python.as_deref(),
    };
    let mut progress = Progress::new();
    let recorded = request.record(&StopFlag::on_signals()?, &mut |event| match event {
        Event::Begun(what) => say!("recording {what} into {}", folder.display()),
        Event::Play(event) => progress.show(event),
    });
    progress.bar.finish_and_clear();
    let recorded = recorded?;
    output::show(args.json, &recorded, || recorded.to_string())
}

/// A bar on a terminal; elsewhere a line now and then.
struct Progress {
    bar: ProgressBar,
    lines: bool,
    /// Episodes that were there when this process began, and the time.
    begin: Option<(usize, Instant)>,
    last_line: Instant,
}

impl Progress {
    /// Pause between two lines of a log.
    const PAUSE: Duration = Duration::from_secs(30);

    fn new() -> Self {
        let bar = progress::bar(0, Amount::Count).with_prefix("episodes");
        Self { bar, lines: !std::io::stderr().is_terminal(), begin: None, last_line: Instant::now() }
    }

    fn show(&mut self, event: play::Event<'_>) {
        match event {
            play::Event::Recorded { episodes, of } => self.recorded(episodes, of),
            play::Event::Lost { reason } => {
                self.say(&format!("a process was lost and is replaced: {reason}"));
            }
            play::Event::Writing { path } => self.say(&format!("writing {}", path.display())),
            _ => {}
        }
    }

    fn recorded(&mut self, episodes: usize, of: usize) {
        let (there, since) = *self.begin.get_or_insert_with(|| (episodes, Instant::now()));
        self.bar.set_length(of as u64);
        self.bar.set_position(episodes as u64);
        if episodes <= there {
            if episodes > 0 && self.bar.message().is_empty() {
                self.say(&format!("{episodes} of {of} episodes are there already"));
                self.bar.set_message("going on");
            }
            return;
        }
        let rate = (episodes - there) as f64 / since.elapsed().as_secs_f64().max(1e-3);
        let left = Duration::from_secs_f64((of - episodes) as f64 / rate);
        let message = format!("{rate:.2} episodes/s, {} left", indicatif::HumanDuration(left));
        if self.lines && self.last_line.elapsed() >= Self::PAUSE {
            say!("{episodes} of {of} episodes, {message}");
            self.last_line = Instant::now();
        }
        self.bar.set_message(message);
    }

    /// Prints a line above the bar.
    fn say(&self, line: &str) {
        progress::say(&self.bar, line);
    }
}
