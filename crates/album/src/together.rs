//! Trains one run or, on a device, several at once: each keeps its own directory, and their updates run as
//! one program.

use crate::config::{Precision, RunConfig};
use crate::error::Error;
use crate::resources::Resources;
use crate::run::{Finished, Run, default_directory};
use crate::track::{Target, Tracker};
use album_train::{Event, RunDir, RunResult, StopFlag};
use album_xla::{Device, DeviceName, Group};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

/// A device to train on.
#[derive(Debug)]
pub struct Accelerator {
    device: Device,
    with_data: bool,
}

impl Accelerator {
    /// Opens a device, if one is named. `with_data` keeps the dataset in its memory as well.
    pub fn open(name: Option<DeviceName>, with_data: bool) -> Result<Option<Self>, Error> {
        let device = name.map(DeviceName::open).transpose()?;
        Ok(device.map(|device| Accelerator { device, with_data }))
    }

    /// Opens the device of this name: `xla`, or `xla:N`.
    pub fn named(name: &str) -> Result<Self, Error> {
        let name: DeviceName = name.parse().map_err(Error::Usage)?;
        Ok(Accelerator { device: name.open()?, with_data: false })
    }

    /// Refuses a configuration that cannot be trained on a device, before anything is created for it.
    pub fn check(&self, config: &RunConfig) -> Result<(), Error> {
        match config.train.precision {
            Precision::F32 => Ok(()),
            Precision::Bf16 => Err(Error::Config(
                "precision = bf16 is for the processor; a device has a precision of its own: leave one of them out"
                    .into(),
            )),
        }
    }

    /// Moves a single run to this device.
    pub fn takes(&self, run: Run) -> Result<Run, Error> {
        self.check(run.config())?;
        run.on(&Group::new(&self.device, 1), self.with_data)
    }
}

/// Creates runs for `seeds` consecutive seeds, starting with the configuration's, in subdirectories of `out`
/// or in each run's default directory. All paths are checked before the first directory is created.
pub fn begin(
    config: &RunConfig,
    seeds: u64,
    out: Option<&Path>,
    allow_unbounded: bool,
    resources: &Resources,
) -> Result<Vec<Run>, Error> {
    let mut planned: Vec<(RunConfig, PathBuf)> = Vec::new();
    for i in 0..seeds {
        let seed = config.seed.checked_add(i).filter(|&seed| i64::try_from(seed).is_ok());
        let seed =
            seed.ok_or_else(|| Error::Usage(format!("there are no {seeds} seeds from {} on", config.seed)))?;
        let config = RunConfig { seed, ..config.clone() };
        let path = match out {
            Some(out) if seeds > 1 => out.join(format!("seed{seed}")),
            Some(out) => out.to_path_buf(),
            None => default_directory(&config),
        };
        RunDir::check_new(&path)?;
        planned.push((config, path));
    }
    let mut runs: Vec<Run> = Vec::new();
    for (config, path) in planned {
        let run = Run::begin_like(config, &path, allow_unbounded, resources, runs.first())?;
        runs.push(run);
    }
    Ok(runs)
}

/// How long a requested stop waits for the next update before it interrupts evaluations as well.
const PATIENCE: Duration = Duration::from_secs(2);

/// Describes each run (what is trained on which data), with the warnings about the data.
pub fn introduction(runs: &[Run]) -> Result<String, Error> {
    let mut lines = Vec::new();
    for run in runs {
        lines.push(run.introduction()?);
    }
    Ok(lines.join("\n"))
}

/// Trains all runs to the end, or until `stop` is set; several runs share one device. Each is also logged to
/// `track`. `observer` receives the events, with a label of the run if there are several. A run that fails
/// does not stop the others: the result holds the runs that ended normally and the first failure.
pub fn train(
    runs: Vec<Run>,
    on: Option<&Accelerator>,
    track: Option<&Target>,
    stop: StopFlag,
    observer: &mut (dyn FnMut(&str, &Event<'_>) + Send),
) -> Result<(Vec<Finished>, Option<Error>), Error> {
    if runs.len() > 1 && on.is_none() {
        return Err(Error::Usage(
            "several runs at once are trained on a device: expected --device xla".into(),
        ));
    }
    if let Some(on) = on {
        runs.iter().try_for_each(|run| on.check(run.config()))?;
    }
    // All runs stop after the same update, so that they can be resumed together.
    let flags: Vec<StopFlag> = runs.iter().map(|_| StopFlag::new()).collect();
    let raise = {
        let (stop, flags) = (stop.clone(), flags.clone());
        move || flags.iter().filter(|_| stop.is_set()).for_each(StopFlag::set)
    };
    let group = on.map(|on| (Group::with(&on.device, runs.len(), raise.clone()), on.with_data));
    let mut ready = Vec::new();
    for run in runs {
        let tracker = Tracker::of_run(track, &run)?;
        let seed = run.config().seed;
        let run = match &group {
            Some((group, with_data)) => run.on(group, *with_data)?,
            None => run,
        };
        ready.push((run, tracker, seed));
    }
    let outcomes = match <[_; 1]>::try_from(ready) {
        Ok([(run, tracker, _)]) => vec![one(run, tracker, stop, &mut |event| observer("", event))],
        Err(ready) => {
            let observer = Mutex::new(observer);
            let tell = |run: &str, event: &Event<'_>| {
                (*observer.lock().unwrap_or_else(PoisonError::into_inner))(run, event);
            };
            std::thread::scope(|scope| {
                let mut threads = Vec::new();
                for ((run, tracker, seed), flag) in ready.into_iter().zip(flags) {
                    let (tell, name) = (&tell, format!("seed {seed}  "));
                    threads
                        .push(scope.spawn(move || one(run, tracker, flag, &mut |event| tell(&name, event))));
                }
                let mut asked: Option<Instant> = None;
                while !threads.iter().all(|thread| thread.is_finished()) {
                    std::thread::sleep(Duration::from_millis(50));
                    if stop.is_set() && asked.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                        raise();
                    }
                }
                let ended = "a thread of training ended before its time";
                let end = |thread: ScopedJoinHandle<'_, _>| {
                    thread.join().unwrap_or_else(|_| Err(Error::Numerical(ended.into())))
                };
                threads.into_iter().map(end).collect()
            })
        }
    };
    let (mut done, mut failed) = (Vec::new(), None);
    for outcome in outcomes {
        match outcome {
            Ok(finished) => done.push(finished),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    Ok((done, failed))
}

fn one(
    run: Run,
    mut tracker: Option<Tracker>,
    stop: StopFlag,
    tell: &mut dyn FnMut(&Event<'_>),
) -> Result<Finished, Error> {
    let outcome = run.train(stop, &mut |event| {
        tell(event);
        let told = tracker.as_mut().map_or_else(Vec::new, |tracker| tracker.observe(event));
        told.into_iter().for_each(|warning| tell(&Event::Warning(warning)));
    });
    let told = tracker.map_or_else(Vec::new, |tracker| tracker.finish(&outcome));
    told.into_iter().for_each(|warning| tell(&Event::Warning(warning)));
    outcome
}

/// The results of several runs as one JSON object.
#[derive(Debug, Serialize)]
pub struct Results<'a> {
    runs: Vec<NamedResult<'a>>,
}

#[derive(Debug, Serialize)]
struct NamedResult<'a> {
    run: &'a Path,
    #[serde(flatten)]
    result: &'a RunResult,
}

impl<'a> Results<'a> {
    /// These results, each with its run's directory.
    pub fn of(done: &'a [Finished]) -> Self {
        Results { runs: done.iter().map(|one| NamedResult { run: &one.run, result: &one.result }).collect() }
    }
}

/// The results, one run per line.
pub fn lines(done: &[Finished]) -> String {
    let lines = done.iter().map(|one| format!("{}: {one}", one.run.display()));
    lines.collect::<Vec<_>>().join("\n")
}

/// Fails if a run stopped early, with the command that resumes it.
pub fn stopped(done: &[Finished], steps: u64) -> Result<(), Error> {
    let stopped: Vec<&Finished> = done.iter().filter(|one| !one.result.finished).collect();
    let Some(first) = stopped.first() else { return Ok(()) };
    let runs: Vec<String> = stopped.iter().map(|one| one.run.display().to_string()).collect();
    let on = if runs.len() > 1 { " --device xla" } else { "" };
    Err(Error::Stopped(format!(
        "stopped after step {} of {steps}; `album resume {}{on}` continues",
        first.result.steps,
        runs.join(" ")
    )))
}
