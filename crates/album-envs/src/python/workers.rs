//! Supervised worker processes: one that dies or hangs is replaced.

use std::time::{Duration, Instant};

use album_data::ActionSpace;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::error::WorkerError;
use super::interpreter::Python;
use super::process::Process;
use super::protocol::{Broken, Cause, Hello, Message, PROTOCOL};
use super::suites::Suite;
use crate::env::EnvShape;
use crate::error::EnvError;

/// Number of consecutive failed starts that are tolerated.
const FAILED_STARTS: usize = 3;

/// Lines of standard error quoted in the reason of a loss.
const QUOTED: usize = 3;

/// Time for a worker to exit after its input is closed, before it is killed.
const GRACE: Duration = Duration::from_millis(300);

/// The reason for replacing a worker that sends an unrequested answer.
pub(crate) const OUT_OF_TURN: &str = "its worker spoke out of turn";

/// Time limits of workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Time to start: to load the packages and create the environment.
    pub start: Duration,
    /// Time to answer a request, or to record an episode.
    pub answer: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        // Packages load slowly from a busy network file system.
        Self { start: Duration::from_secs(300), answer: Duration::from_secs(120) }
    }
}

/// An event of a worker.
#[derive(Debug)]
pub(crate) enum Event {
    /// It has loaded its packages and created its environment.
    Ready,
    /// It answered.
    Said(Message),
    /// It died with all its pending requests. Its replacement is already starting.
    Lost {
        /// The reason.
        reason: String,
    },
}

/// A worker and its state.
#[derive(Debug)]
struct Worker {
    process: Process,
    /// Whether it has said hello.
    ready: bool,
    /// Number of pending requests.
    pending: usize,
    /// When to replace it.
    deadline: Option<Instant>,
}

/// Workers that run the same suite.
#[derive(Debug)]
pub(crate) struct Workers {
    python: Python,
    suite: Suite,
    limits: Limits,
    workers: Vec<Worker>,
    /// The hello of the last worker that became ready.
    hello: Option<Hello>,
    /// Workers lost during start-up since one became ready.
    failed_starts: usize,
    /// Workers whose buffers may hold more messages.
    unheard: Vec<usize>,
}

impl Workers {
    /// Starts workers without waiting until they are ready. Requests may be sent at once.
    pub fn start(suite: Suite, count: usize, python: &Python, limits: Limits) -> Result<Self, EnvError> {
        let (python, workers, unheard) = (python.clone(), Vec::new(), Vec::new());
        let mut all = Self { python, suite, limits, workers, hello: None, failed_starts: 0, unheard };
        for _ in 0..count {
            let worker = all.spawn()?;
            all.workers.push(worker);
        }
        Ok(all)
    }

    pub fn len(&self) -> usize {
        self.workers.len()
    }

    /// The hello of a worker that became ready.
    pub fn hello(&self) -> Option<&Hello> {
        self.hello.as_ref()
    }

    pub fn all_ready(&self) -> bool {
        self.workers.iter().all(|worker| worker.ready)
    }

    pub fn processes(&self) -> Vec<u32> {
        self.workers.iter().map(|worker| worker.process.id()).collect()
    }

    /// Sends a request.
    pub fn send(&mut self, number: usize, request: &[u8]) {
        let worker = &mut self.workers[number];
        worker.pending += 1;
        if worker.ready && worker.pending == 1 {
            worker.deadline = Some(Instant::now() + self.limits.answer);
        }
        worker.process.send(request);
    }

    /// Reads the output of workers, waiting at most this long for the first.
    pub fn listen(&mut self, patience: Duration) {
        let now = Instant::now();
        let deadline = self.workers.iter().filter_map(|worker| worker.deadline).min();
        let patience = deadline.map_or(patience, |at| at.saturating_duration_since(now).min(patience));
        let timeout = Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: patience.subsec_nanos().into() };
        let outputs = self.workers.iter().map(|worker| worker.process.output());
        let mut outputs: Vec<PollFd<'_>> =
            outputs.map(|output| PollFd::from_borrowed_fd(output, PollFlags::IN)).collect();
        // An error, such as an interrupting signal, is transient: the next call retries.
        let _ = poll(&mut outputs, Some(&timeout));
        self.unheard.extend((0..outputs.len()).filter(|&number| !outputs[number].revents().is_empty()));
        for &number in &self.unheard {
            self.workers[number].process.read();
        }
    }

    /// The next event and its worker, if there is one.
    pub fn next(&mut self) -> Result<Option<(usize, Event)>, EnvError> {
        while let Some(&number) = self.unheard.last() {
            match self.workers[number].process.next() {
                Some(message) => return self.hear(number, message).map(|event| Some((number, event))),
                None => drop(self.unheard.pop()),
            }
        }
        let now = Instant::now();
        let late = |worker: &Worker| worker.deadline.is_some_and(|deadline| deadline <= now);
        let Some(number) = self.workers.iter().position(late) else { return Ok(None) };
        let (what, limit) = match self.workers[number].ready {
            true => ("gave no answer", self.limits.answer),
            false => ("was not ready", self.limits.start),
        };
        let reason = format!("its worker {what} within {} s", limit.as_secs_f64());
        let reason = self.replace(number, reason)?;
        Ok(Some((number, Event::Lost { reason })))
    }

    /// Replaces a worker, and returns the reason with its last lines. Its pending requests are lost.
    pub fn replace(&mut self, number: usize, reason: String) -> Result<String, EnvError> {
        let worker = &mut self.workers[number];
        let (status, said) = worker.process.end();
        let mut reason = match status {
            Some(status) => format!("{reason} ({status})"),
            None => reason,
        };
        self.failed_starts += usize::from(!worker.ready);
        // If no worker was ever ready, the failure is systematic.
        if self.hello.is_none() || self.failed_starts > FAILED_STARTS {
            let (environment, interpreter) = (self.suite.name.clone(), self.python.interpreter().to_owned());
            return Err(WorkerError::NoneReady {
                setup: self.suite.setup,
                environment,
                interpreter,
                reason,
                said,
            }
            .into());
        }
        if !said.is_empty() {
            let lines: Vec<&str> = said.lines().collect();
            let last = lines[lines.len().saturating_sub(QUOTED)..].join(" | ");
            reason = format!("{reason}, its last lines: {last}");
        }
        self.workers[number] = self.spawn()?;
        Ok(reason)
    }

    fn hear(&mut self, number: usize, message: Result<Message, Broken>) -> Result<Event, EnvError> {
        let worker = &mut self.workers[number];
        let reason = match message {
            Ok(Message::Hello(hello)) if !worker.ready => return self.greet(number, hello),
            Ok(message @ (Message::Started { .. } | Message::Stepped { .. } | Message::Written))
                if worker.ready && worker.pending > 0 =>
            {
                worker.pending -= 1;
                // The next request was queued behind this one, so its time starts now.
                worker.deadline = (worker.pending > 0).then(|| Instant::now() + self.limits.answer);
                return Ok(Event::Said(message));
            }
            Ok(Message::Recorded) if worker.ready && worker.pending > 0 => {
                worker.deadline = Some(Instant::now() + self.limits.answer);
                return Ok(Event::Said(Message::Recorded));
            }
            Ok(Message::Error(Cause::EpisodeLost, text)) => format!("its worker failed with {text}"),
            Ok(Message::Error(Cause::NoModule, module)) => {
                let interpreter = self.python.interpreter().to_owned();
                return Err(WorkerError::NoModule { setup: self.suite.setup, interpreter, module }.into());
            }
            Ok(Message::Error(Cause::Hopeless, reason)) => {
                let ((_, said), environment) = (worker.process.end(), self.suite.name.clone());
                return Err(WorkerError::Failed { environment, reason, said }.into());
            }
            Ok(_) => OUT_OF_TURN.to_owned(),
            Err(Broken::OtherProtocol(found)) => {
                let interpreter = self.python.interpreter().to_owned();
                return Err(WorkerError::OtherProtocol { interpreter, found, expected: PROTOCOL }.into());
            }
            Err(Broken::Garbage(text)) => format!("its worker sent garbage: {text}"),
            Err(Broken::Ended) => "its worker ended".to_owned(),
        };
        self.replace(number, reason).map(|reason| Event::Lost { reason })
    }

    fn greet(&mut self, number: usize, hello: Hello) -> Result<Event, EnvError> {
        let known = self.suite.expected.as_ref().or(self.hello.as_ref().map(|hello| &hello.shape));
        if let Some(expected) = known
            && let Some((what, found, expected)) = difference(&hello.shape, expected)
        {
            let environment = self.suite.name.clone();
            return Err(WorkerError::OtherEnvironment {
                setup: self.suite.setup,
                environment,
                what,
                found,
                expected,
            }
            .into());
        }
        self.hello = Some(hello);
        self.failed_starts = 0;
        let worker = &mut self.workers[number];
        worker.ready = true;
        // The time limit of requests sent meanwhile starts now.
        worker.deadline = (worker.pending > 0).then(|| Instant::now() + self.limits.answer);
        Ok(Event::Ready)
    }

    fn spawn(&self) -> Result<Worker, EnvError> {
        let process =
            Process::start(&self.python, &self.suite).map_err(|source| WorkerError::NotStarted {
                setup: self.suite.setup,
                interpreter: self.python.interpreter().to_owned(),
                source,
            })?;
        let deadline = Some(Instant::now() + self.limits.start);
        Ok(Worker { process, ready: false, pending: 0, deadline })
    }
}

/// The first dimension in which two environments differ.
fn difference(found: &EnvShape, expected: &EnvShape) -> Option<(&'static str, usize, usize)> {
    let choices = |shape: &EnvShape| match shape.actions {
        ActionSpace::Continuous { .. } => 0,
        ActionSpace::Discrete { n } => n,
    };
    [
        ("observation dimension", found.observation_dim, expected.observation_dim),
        ("discrete actions", choices(found), choices(expected)),
        ("action dimension", found.action_dim(), expected.action_dim()),
        ("horizon", found.horizon, expected.horizon),
    ]
    .into_iter()
    .find(|(_, found, expected)| found != expected)
}

impl Drop for Workers {
    fn drop(&mut self) {
        // All at once, so that their grace periods overlap.
        for worker in &mut self.workers {
            worker.process.hang_up();
        }
        let deadline = Instant::now() + GRACE;
        for worker in &mut self.workers {
            worker.process.end_by(deadline);
        }
    }
}
