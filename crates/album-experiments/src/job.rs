//! A job for a process of its own: a run, or the report of a plan. It is passed as a small file, so that the
//! process needs no options and does not expand the experiment again.

use crate::experiment::Command;
use crate::plan::{PlannedRun, Request, Work, with_seed};
use crate::results::{FailureNote, Results, State, write_json};
use album::{Error, Resources, config};
use album_base::files::{self, Links};
use album_train::{RunDir, TrainError};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// A job.
#[derive(Debug)]
pub enum Job {
    /// A run of a plan.
    Run(PlannedRun),
    /// The report of a plan.
    Report(Request),
}

/// The file of a job.
#[derive(Serialize, Deserialize)]
struct JobFile {
    /// The results folder.
    results: PathBuf,
    work: JobWork,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum JobWork {
    /// A training run; the configuration is the text of a `config.toml`.
    Train { id: String, config: String, allow_unbounded: bool },
    /// A run of a command.
    Command { id: String, command: Command },
    /// A report.
    Report(Request),
}

impl Job {
    /// Writes the job to a file, together with its results folder.
    pub fn write(&self, results: &Results, file: &Path) -> Result<(), Error> {
        let work = match self {
            Job::Report(request) => JobWork::Report(request.clone()),
            Job::Run(PlannedRun { id, work: Work::Command(command) }) => {
                JobWork::Command { id: id.clone(), command: command.clone() }
            }
            Job::Run(PlannedRun { id, work: Work::Train { cell, seed, allow_unbounded } }) => {
                JobWork::Train {
                    id: id.clone(),
                    config: with_seed(cell, *seed).to_toml()?,
                    allow_unbounded: *allow_unbounded,
                }
            }
        };
        write_json(file, &JobFile { results: results.folder().to_path_buf(), work })
    }

    /// Reads a job and its results folder.
    pub fn read(file: &Path) -> Result<(Job, Results), Error> {
        let text = files::read(file, Links::Follow, 16 << 20).map_err(Error::io(file))?;
        let JobFile { results, work } = serde_json::from_slice(&text)
            .map_err(|e| Error::Config(format!("{}: not a job of `album reproduce`: {e}", file.display())))?;
        if let JobWork::Command { id, .. } | JobWork::Train { id, .. } = &work
            && Path::new(id).file_name() != Some(id.as_ref())
        {
            return Err(Error::Config(format!(
                "{}: found the run `{}`, expected a name",
                file.display(),
                id.escape_debug()
            )));
        }
        let job = match work {
            JobWork::Report(request) => Job::Report(request),
            JobWork::Command { id, command } => Job::Run(PlannedRun { id, work: Work::Command(command) }),
            JobWork::Train { id, config, allow_unbounded } => {
                let cell = Arc::new(config::read(&config, &file.display().to_string())?);
                let seed = cell.seed;
                Job::Run(PlannedRun { id, work: Work::Train { cell, seed, allow_unbounded } })
            }
        };
        Ok((job, Results::at(&results)?))
    }
}

/// What a run needs from the program that executes it.
pub trait Host {
    /// Trains a prepared run to its end or until a signal.
    fn train(&mut self, run: album::Run) -> Result<(), Error>;
    /// Runs a command with its files in `out`.
    fn command(&mut self, command: &Command, out: &Path) -> Result<(), Error>;
}

/// Starts or resumes a run, or does nothing if it is finished. A failure is recorded in the folder.
pub fn run(
    results: &Results,
    run: &PlannedRun,
    resources: &Resources,
    host: &mut dyn Host,
) -> Result<(), Error> {
    if matches!(results.state(run), State::Finished) {
        return results.mark_finished(&run.id);
    }
    results.forgive(&run.id)?;
    let outcome = work(results, run, resources, host);
    match &outcome {
        Ok(()) => results.mark_finished(&run.id)?,
        Err(Error::Stopped(_)) => {}
        Err(Error::Train(e)) if matches!(**e, TrainError::Locked { .. }) => {}
        Err(error) => {
            let note = FailureNote { code: Some(error.exit_code()), message: error.to_string() };
            results.fail(&run.id, &note)?;
        }
    }
    outcome
}

fn work(
    results: &Results,
    run: &PlannedRun,
    resources: &Resources,
    host: &mut dyn Host,
) -> Result<(), Error> {
    let path = results.run(&run.id);
    match &run.work {
        Work::Train { .. } if path.join("config.toml").is_file() => {
            host.train(album::Run::resume(&path, None, resources)?)
        }
        Work::Train { cell, seed, allow_unbounded } => {
            host.train(album::Run::begin(with_seed(cell, *seed), &path, *allow_unbounded, resources)?)
        }
        Work::Command(command) => {
            let start = Instant::now();
            std::fs::create_dir_all(&path).map_err(Error::io(&path))?;
            let _lock = RunDir::lock(&path)?;
            host.command(command, &path)?;
            results.done(&run.id, start.elapsed().as_secs_f64())
        }
    }
}
