//! Parallel runs on this machine, each in its own process.

use super::{Assignment, Event, Executor, Outcome, arguments};
use crate::job::Job;
use crate::plan::{Plan, PlannedRun, Work};
use crate::results::{FailureNote, Results, State};
use album::{Error, Problem, Resources, processors};
use album_base::files::{self, Links};
use album_base::number::seconds;
use album_train::StopFlag;
use std::collections::{HashMap, VecDeque};
use std::fs::OpenOptions;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Polling interval of the processes.
const LOOK: Duration = Duration::from_millis(100);
const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

/// Executes runs on this machine.
#[derive(Clone, Debug)]
pub struct Local {
    /// Number of parallel runs; by cores and memory if not given.
    pub jobs: Option<usize>,
    /// Memory in GiB for all of them; the available memory if not given.
    pub memory: Option<f64>,
    /// Raised to make the runs save their state and stop.
    pub stop: StopFlag,
}

/// The resources of each of several parallel runs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Share {
    /// Number of parallel runs.
    jobs: usize,
    /// Threads per run.
    threads: usize,
    /// Environment processes per run.
    workers: usize,
}

/// Divides the machine: one run per core, because two single-threaded runs in parallel are faster than two
/// two-threaded ones in sequence; fewer if memory is short.
fn share(
    plan: &Plan,
    waiting: usize,
    limits: &Local,
    resources: &Resources,
    observer: &mut dyn FnMut(Event<'_>),
) -> Result<Share, Error> {
    let cores = processors();
    let alone = plan.runs.iter().any(|run| matches!(run.work, Work::Command(_)));
    let mut jobs = match limits.jobs {
        Some(jobs) => jobs.max(1),
        // A command may measure time, so nothing runs in parallel with it.
        None if alone => 1,
        None => (cores / resources.threads.max(1)).max(1),
    };
    let budget = limits.memory.or_else(available_gib);
    if let Some(budget) = budget {
        let need = plan.specs.iter().map(|(spec, _)| {
            let problem = Problem::from(spec.task);
            let size = problem.locate(spec.data.as_deref()).ok().map_or(0, |data| size_of(data.path()));
            let environments = if problem.is_native() { 0.0 } else { WORKER_GIB };
            RUN_GIB + environments + size as f64 / GIB * COPIES
        });
        let most = need.fold(0.0, f64::max);
        if most > 0.0 {
            let fit = (budget / most) as usize;
            if fit == 0 {
                return Err(Error::Config(format!(
                    "a run of {} needs about {most:.1} GiB of memory, and there are {budget:.1}; nothing was started. \
                     --memory GIB sets the budget",
                    plan.name()
                )));
            }
            if fit < jobs {
                observer(Event::Note(format!(
                    "{fit} runs in parallel instead of {jobs}: each needs about {most:.1} GiB of {budget:.1}"
                )));
                jobs = fit;
            }
        }
    }
    let jobs = jobs.min(waiting.max(1));
    let each = (cores / jobs).max(1);
    let asked_or_equal_share = |asked: usize| if asked == 0 { each } else { asked };
    Ok(Share {
        jobs,
        threads: asked_or_equal_share(resources.threads),
        workers: asked_or_equal_share(resources.workers),
    })
}

/// A generous bound on networks, optimiser and batches of the largest agent at the paper's sizes.
const RUN_GIB: f64 = 0.4;
/// A Python process with MuJoCo.
const WORKER_GIB: f64 = 0.4;
/// An npz file is compressed, and its columns are converted while being read.
const COPIES: f64 = 3.0;

fn size_of(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |data| if data.is_file() { data.len() } else { 0 })
}

/// Available memory, if the system reports it; a tenth is left to others.
fn available_gib() -> Option<f64> {
    Some(0.9 * album_base::machine::available()? as f64 / GIB)
}

struct Process<'a> {
    run: &'a PlannedRun,
    child: Child,
    since: Instant,
}

impl Executor for Local {
    fn execute(&self, work: &Assignment<'_>, observer: &mut dyn FnMut(Event<'_>)) -> Result<Outcome, Error> {
        let Assignment { plan, results, .. } = work;
        let mut queue: VecDeque<&PlannedRun> = work.open().into();
        let share = share(plan, queue.len(), self, work.resources, observer)?;
        results.create()?;
        if queue.is_empty() {
            let runs = plan.runs.len();
            observer(Event::Note(format!("{}: all {runs} runs are finished already", plan.name())));
            return Ok(Outcome::Done);
        }
        observer(Event::Note(format!(
            "{}: {} of {} runs to do, {} in parallel with {} thread{} each",
            plan.name(),
            queue.len(),
            plan.runs.len(),
            share.jobs,
            share.threads,
            if share.threads == 1 { "" } else { "s" }
        )));
        let resources = Resources {
            threads: share.threads,
            workers: share.workers,
            python: work.resources.python.clone(),
        };
        let mut steps = Steps::read(plan, &queue, results);
        observer(Event::Total(steps.total));
        let mut processes: Vec<Process<'_>> = Vec::new();
        // Runs that other processes work on: polled later, so that no run is done twice.
        let mut elsewhere: Vec<&PlannedRun> = Vec::new();
        let mut asked = false;
        loop {
            while processes.len() < share.jobs && !self.stop.is_set() {
                let Some(run) = queue.pop_front() else { break };
                match results.state(run) {
                    State::Finished => steps.set(run, run.steps()),
                    State::Running => elsewhere.push(run),
                    _ => {
                        processes.push(start(run, work, &resources)?);
                        observer(Event::Started(run));
                    }
                }
            }
            let mut k = 0;
            while k < processes.len() {
                let run = processes[k].run;
                let ended = processes[k].child.try_wait().map_err(Error::io(&results.log(&run.id)))?;
                steps.set(run, results.pace(&run.id).step);
                observer(Event::Step(run, steps.of(run)));
                let Some(status) = ended else {
                    k += 1;
                    continue;
                };
                let process = processes.swap_remove(k);
                observer(Event::Ended(run));
                // Another process took it first.
                if !status.success() && matches!(results.state(run), State::Running) {
                    elsewhere.push(run);
                } else {
                    observer(Event::Note(note(&process, status.code(), results)?));
                }
            }
            elsewhere.retain(|run| match results.state(run) {
                State::Running => {
                    steps.set(run, results.pace(&run.id).step);
                    true
                }
                State::Finished | State::Failed(_) => false,
                State::Waiting | State::Interrupted => {
                    queue.push_back(run);
                    false
                }
            });
            observer(Event::Total(steps.total));
            if self.stop.is_set() && !asked {
                asked = true;
                let running = processes.len();
                observer(Event::Note(format!("stopping {running} runs; each saves its state")));
                for process in &processes {
                    terminate(&process.child);
                }
            }
            let over = self.stop.is_set() || queue.is_empty() && elsewhere.is_empty();
            if processes.is_empty() && over {
                break;
            }
            std::thread::sleep(LOOK);
        }
        if self.stop.is_set() {
            return Err(Error::Stopped("stopped; the same command resumes the runs".into()));
        }
        Ok(Outcome::Done)
    }
}

/// Steps done by every run; only active runs are read again.
struct Steps<'a> {
    by_run: HashMap<&'a str, u64>,
    total: u64,
}

impl<'a> Steps<'a> {
    fn read(plan: &'a Plan, open: &VecDeque<&'a PlannedRun>, results: &Results) -> Self {
        let all: u64 = plan.runs.iter().map(PlannedRun::steps).sum();
        let to_do: u64 = open.iter().map(|run| run.steps()).sum();
        let mut steps = Steps { by_run: HashMap::new(), total: all - to_do };
        let listing = results.list();
        for run in open {
            if !matches!(listing.state(run), State::Waiting) {
                steps.set(run, results.pace(&run.id).step);
            }
        }
        steps
    }

    fn of(&self, run: &PlannedRun) -> u64 {
        self.by_run.get(run.id.as_str()).copied().unwrap_or(0)
    }

    fn set(&mut self, run: &'a PlannedRun, step: u64) {
        let step = step.min(run.steps());
        self.total = self.total - self.of(run) + step;
        self.by_run.insert(&run.id, step);
    }
}

fn start<'a>(
    run: &'a PlannedRun,
    work: &Assignment<'_>,
    resources: &Resources,
) -> Result<Process<'a>, Error> {
    let (path, file) = (work.results.log(&run.id), work.results.job(&run.id));
    Job::Run(run.clone()).write(work.results, &file)?;
    let options = OpenOptions::new().create(true).append(true).clone();
    let log = files::open_with(&options, &path, Links::Refuse).map_err(Error::io(&path))?;
    let errors = log.try_clone().map_err(Error::io(&path))?;
    let mut command = Command::new(work.album);
    command
        .args(arguments(&file, resources))
        .args(["--parent", &std::process::id().to_string()])
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors);
    // Ctrl-C reaches the whole process group of a terminal; in their own group, the runs are signalled only
    // from here, once.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let child = command.spawn().map_err(Error::io(work.album))?;
    Ok(Process { run, child, since: Instant::now() })
}

/// The message about a run that has ended. A killed run could not record its failure, so this does.
fn note(process: &Process<'_>, code: Option<i32>, results: &Results) -> Result<String, Error> {
    let id = &process.run.id;
    let time = seconds(process.since.elapsed().as_secs_f64());
    match code {
        Some(0) => {
            let success = results.result(id).and_then(|result| result.success);
            let success = success.map_or(String::new(), |share| format!(", success {:.0} %", 100.0 * share));
            Ok(format!("finished {id} in {time}{success}"))
        }
        Some(75) => Ok(format!("stopped  {id} after {time}; its state is saved")),
        code => {
            if code.is_none() || !matches!(results.state(process.run), State::Failed(_)) {
                let message = match code {
                    Some(code) => format!("exit code {code}"),
                    None => "killed by a signal, perhaps out of memory".into(),
                };
                let code = code.and_then(|code| u8::try_from(code).ok());
                results.fail(id, &FailureNote { code, message })?;
            }
            Ok(format!("failed   {id} after {time}; log {}", results.log(id).display()))
        }
    }
}

#[cfg(unix)]
fn terminate(child: &Child) {
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        // It may just have ended.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

#[cfg(not(unix))]
fn terminate(_child: &Child) {}

/// Makes a run that loses its executor save its state and stop, instead of continuing unattended.
pub fn follow(parent: u32) {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Signal, getpid, getppid, kill_process, set_parent_process_death_signal};
        // Without it the run continues to its end, which loses nothing.
        let _ = set_parent_process_death_signal(Some(Signal::TERM));
        let still = getppid().is_some_and(|pid| u32::try_from(pid.as_raw_nonzero().get()) == Ok(parent));
        if !still {
            let _ = kill_process(getpid(), Signal::TERM);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = parent;
}
