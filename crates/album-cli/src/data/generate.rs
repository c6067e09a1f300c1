//! `album data generate`.

use crate::output;
use album::Error as Failure;
use album::record::{Event, RecordRequest};
use album_base::cache;
use album_base::progress::{self, Amount, Lines};
use album_base::say;
use album_data::ogbench::TaskName;
use album_envs::play;
use album_train::StopFlag;
use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

/// The arguments of `album data generate`.
#[derive(clap::Args)]
pub struct Args {
    /// The dataset, e.g. `cube-single-play-v0`: play and noisy data of cube, scene and puzzle; navigate data
    /// of pointmaze; navigate, stitch and explore data of antmaze
    name: String,
    /// Number of training episodes; a tenth as many are added for validation [default: as in the official
    /// data]
    #[arg(long, value_name = "N")]
    episodes: Option<NonZero<usize>>,
    /// Worker processes; the data does not depend on how many [default: the number of cores]
    #[arg(long, value_name = "W")]
    workers: Option<NonZero<usize>>,
    /// Seed of the recording
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Folder for the two files [default: album's cache, where `album train` looks]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// For antmaze: the policy file written by `album data expert` [default: an ant that comes with album]
    #[arg(long, value_name = "FILE")]
    expert: Option<PathBuf>,
    /// A Python with ogbench installed [default: ALBUM_PYTHON, or the one made by `album setup ogbench`]
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
    let bar = progress::bar(0, Amount::Count).with_prefix("episodes");
    let mut lines = Lines::every(Duration::from_secs(30));
    let recorded = request.record(&StopFlag::on_signals()?, &mut |event| match event {
        Event::Begun(what) => say!("recording {what} into {}", folder.display()),
        Event::Play(play::Event::Recorded { episodes, of }) => {
            let resumed = bar.length() == Some(0) && episodes > 0;
            bar.set_length(of as u64);
            bar.set_position(episodes as u64);
            if resumed {
                progress::say(&bar, &format!("{episodes} of {of} episodes were recorded earlier"));
                bar.reset_eta(); // earlier episodes would distort the speed
            }
            lines.say(&bar, || format!("{episodes} of {of} episodes"));
        }
        Event::Play(play::Event::Lost { reason }) => {
            progress::warn(&bar, &format!("a worker process died and is replaced: {reason}"));
        }
        Event::Play(play::Event::Writing { path }) => {
            progress::say(&bar, &format!("writing {}", path.display()));
        }
        Event::Play(_) => {}
    });
    bar.finish_and_clear();
    let recorded = recorded?;
    output::show(args.json, &recorded, || recorded.to_string())
}
