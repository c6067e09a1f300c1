//! One run of a plan, in this process.

use super::plan::{Planned, Work};
use super::results::{FailureNote, Results, State};
use crate::{Cli, dispatch, train};
use album::Error as Failure;
use album::Resources;
use album_train::{RunDir, TrainError};
use clap::Parser;
use std::time::Instant;

/// Begins a run, or goes on with it, or does nothing if it is finished. A failure is noted in the folder.
pub fn run(results: &Results, run: &Planned, resources: &Resources) -> Result<(), Failure> {
    if matches!(results.state(run), State::Finished) {
        eprintln!("{} is finished already", run.id);
        return Ok(());
    }
    results.forgive(&run.id)?;
    let outcome = work(results, run, resources);
    if let Err(failure) = &outcome
        && !matches!(failure, Failure::Stopped(_) | Failure::Train(TrainError::Locked { .. }))
    {
        let note = FailureNote { code: Some(failure.exit_code()), message: failure.to_string() };
        results.fail(&run.id, &note)?;
    }
    outcome
}

fn work(results: &Results, run: &Planned, resources: &Resources) -> Result<(), Failure> {
    let path = results.run(&run.id);
    match &run.work {
        Work::Train { .. } if path.join("config.toml").is_file() => train::go_on(&path, resources, false),
        Work::Train { config, allow_unbounded } => {
            train::begin(config.as_ref().clone(), &path, *allow_unbounded, resources, false)
        }
        Work::Command(args) => {
            let start = Instant::now();
            std::fs::create_dir_all(&path).map_err(Failure::io(&path))?;
            let _lock = RunDir::lock(&path)?;
            let out = path.display().to_string();
            let args = args.iter().map(|arg| arg.replace("{out}", &out));
            let line = std::iter::once("album".to_owned()).chain(args);
            let cli = Cli::try_parse_from(line).map_err(|e| Failure::Config(e.to_string()))?;
            dispatch(cli.command)?;
            results.done(&run.id, start.elapsed().as_secs_f64())
        }
    }
}
