//! `album data generate`.

use crate::output;
use album::Error as Failure;
use album_base::cache;
use album_base::progress::{self, Amount, ProgressBar};
use album_data::ogbench::{Family, MazeSize, TaskName};
use album_envs::play::{Event, Outcome, RecordError, Recorder};
use album_envs::{EnvError, Python, navigate, play};
use album_train::StopFlag;
use serde::Serialize;
use std::io::IsTerminal;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The arguments of `album data generate`.
#[derive(clap::Args)]
pub struct Args {
    /// The dataset, e.g. `cube-single-play-v0`: play and noisy of cube, scene and puzzle, navigate of pointmaze
    name: String,
    /// Training episodes; a tenth as many are added for validation [default: that of the official data]
    #[arg(long, value_name = "N")]
    episodes: Option<NonZero<usize>>,
    /// Processes that record side by side; the data does not depend on it [default: the number of cores]
    #[arg(long, value_name = "W")]
    workers: Option<NonZero<usize>>,
    /// Of all randomness
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Folder of the two files [default: album's cache, where `album train` looks]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// A Python that has ogbench [default: ALBUM_PYTHON, or what `album setup ogbench` made]
    #[arg(long)]
    python: Option<PathBuf>,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    dataset: String,
    seed: u64,
    train: FileReport,
    validation: FileReport,
    /// Versions of what recorded the data; nothing for native environments and for files that were there.
    packages: Option<String>,
    wall_seconds: f64,
}

#[derive(Serialize)]
struct FileReport {
    path: PathBuf,
    episodes: usize,
    rows: usize,
    /// Whether the file was made now, or was there already.
    made: bool,
}

/// Runs `album data generate`.
pub fn run(args: &Args) -> Result<(), Failure> {
    let task = TaskName::of_dataset(&args.name).map_err(|e| Failure::Config(e.to_string()))?;
    let folder = match &args.out {
        Some(folder) => folder.clone(),
        None => cache::folder()?,
    };
    let start = Instant::now();
    let (environment, kind) = (task.environment(), task.data_kind());
    let report = match environment.family {
        Family::PointMaze(size) if kind == "navigate" => navigate(args, &task, size, &folder)?,
        _ => match play::Recipe::published(environment, kind, args.seed) {
            Some(recipe) => {
                let episodes = args.episodes.map_or(recipe.episodes, NonZero::get);
                play(args, &play::Recipe { episodes, ..recipe }, &folder)?
            }
            None => return Err(refusal(&task)),
        },
    };
    let report = Report { wall_seconds: start.elapsed().as_secs_f64(), ..report };
    if args.json {
        return output::print_json(&report);
    }
    let lines = [&report.train, &report.validation].map(|file| {
        let verb = if file.made { "made" } else { "kept, made by the same recipe before:" };
        format!("{verb} {} ({} episodes of {} rows)", file.path.display(), file.episodes, file.rows)
    });
    output::print(&lines.join("\n"))
}

fn refusal(task: &TaskName) -> Failure {
    let name = task.dataset_name();
    let why = match task.environment().family {
        Family::PointMaze(_) => format!("album has no recipe for `{}` data", task.data_kind()),
        _ => "its recipe needs expert policies that are not in the package ogbench".to_owned(),
    };
    Failure::Config(format!(
        "{name} cannot be recorded: {why}; `album data fetch {name}` downloads the official files"
    ))
}

/// PointMaze is native and takes seconds.
fn navigate(args: &Args, task: &TaskName, size: MazeSize, folder: &Path) -> Result<Report, Failure> {
    let published = navigate::Recipe::train(size, args.seed);
    let episodes = args.episodes.map_or(published.episodes, NonZero::get);
    let train = navigate::Recipe { episodes, ..published };
    let validation =
        navigate::Recipe { episodes: episodes.div_ceil(10), ..navigate::Recipe::validation(size, args.seed) };
    std::fs::create_dir_all(folder).map_err(Failure::io(folder))?;
    let file = |recipe: &navigate::Recipe, name: String| {
        let path = folder.join(name);
        let made = navigate::cached(&path, recipe, workers(args)).map_err(env_failure)?;
        Ok::<_, Failure>(FileReport { path, episodes: recipe.episodes, rows: recipe.rows, made })
    };
    Ok(Report {
        dataset: task.dataset_name(),
        seed: args.seed,
        train: file(&train, task.dataset_file())?,
        validation: file(&validation, task.validation_file())?,
        packages: None,
        wall_seconds: 0.0,
    })
}

fn play(args: &Args, recipe: &play::Recipe, folder: &Path) -> Result<Report, Failure> {
    let there = |split| recipe.is_recorded(folder, split).map_err(record_failure);
    let (train, validation) = (there(play::Split::Train)?, there(play::Split::Validation)?);
    let packages = match train && validation {
        true => {
            // Left over if the last run was killed in its last moment.
            let _ = std::fs::remove_dir_all(recipe.work_folder(folder));
            None
        }
        false => Some(record(args, recipe, folder)?),
    };
    let file = |split, there: bool| FileReport {
        path: recipe.file(folder, split),
        episodes: recipe.episodes_of(split),
        rows: recipe.rows,
        made: !there,
    };
    Ok(Report {
        dataset: recipe.name(),
        seed: args.seed,
        train: file(play::Split::Train, train),
        validation: file(play::Split::Validation, validation),
        packages,
        wall_seconds: 0.0,
    })
}

/// Records what is missing, and returns the versions of the packages that did.
fn record(args: &Args, recipe: &play::Recipe, folder: &Path) -> Result<String, Failure> {
    let python = Python::find(args.python.as_deref()).map_err(env_failure)?;
    std::fs::create_dir_all(folder).map_err(Failure::io(folder))?;
    let stop = StopFlag::on_signals()?;
    eprintln!("recording {recipe} into {}", folder.display());
    let mut progress = Progress::new();
    let outcome = Recorder {
        recipe,
        folder,
        python: &python,
        workers: workers(args),
        chunk: Recorder::CHUNK,
        limits: Recorder::LIMITS,
        stop: &|| stop.is_set(),
        observer: &mut |event| progress.show(event),
    }
    .record();
    progress.bar.finish_and_clear();
    match outcome.map_err(record_failure)? {
        Outcome::Done { packages } => Ok(packages),
        Outcome::Stopped { episodes, of } => Err(Failure::Stopped(format!(
            "stopped with {episodes} of {of} episodes kept in {}; the same command goes on from there",
            recipe.work_folder(folder).display()
        ))),
    }
}

fn workers(args: &Args) -> NonZero<usize> {
    let cores = || std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    args.workers.unwrap_or_else(cores)
}

fn env_failure(error: EnvError) -> Failure {
    record_failure(error.into())
}

fn record_failure(error: RecordError) -> Failure {
    match error.is_io() {
        true => Failure::Tool(error.to_string()),
        false => Failure::Load(error.to_string()),
    }
}

/// A bar on a terminal; elsewhere a line now and then.
struct Progress {
    bar: ProgressBar,
    lines: bool,
    /// Where this process began: episodes that were there, and when.
    begin: Option<(usize, Instant)>,
    last_line: Instant,
}

impl Progress {
    /// Between two lines of a log.
    const PAUSE: Duration = Duration::from_secs(30);

    fn new() -> Self {
        let bar = progress::bar(0, Amount::Count).with_prefix("episodes");
        Self { bar, lines: !std::io::stderr().is_terminal(), begin: None, last_line: Instant::now() }
    }

    fn show(&mut self, event: Event<'_>) {
        match event {
            Event::Recorded { episodes, of } => self.recorded(episodes, of),
            Event::Lost { reason } => self.say(&format!("a process was lost and is replaced: {reason}")),
            Event::Writing { path } => self.say(&format!("writing {}", path.display())),
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
            eprintln!("{episodes} of {of} episodes, {message}");
            self.last_line = Instant::now();
        }
        self.bar.set_message(message);
    }

    /// A line that stays.
    fn say(&self, line: &str) {
        progress::say(&self.bar, line);
    }
}
