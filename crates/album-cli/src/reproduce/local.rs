//! Runs side by side on this machine, each in a process of its own.

use super::plan::{Plan, Planned, Work};
use super::results::{FailureNote, Results, State};
use album::Error as Failure;
use album::{Problem, Resources, processors};
use album_base::number::seconds;
use album_base::progress::{self, Amount, MultiProgress, ProgressBar};
use album_train::StopFlag;
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Between two looks at the processes.
const LOOK: Duration = Duration::from_millis(100);
const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

/// What the executor may use.
pub struct Limits {
    /// Runs side by side; by cores and memory if not given.
    pub jobs: Option<usize>,
    /// Memory in GiB; what is available if not given.
    pub memory: Option<f64>,
}

/// A share of the machine for each of several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Runs side by side.
    pub jobs: usize,
    /// Threads of each.
    pub threads: usize,
    /// Processes with environments of each.
    pub workers: usize,
}

/// Divides the machine: one run for each core, because two runs with a thread each are faster than one with two after
/// the other; fewer where memory is short.
pub fn share(plan: &Plan, waiting: usize, limits: &Limits, resources: &Resources) -> Result<Share, Failure> {
    let cores = processors();
    let alone = plan.runs.iter().any(|run| matches!(run.work, Work::Command(_)));
    let mut jobs = match limits.jobs {
        Some(jobs) => jobs.max(1),
        // A command may measure time, so nothing runs beside it.
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
                return Err(Failure::Config(format!(
                    "a run of {} needs about {most:.1} GiB of memory, and there are {budget:.1}; nothing was started. \
                     --memory GIB sets the budget",
                    plan.name()
                )));
            }
            if fit < jobs {
                eprintln!(
                    "{fit} runs side by side instead of {jobs}: each needs about {most:.1} GiB of {budget:.1}"
                );
                jobs = fit;
            }
        }
    }
    let jobs = jobs.min(waiting.max(1));
    let each = (cores / jobs).max(1);
    let or = |asked: usize| if asked == 0 { each } else { asked };
    Ok(Share { jobs, threads: or(resources.threads), workers: or(resources.workers) })
}

/// Networks, optimiser and batches of the largest agent at the paper's sizes, generously.
const RUN_GIB: f64 = 0.4;
/// A Python with MuJoCo.
const WORKER_GIB: f64 = 0.4;
/// An npz file is compressed and its columns are converted while they are read.
const COPIES: f64 = 3.0;

fn size_of(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |data| if data.is_file() { data.len() } else { 0 })
}

/// Memory that programs can have, where the system tells; a tenth is left to others.
fn available_gib() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemAvailable:"))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(0.9 * kib * 1024.0 / GIB)
}

struct Job<'a> {
    run: &'a Planned,
    child: Child,
    bar: ProgressBar,
    since: Instant,
}

/// Does every run of a plan that is not finished; a run that fails stops no other.
///
/// `arguments` are those of the command itself, to which `--run ID` is added.
pub fn execute(
    plan: &Plan,
    results: &Results,
    arguments: &[String],
    limits: &Limits,
    resources: &Resources,
) -> Result<(), Failure> {
    let stop = StopFlag::on_signals()?;
    let open = |run: &&Planned| !matches!(results.state(run), State::Finished);
    let mut queue: VecDeque<&Planned> = plan.runs.iter().filter(open).collect();
    let share = share(plan, queue.len(), limits, resources)?;
    results.create()?;
    if queue.is_empty() {
        eprintln!("{}: all {} runs are finished already", plan.name(), plan.runs.len());
        return Ok(());
    }
    eprintln!(
        "{}: {} of {} runs to do, {} side by side with {} thread{} each",
        plan.name(),
        queue.len(),
        plan.runs.len(),
        share.jobs,
        share.threads,
        if share.threads == 1 { "" } else { "s" }
    );
    let screen = Screen::new(plan);
    // What was done before says nothing about the time to go.
    screen.overall.set_position(plan.runs.iter().map(|run| steps_done(run, results)).sum());
    screen.overall.reset_eta();
    let mut jobs: Vec<Job<'_>> = Vec::new();
    // What other processes are at work on: looked at again later, so that no run is done twice.
    let mut elsewhere: Vec<&Planned> = Vec::new();
    let mut asked = false;
    loop {
        while jobs.len() < share.jobs && !stop.is_set() {
            let Some(run) = queue.pop_front() else { break };
            match results.state(run) {
                State::Finished => {}
                State::Running => elsewhere.push(run),
                _ => jobs.push(start(run, results, arguments, share, resources, &screen)?),
            }
        }
        let mut k = 0;
        while k < jobs.len() {
            match jobs[k].child.try_wait().map_err(Failure::io(&results.log(&jobs[k].run.id)))? {
                None => {
                    jobs[k].bar.set_position(results.progress(&jobs[k].run.id).step);
                    k += 1;
                }
                Some(status) => {
                    let job = jobs.swap_remove(k);
                    screen.remove(&job.bar);
                    // Another process was quicker to take it.
                    if !status.success() && matches!(results.state(job.run), State::Running) {
                        elsewhere.push(job.run);
                    } else {
                        ended(&job, status.code(), results, &screen)?;
                    }
                }
            }
        }
        elsewhere.retain(|run| match results.state(run) {
            State::Running => true,
            State::Finished | State::Failed(_) => false,
            State::Waiting | State::Interrupted => {
                queue.push_back(run);
                false
            }
        });
        screen.overall.set_position(plan.runs.iter().map(|run| steps_done(run, results)).sum());
        if stop.is_set() && !asked {
            asked = true;
            screen.say(format!("stopping {} runs; each saves its state", jobs.len()));
            for job in &jobs {
                terminate(&job.child);
            }
        }
        let over = stop.is_set() || queue.is_empty() && elsewhere.is_empty();
        if jobs.is_empty() && over {
            break;
        }
        std::thread::sleep(LOOK);
    }
    screen.overall.finish_and_clear();
    if stop.is_set() {
        return Err(Failure::Stopped("stopped; the same command goes on".into()));
    }
    Ok(())
}

fn steps_done(run: &Planned, results: &Results) -> u64 {
    match results.state(run) {
        State::Finished => run.steps(),
        _ => results.progress(&run.id).step.min(run.steps()),
    }
}

fn start<'a>(
    run: &'a Planned,
    results: &Results,
    arguments: &[String],
    share: Share,
    resources: &Resources,
    screen: &Screen,
) -> Result<Job<'a>, Failure> {
    let path = results.log(&run.id);
    let log = OpenOptions::new().create(true).append(true).open(&path).map_err(Failure::io(&path))?;
    let errors = log.try_clone().map_err(Failure::io(&path))?;
    let album = std::env::current_exe().map_err(Failure::io(Path::new("album")))?;
    let mut command = Command::new(&album);
    command
        .args(arguments)
        .args(["--run", &run.id])
        .args(["--threads", &share.threads.to_string(), "--workers", &share.workers.to_string()])
        .args(["--parent", &std::process::id().to_string()])
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors);
    if let Some(python) = &resources.python {
        command.arg("--python").arg(python);
    }
    // Ctrl-C goes to the whole group of a terminal; the runs hear of it from here, once.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let child = command.spawn().map_err(Failure::io(&album))?;
    Ok(Job { run, child, bar: screen.add(run), since: Instant::now() })
}

fn ended(job: &Job<'_>, code: Option<i32>, results: &Results, screen: &Screen) -> Result<(), Failure> {
    let id = &job.run.id;
    let time = seconds(job.since.elapsed().as_secs_f64());
    match code {
        Some(0) => {
            let success = results.result(id).and_then(|result| result.success);
            let success = success.map_or(String::new(), |share| format!(", success {:.0} %", 100.0 * share));
            screen.say(format!("finished {id} in {time}{success}"));
        }
        Some(75) => screen.say(format!("stopped  {id} after {time}; its state is saved")),
        code => {
            // A run that could speak has noted why; one that was killed has not.
            if code.is_none() || !matches!(results.state(job.run), State::Failed(_)) {
                let message = match code {
                    Some(code) => format!("exit code {code}"),
                    None => "ended by a signal, perhaps for want of memory".into(),
                };
                let code = code.and_then(|code| u8::try_from(code).ok());
                results.fail(id, &FailureNote { code, message })?;
            }
            screen.say(format!("failed   {id} after {time}; log {}", results.log(id).display()));
        }
    }
    Ok(())
}

/// The last lines of a log.
pub fn tail(path: &Path, lines: usize) -> String {
    let mut text = Vec::new();
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(8192)))?;
        file.read_to_end(&mut text)?;
        Ok(text)
    };
    let text = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

#[cfg(unix)]
fn terminate(child: &Child) {
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        // It may have ended just now; then there is nobody to ask.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

#[cfg(not(unix))]
fn terminate(_child: &Child) {}

/// A run that loses its executor saves its state and stops, instead of going on unseen.
pub fn follow(parent: u32) {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Signal, getpid, getppid, kill_process, set_parent_process_death_signal};
        // Without it the run goes on to its end, which loses nothing.
        let _ = set_parent_process_death_signal(Some(Signal::TERM));
        let still = getppid().is_some_and(|pid| u32::try_from(pid.as_raw_nonzero().get()) == Ok(parent));
        if !still {
            let _ = kill_process(getpid(), Signal::TERM);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = parent;
}

/// A bar for all steps and one for each run at work; plain lines where standard error is no terminal.
struct Screen {
    all: MultiProgress,
    overall: ProgressBar,
}

impl Screen {
    fn new(plan: &Plan) -> Self {
        let all = MultiProgress::new();
        let overall = all.add(progress::bar(plan.runs.iter().map(Planned::steps).sum(), Amount::Share));
        overall.set_prefix("all");
        Screen { all, overall }
    }

    fn add(&self, run: &Planned) -> ProgressBar {
        let bar = self.all.insert_before(&self.overall, progress::bar(run.steps(), Amount::Count));
        bar.set_message(run.id.clone());
        bar
    }

    fn remove(&self, bar: &ProgressBar) {
        bar.finish_and_clear();
        self.all.remove(bar);
    }

    fn say(&self, line: String) {
        if self.overall.is_hidden() || self.all.println(&line).is_err() {
            eprintln!("{line}");
        }
    }
}
