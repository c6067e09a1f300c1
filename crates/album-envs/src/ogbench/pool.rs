//! Workers side by side, each with episodes of its own.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use album_data::ogbench::{Environment, TaskName};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::error::WorkerError;
use super::protocol::{self, Broken, Cause, Hello, Message, PROTOCOL};
use super::worker::Worker;
use crate::env::EnvSpec;
use crate::error::EnvError;
use crate::pool::{Answer, EnvPool};
use crate::python::Python;

/// Environments of a worker. While the answer of one travels, the policy acts and the next action comes
/// back, the worker steps the other.
const ENVIRONMENTS: usize = 2;

/// Workers may fail so often in a row before one gets ready; the next time is an error.
const FAILED_STARTS: usize = 3;

/// Lines of standard error that the reason of a loss quotes.
const QUOTED: usize = 3;

const OUT_OF_TURN: &str = "its worker spoke out of turn";

/// [`EnvPool::wait`] returns after this time even without an answer.
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
#[derive(Debug)]
struct Post {
    worker: Worker,
    /// Whether it has said hello.
    ready: bool,
    /// When to give it up.
    deadline: Option<Instant>,
}

/// Where an environment stands.
#[derive(Debug, Default)]
struct Slot {
    episode: Episode,
    /// The request that has no answer yet.
    request: Option<Request>,
    /// Answers to come that nobody waits for any more.
    stale: usize,
}

#[derive(Debug, Default)]
enum Episode {
    #[default]
    None,
    /// Under way, with at most so many steps to come.
    Running(usize),
    /// Its worker was lost while nothing was asked for. The reason is the answer to the next step.
    Lost(String),
}

/// Workers, and [`ENVIRONMENTS`] times as many slots. With `n` workers, slot `s` is environment `s / n` of
/// worker `s % n`: as long as there are fewer episodes than workers, each has a worker to itself.
#[derive(Debug)]
pub struct WorkerPool {
    python: Python,
    /// The environment's name in the package.
    name: String,
    environment: &'static Environment,
    limits: Limits,
    posts: Vec<Post>,
    slots: Vec<Slot>,
    /// Answers that no worker gives.
    answers: Vec<(usize, Answer)>,
    /// Empty until the first worker is ready.
    versions: BTreeMap<String, String>,
    /// Workers that were lost before they were ready, since one was.
    failed_starts: usize,
    request: Vec<u8>,
}

impl WorkerPool {
    /// Starts workers that run the package `ogbench`, and waits until all are ready.
    pub fn ogbench(
        task: &TaskName,
        workers: usize,
        python: &Python,
        limits: Limits,
    ) -> Result<Self, EnvError> {
        let mut pool = Self {
            python: python.clone(),
            name: task.environment_id(),
            environment: task.environment(),
            limits,
            posts: Vec::new(),
            slots: std::iter::repeat_with(Slot::default).take(ENVIRONMENTS * workers).collect(),
            answers: Vec::new(),
            versions: BTreeMap::new(),
            failed_starts: 0,
            request: Vec::new(),
        };
        for _ in 0..workers {
            let post = pool.start()?;
            pool.posts.push(post);
        }
        while pool.posts.iter().any(|post| !post.ready) {
            pool.listen(&mut Vec::new())?;
        }
        Ok(pool)
    }

    /// The slots of a worker.
    fn slots_of(&self, post: usize) -> impl Iterator<Item = usize> + use<> {
        (post..self.slots.len()).step_by(self.posts.len())
    }

    fn asked(&self, post: usize) -> bool {
        self.slots_of(post).any(|slot| self.slots[slot].request.is_some())
    }

    /// Steps that a worker has before it, at most.
    fn work(&self, post: usize) -> usize {
        let left = |slot: usize| match self.slots[slot].episode {
            Episode::Running(left) => left,
            Episode::None | Episode::Lost(_) => 0,
        };
        self.slots_of(post).map(left).sum()
    }

    fn ask(&mut self, number: usize, request: Request) {
        // An answer that nobody fetched is to a request that is void now.
        self.answers.retain(|&(slot, _)| slot != number);
        let at = number % self.posts.len();
        let idle = !self.asked(at);
        let (slot, post) = (&mut self.slots[number], &mut self.posts[at]);
        if slot.request.replace(request).is_some() {
            slot.stale += 1;
        }
        if post.ready && idle {
            post.deadline = Some(Instant::now() + self.limits.answer);
        }
        post.worker.send(&self.request);
    }

    /// Takes every message there is, waiting a little for the first, and gives up workers
    /// that are past their time.
    fn listen(&mut self, answers: &mut Vec<(usize, Answer)>) -> Result<(), EnvError> {
        let now = Instant::now();
        let until = self.posts.iter().filter_map(|post| post.deadline).min();
        let patience = until.map_or(PATIENCE, |until| until.saturating_duration_since(now).min(PATIENCE));
        for number in self.speaking(patience) {
            self.posts[number].worker.read();
            // A worker that is lost on the way is replaced by one that has said nothing.
            while let Some(message) = self.posts[number].worker.next() {
                self.take(number, message, answers)?;
            }
        }
        let now = Instant::now();
        for number in 0..self.posts.len() {
            let post = &self.posts[number];
            if post.deadline.is_some_and(|deadline| deadline <= now) {
                let (what, limit) = match post.ready {
                    true => ("gave no answer", self.limits.answer),
                    false => ("was not ready", self.limits.start),
                };
                let reason = format!("its worker {what} within {} s", limit.as_secs_f64());
                self.lose(number, reason, answers)?;
            }
        }
        Ok(())
    }

    /// Waits for workers that have something to say.
    fn speaking(&self, patience: Duration) -> Vec<usize> {
        let outputs = self.posts.iter().map(|post| post.worker.output());
        let mut outputs: Vec<PollFd<'_>> =
            outputs.map(|output| PollFd::from_borrowed_fd(output, PollFlags::IN)).collect();
        let patience =
            Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: patience.subsec_nanos().into() };
        // What goes wrong here, such as a signal that comes between, does not the next time.
        let _ = poll(&mut outputs, Some(&patience));
        (0..outputs.len()).filter(|&number| !outputs[number].revents().is_empty()).collect()
    }

    fn take(
        &mut self,
        number: usize,
        message: Result<Message, Broken>,
        answers: &mut Vec<(usize, Answer)>,
    ) -> Result<(), EnvError> {
        let (environment, to, answer) = match message {
            Ok(Message::Hello(hello)) if !self.posts[number].ready => return self.greet(number, hello),
            Ok(Message::Started { environment, observation, frame }) => {
                (environment, Request::Reset, Answer::Started { observation, frame })
            }
            Ok(Message::Stepped { environment, step }) => (environment, Request::Step, Answer::Stepped(step)),
            Ok(Message::Hello(_)) => return self.lose(number, OUT_OF_TURN.into(), answers),
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
        match self.slots_of(number).nth(environment) {
            Some(slot) if self.slots[slot].stale > 0 => self.slots[slot].stale -= 1,
            Some(slot) if self.slots[slot].request == Some(to) => {
                self.slots[slot].request = None;
                if matches!(&answer, Answer::Stepped(step) if step.terminated || step.truncated) {
                    self.slots[slot].episode = Episode::None;
                }
                answers.push((slot, answer));
            }
            _ => return self.lose(number, OUT_OF_TURN.into(), answers),
        }
        // What is left was waiting for its turn.
        self.posts[number].deadline = self.asked(number).then(|| Instant::now() + self.limits.answer);
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
        self.posts[number].ready = true;
        // What it was asked for meanwhile starts only now.
        self.posts[number].deadline = self.asked(number).then(|| Instant::now() + self.limits.answer);
        Ok(())
    }

    /// Replaces a worker. Its episodes are lost, and each slot is told so in answer to its request, if need be to the
    /// next one.
    fn lose(
        &mut self,
        number: usize,
        reason: String,
        answers: &mut Vec<(usize, Answer)>,
    ) -> Result<(), EnvError> {
        let post = &mut self.posts[number];
        let (status, said) = post.worker.end();
        let mut reason = match status {
            Some(status) => format!("{reason} ({status})"),
            None => reason,
        };
        self.failed_starts += usize::from(!post.ready);
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
        self.posts[number] = self.start()?;
        for slot in self.slots_of(number) {
            let lost = std::mem::take(&mut self.slots[slot]);
            match lost.episode {
                _ if lost.request.is_some() => answers.push((slot, Answer::Lost { reason: reason.clone() })),
                Episode::None => {}
                Episode::Running(_) => self.slots[slot].episode = Episode::Lost(reason.clone()),
                Episode::Lost(before) => self.slots[slot].episode = Episode::Lost(before),
            }
        }
        Ok(())
    }

    fn failed(&mut self, number: usize, reason: String) -> EnvError {
        let (_, said) = self.posts[number].worker.end();
        WorkerError::Failed { environment: self.name.clone(), reason, said }.into()
    }

    fn start(&mut self) -> Result<Post, EnvError> {
        let dim = self.environment.observation_dim;
        let worker = Worker::start(&self.python, &self.name, dim).map_err(|source| {
            WorkerError::NotStarted { interpreter: self.python.interpreter().to_owned(), source }
        })?;
        let deadline = Some(Instant::now() + self.limits.start);
        Ok(Post { worker, ready: false, deadline })
    }
}

impl EnvPool for WorkerPool {
    fn spec(&self) -> EnvSpec {
        let &Environment { observation_dim, action_dim, horizon, .. } = self.environment;
        EnvSpec { observation_dim, action_dim, horizon }
    }

    fn slots(&self) -> usize {
        self.slots.len()
    }

    fn versions(&self) -> &BTreeMap<String, String> {
        &self.versions
    }

    fn processes(&self) -> Vec<u32> {
        self.posts.iter().map(|post| post.worker.id()).collect()
    }

    fn is_next(&self, slot: usize, waiting: usize) -> bool {
        let own = self.work(slot % self.posts.len());
        let sooner = (0..self.posts.len()).filter(|&post| self.work(post) < own).count();
        sooner < waiting
    }

    fn reset(&mut self, slot: usize, seed: u64, frames: bool) -> Result<(), EnvError> {
        protocol::reset(&mut self.request, slot / self.posts.len(), seed, frames);
        self.slots[slot].episode = Episode::Running(self.environment.horizon);
        self.ask(slot, Request::Reset);
        Ok(())
    }

    fn step(&mut self, slot: usize, action: &[f32]) -> Result<(), EnvError> {
        let expected = self.environment.action_dim;
        if action.len() != expected {
            return Err(EnvError::ActionLength { found: action.len(), expected });
        }
        if let Some(component) = action.iter().position(|x| !x.is_finite()) {
            return Err(EnvError::ActionValue { component, found: action[component] });
        }
        match &mut self.slots[slot].episode {
            Episode::None => return Err(EnvError::NoEpisode),
            Episode::Lost(reason) => {
                let reason = std::mem::take(reason);
                self.slots[slot].episode = Episode::None;
                self.answers.push((slot, Answer::Lost { reason }));
                return Ok(());
            }
            Episode::Running(left) => *left = left.saturating_sub(1),
        }
        protocol::step(&mut self.request, slot / self.posts.len(), action);
        self.ask(slot, Request::Step);
        Ok(())
    }

    fn wait(&mut self) -> Result<Vec<(usize, Answer)>, EnvError> {
        let mut answers = std::mem::take(&mut self.answers);
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
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        // All at once, so that none waits for the one before it.
        for post in &mut self.posts {
            post.worker.hang_up();
        }
    }
}
