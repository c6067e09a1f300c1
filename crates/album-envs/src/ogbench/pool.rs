//! Workers side by side, each with an episode of its own.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use album_data::ogbench::{Environment, TaskName};

use super::error::WorkerError;
use super::protocol::{self, Broken, Cause, Hello, Message, PROTOCOL};
use super::worker::{Report, Worker};
use crate::envs::Answer;
use crate::error::EnvError;
use crate::python::Python;

/// Workers may fail so often in a row before one gets ready; the next time is an error.
const FAILED_STARTS: usize = 3;

/// Lines of standard error that the reason of a loss quotes.
const QUOTED: usize = 3;

/// [`Pool::wait`] returns after this time even without an answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// How long workers may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// To get ready: to load the packages and make the environment.
    pub start: Duration,
    /// To answer a request.
    pub answer: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        // Packages on a network file system that is busy load slowly.
        Self { start: Duration::from_secs(300), answer: Duration::from_secs(120) }
    }
}

/// What a worker was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Request {
    Reset,
    Step,
}

/// A worker and where it stands.
struct Slot {
    /// Tells its reports from those of workers before it.
    id: u64,
    worker: Worker,
    /// Whether it has said hello.
    ready: bool,
    /// Whether an episode is under way.
    episode: bool,
    /// The request that has no answer yet.
    request: Option<Request>,
    /// Answers to come that nobody waits for any more.
    stale: usize,
    /// When to give it up.
    deadline: Option<Instant>,
}

/// As many workers as episodes run side by side.
pub(crate) struct Pool {
    python: Python,
    /// The environment's name in the package.
    name: String,
    environment: &'static Environment,
    limits: Limits,
    slots: Vec<Slot>,
    started: u64,
    sender: Sender<Report>,
    reports: Receiver<Report>,
    /// Empty until the first worker is ready.
    versions: BTreeMap<String, String>,
    /// Workers that were lost before they were ready, since one was.
    failed_starts: usize,
    request: Vec<u8>,
}

impl Pool {
    /// Starts the workers and waits until all are ready.
    pub fn new(task: &TaskName, workers: usize, python: &Python, limits: Limits) -> Result<Self, EnvError> {
        let (sender, reports) = mpsc::channel();
        let mut pool = Self {
            python: python.clone(),
            name: task.environment_id(),
            environment: task.environment(),
            limits,
            slots: Vec::new(),
            started: 0,
            sender,
            reports,
            versions: BTreeMap::new(),
            failed_starts: 0,
            request: Vec::new(),
        };
        for _ in 0..workers {
            let slot = pool.start()?;
            pool.slots.push(slot);
        }
        while pool.slots.iter().any(|slot| !slot.ready) {
            pool.listen(&mut Vec::new())?;
        }
        Ok(pool)
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn environment(&self) -> &'static Environment {
        self.environment
    }

    pub fn versions(&self) -> &BTreeMap<String, String> {
        &self.versions
    }

    pub fn processes(&self) -> Vec<u32> {
        self.slots.iter().map(|slot| slot.worker.id()).collect()
    }

    pub fn reset(&mut self, slot: usize, seed: u64, frames: bool) {
        protocol::reset(&mut self.request, seed, frames);
        self.slots[slot].episode = true;
        self.ask(slot, Request::Reset);
    }

    pub fn step(&mut self, slot: usize, action: &[f32]) -> Result<(), EnvError> {
        let expected = self.environment.action_dim;
        if action.len() != expected {
            return Err(EnvError::ActionLength { found: action.len(), expected });
        }
        if let Some(component) = action.iter().position(|x| !x.is_finite()) {
            return Err(EnvError::ActionValue { component, found: action[component] });
        }
        if !self.slots[slot].episode {
            return Err(EnvError::NoEpisode);
        }
        protocol::step(&mut self.request, action);
        self.ask(slot, Request::Step);
        Ok(())
    }

    /// Waits for answers; none come back if nothing was asked for, and now and then.
    pub fn wait(&mut self) -> Result<Vec<(usize, Answer)>, EnvError> {
        let mut answers = Vec::new();
        let start = Instant::now();
        while answers.is_empty()
            && start.elapsed() < PATIENCE
            && self.slots.iter().any(|slot| slot.request.is_some())
        {
            self.listen(&mut answers)?;
        }
        answers.sort_by_key(|&(slot, _)| slot);
        Ok(answers)
    }

    fn ask(&mut self, slot: usize, request: Request) {
        let slot = &mut self.slots[slot];
        if slot.request.replace(request).is_some() {
            slot.stale += 1;
        }
        if slot.ready {
            slot.deadline = Some(Instant::now() + self.limits.answer);
        }
        slot.worker.send(&self.request);
    }

    /// Takes every report there is, waiting a little for the first, and gives up workers
    /// that are past their time.
    fn listen(&mut self, answers: &mut Vec<(usize, Answer)>) -> Result<(), EnvError> {
        let now = Instant::now();
        let until = self.slots.iter().filter_map(|slot| slot.deadline).min();
        let patience = until.map_or(PATIENCE, |until| until.saturating_duration_since(now).min(PATIENCE));
        match self.reports.recv_timeout(patience) {
            Ok(report) => {
                self.take(report, answers)?;
                while let Ok(report) = self.reports.try_recv() {
                    self.take(report, answers)?;
                }
            }
            // The pool holds a sender, so the channel is never closed.
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        let now = Instant::now();
        for number in 0..self.slots.len() {
            let slot = &self.slots[number];
            if slot.deadline.is_some_and(|deadline| deadline <= now) {
                let (what, limit) = match slot.ready {
                    true => ("gave no answer", self.limits.answer),
                    false => ("was not ready", self.limits.start),
                };
                let reason = format!("its worker {what} within {} s", limit.as_secs_f64());
                self.lose(number, reason, answers)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, (id, message): Report, answers: &mut Vec<(usize, Answer)>) -> Result<(), EnvError> {
        // A worker that was given up may have said something before its end.
        let Some(number) = self.slots.iter().position(|slot| slot.id == id) else { return Ok(()) };
        let slot = &mut self.slots[number];
        let answer = match message {
            Ok(Message::Hello(hello)) if !slot.ready => return self.greet(number, hello),
            Ok(Message::Started { .. } | Message::Stepped(_)) if slot.stale > 0 => {
                slot.stale -= 1;
                return Ok(());
            }
            Ok(Message::Started { observation, frame }) if slot.request == Some(Request::Reset) => {
                Answer::Started { observation, frame }
            }
            Ok(Message::Stepped(step)) if slot.request == Some(Request::Step) => {
                if step.terminated || step.truncated {
                    slot.episode = false;
                }
                Answer::Stepped(step)
            }
            Ok(Message::Hello(_) | Message::Started { .. } | Message::Stepped(_)) => {
                return self.lose(number, "its worker spoke out of turn".into(), answers);
            }
            Ok(Message::Error(Cause::EpisodeLost, text)) => {
                return self.lose(number, format!("its worker failed with {text}"), answers);
            }
            Ok(Message::Error(Cause::NoModule, module)) => {
                let interpreter = self.python.interpreter().to_owned();
                return Err(WorkerError::NoModule { interpreter, module }.into());
            }
            Ok(Message::Error(Cause::Hopeless, text)) => return Err(self.failed(number, text)),
            Err(Broken::OtherProtocol(found)) => {
                let interpreter = self.python.interpreter().to_owned();
                return Err(WorkerError::OtherProtocol { interpreter, found, expected: PROTOCOL }.into());
            }
            Err(Broken::Garbage(text)) => {
                return self.lose(number, format!("its worker sent nonsense: {text}"), answers);
            }
            Err(Broken::Ended) => return self.lose(number, "its worker ended".into(), answers),
        };
        slot.request = None;
        slot.deadline = None;
        answers.push((number, answer));
        Ok(())
    }

    fn greet(&mut self, number: usize, hello: Hello) -> Result<(), EnvError> {
        let expected = self.environment;
        for (what, found, expected) in [
            ("numbers in an observation", hello.observation_dim, expected.observation_dim),
            ("numbers in an action", hello.action_dim, expected.action_dim),
            ("horizon", hello.horizon, expected.horizon),
        ] {
            if found != expected {
                let environment = self.name.clone();
                return Err(WorkerError::OtherEnvironment { environment, what, found, expected }.into());
            }
        }
        self.versions = hello.versions;
        self.failed_starts = 0;
        let slot = &mut self.slots[number];
        slot.ready = true;
        // What it was asked for meanwhile starts only now.
        slot.deadline = slot.request.map(|_| Instant::now() + self.limits.answer);
        Ok(())
    }

    /// Replaces a worker, and tells of it if it was asked for something.
    fn lose(
        &mut self,
        number: usize,
        reason: String,
        answers: &mut Vec<(usize, Answer)>,
    ) -> Result<(), EnvError> {
        let slot = &mut self.slots[number];
        let (status, said) = slot.worker.end();
        let mut reason = match status {
            Some(status) => format!("{reason} ({status})"),
            None => reason,
        };
        self.failed_starts += usize::from(!slot.ready);
        // If none was ever ready, it is no accident.
        if self.versions.is_empty() || self.failed_starts > FAILED_STARTS {
            let reason = format!("no worker could be started: {reason}");
            return Err(WorkerError::Failed { environment: self.name.clone(), reason, said }.into());
        }
        if !said.is_empty() {
            let lines: Vec<&str> = said.lines().collect();
            let last = lines[lines.len().saturating_sub(QUOTED)..].join(" | ");
            reason = format!("{reason}, its last lines: {last}");
        }
        let asked = slot.request.is_some();
        self.slots[number] = self.start()?;
        if asked {
            answers.push((number, Answer::Lost { reason }));
        }
        Ok(())
    }

    fn failed(&mut self, number: usize, reason: String) -> EnvError {
        let (_, said) = self.slots[number].worker.end();
        WorkerError::Failed { environment: self.name.clone(), reason, said }.into()
    }

    fn start(&mut self) -> Result<Slot, EnvError> {
        self.started += 1;
        let id = self.started;
        let dim = self.environment.observation_dim;
        let worker =
            Worker::start(&self.python, &self.name, dim, id, self.sender.clone()).map_err(|source| {
                WorkerError::NotStarted { interpreter: self.python.interpreter().to_owned(), source }
            })?;
        let deadline = Some(Instant::now() + self.limits.start);
        Ok(Slot { id, worker, ready: false, episode: false, request: None, stale: 0, deadline })
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // All at once, so that none waits for the one before it.
        for slot in &mut self.slots {
            slot.worker.hang_up();
        }
    }
}
