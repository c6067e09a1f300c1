//! Episodes in worker processes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::interpreter::Python;
use super::protocol::{self, Hello, Message};
use super::suites::Suite;
use super::workers::{Event, Limits, OUT_OF_TURN, Workers};
use crate::env::EnvShape;
use crate::error::EnvError;
use crate::pool::{Answer, EnvPool};

/// Environments per worker. It steps one while the answer of the other travels, the policy acts and the next
/// action comes back.
const ENVIRONMENTS: usize = 2;

/// [`EnvPool::wait`] returns after this time even without an answer.
const PATIENCE: Duration = Duration::from_millis(500);

/// The request of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Request {
    Reset,
    Step,
}

/// The state of a slot.
#[derive(Debug, Default)]
struct Slot {
    episode: Episode,
    /// The unanswered request.
    request: Option<Request>,
    /// Number of pending answers to abandoned requests.
    stale: usize,
}

#[derive(Debug, Default)]
enum Episode {
    #[default]
    None,
    /// In progress, with at most this many steps left.
    Running(usize),
    /// Its worker died without a pending request. The reason answers the next step.
    Lost(String),
}

/// Environments of a Python [`Suite`] in worker processes, two per process.
///
/// With `n` workers, slot `s` is environment `s / n` of worker `s % n`: with fewer episodes than workers,
/// each episode has a worker to itself. A worker that dies or exceeds its [`Limits`] is replaced, and its
/// episodes are reported as [`Answer::Lost`].
#[derive(Debug)]
pub struct WorkerPool {
    workers: Workers,
    shape: EnvShape,
    versions: BTreeMap<String, String>,
    slots: Vec<Slot>,
    /// Answers that do not come from a worker.
    answers: Vec<(usize, Answer)>,
    request: Vec<u8>,
}

impl WorkerPool {
    /// Starts workers and waits until all are ready.
    pub fn new(suite: Suite, workers: usize, python: &Python, limits: Limits) -> Result<Self, EnvError> {
        let mut workers = Workers::start(suite, workers, python, limits)?;
        while !workers.all_ready() {
            workers.listen(PATIENCE);
            while workers.next()?.is_some() {}
        }
        let hello = workers.hello().cloned();
        let Hello { shape, versions } = hello.unwrap_or_default();
        Ok(Self {
            shape,
            versions: versions.into_iter().collect(),
            slots: std::iter::repeat_with(Slot::default).take(ENVIRONMENTS * workers.len()).collect(),
            answers: Vec::new(),
            request: Vec::new(),
            workers,
        })
    }

    /// The slots of a worker.
    fn slots_of(&self, worker: usize) -> impl Iterator<Item = usize> + use<> {
        (worker..self.slots.len()).step_by(self.workers.len())
    }

    /// Maximum number of steps that a worker still has to do.
    fn work(&self, worker: usize) -> usize {
        let left = |slot: usize| match self.slots[slot].episode {
            Episode::Running(left) => left,
            Episode::None | Episode::Lost(_) => 0,
        };
        self.slots_of(worker).map(left).sum()
    }

    fn ask(&mut self, number: usize, request: Request) {
        // An uncollected answer belongs to a request that this one replaces.
        self.answers.retain(|&(slot, _)| slot != number);
        let slot = &mut self.slots[number];
        slot.stale += usize::from(slot.request.replace(request).is_some());
        self.workers.send(number % self.workers.len(), &self.request);
    }

    fn take(
        &mut self,
        worker: usize,
        event: Event,
        answers: &mut Vec<(usize, Answer)>,
    ) -> Result<(), EnvError> {
        let (environment, to, answer) = match event {
            Event::Ready => return Ok(()),
            Event::Lost { reason } => {
                self.lose(worker, &reason, answers);
                return Ok(());
            }
            Event::Said(Message::Started { environment, observation, frame }) => {
                (environment, Request::Reset, Answer::Started { observation, frame })
            }
            Event::Said(Message::Stepped { environment, step }) => {
                (environment, Request::Step, Answer::Stepped(step))
            }
            Event::Said(_) => return self.out_of_turn(worker, answers),
        };
        match self.slots_of(worker).nth(environment) {
            Some(slot) if self.slots[slot].stale > 0 => self.slots[slot].stale -= 1,
            Some(slot) if self.slots[slot].request == Some(to) => {
                self.slots[slot].request = None;
                if matches!(&answer, Answer::Stepped(step) if step.terminated || step.truncated) {
                    self.slots[slot].episode = Episode::None;
                }
                answers.push((slot, answer));
            }
            _ => return self.out_of_turn(worker, answers),
        }
        Ok(())
    }

    fn out_of_turn(&mut self, worker: usize, answers: &mut Vec<(usize, Answer)>) -> Result<(), EnvError> {
        let reason = self.workers.replace(worker, OUT_OF_TURN.to_owned())?;
        self.lose(worker, &reason, answers);
        Ok(())
    }

    /// Reports the loss of a worker to each of its slots, as the answer to the current or next request.
    fn lose(&mut self, worker: usize, reason: &str, answers: &mut Vec<(usize, Answer)>) {
        for slot in self.slots_of(worker) {
            let lost = std::mem::take(&mut self.slots[slot]);
            match lost.episode {
                _ if lost.request.is_some() => {
                    answers.push((slot, Answer::Lost { reason: reason.to_owned() }));
                }
                Episode::None => {}
                Episode::Running(_) => self.slots[slot].episode = Episode::Lost(reason.to_owned()),
                Episode::Lost(before) => self.slots[slot].episode = Episode::Lost(before),
            }
        }
    }
}

impl EnvPool for WorkerPool {
    fn shape(&self) -> &EnvShape {
        &self.shape
    }

    fn slots(&self) -> usize {
        self.slots.len()
    }

    fn versions(&self) -> &BTreeMap<String, String> {
        &self.versions
    }

    fn processes(&self) -> Vec<u32> {
        self.workers.processes()
    }

    fn is_next(&self, slot: usize, waiting: usize) -> bool {
        let own = self.work(slot % self.workers.len());
        let sooner = (0..self.workers.len()).filter(|&worker| self.work(worker) < own).count();
        sooner < waiting
    }

    fn reset(&mut self, slot: usize, seed: u64, frames: bool) -> Result<(), EnvError> {
        protocol::reset(&mut self.request, slot / self.workers.len(), seed, frames);
        self.slots[slot].episode = Episode::Running(self.shape.horizon);
        self.ask(slot, Request::Reset);
        Ok(())
    }

    fn step(&mut self, slot: usize, action: &[f32]) -> Result<(), EnvError> {
        self.shape.check_action(action)?;
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
        protocol::step(&mut self.request, slot / self.workers.len(), action, &self.shape.actions);
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
            self.workers.listen(PATIENCE);
            while let Some((worker, event)) = self.workers.next()? {
                self.take(worker, event, &mut answers)?;
            }
        }
        answers.sort_by_key(|&(slot, _)| slot);
        Ok(answers)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use album_data::ActionSpace;

    /// A suite without a fixed shape: the first worker reports it, and later ones must agree.
    #[test]
    fn workers_tell_the_shape_of_their_environment() {
        let folder = tempfile::tempdir().unwrap();
        let (script, once) = (folder.path().join("python"), folder.path().join("once"));
        // Each takes a reset and exits. The first has 2-dimensional observations, the second 3-dimensional
        // ones.
        let text = format!(
            r"
            mkdir {} 2>/dev/null && dim=2 || dim=3
            printf '\001\051\000\000\000ALBUMENV\004\000\000\000\00'$dim'\000\000\000\001\000\000\000\144\000\000\000\004\000\000\000toys 1.0\nmu 4'
            head -c 21 >/dev/null",
            once.display()
        );
        album_testing::script(&script, &text);
        let suite = Suite {
            name: "toys".into(),
            setup: "toys",
            file: "toys.py",
            source: "",
            arguments: Vec::new(),
            expected: None,
        };
        let limits = Limits { start: Duration::from_secs(20), answer: Duration::from_secs(20) };
        let mut pool = loop {
            // A file that was just written can be busy for a moment while another test forks.
            match WorkerPool::new(suite.clone(), 1, &Python::at(&script), limits) {
                Err(e) if e.to_string().contains("busy") => std::thread::sleep(Duration::from_millis(20)),
                pool => break pool.unwrap(),
            }
        };
        let actions = ActionSpace::Discrete { n: 4 };
        assert_eq!(pool.shape(), &EnvShape { observation_dim: 2, actions, horizon: 100 });
        assert_eq!(pool.versions()["toys"], "1.0");
        pool.reset(0, 1, false).unwrap();
        let answer = |pool: &mut WorkerPool| loop {
            match pool.wait() {
                Ok(mut answers) if !answers.is_empty() => break Ok(answers.remove(0).1),
                Ok(_) => {}
                Err(e) => break Err(e.to_string()),
            }
        };
        assert!(matches!(answer(&mut pool), Ok(Answer::Lost { .. })));
        pool.reset(0, 1, false).unwrap();
        let error = answer(&mut pool).unwrap_err();
        assert!(error.contains("toys: found 3 as observation dimension, expected 2"), "{error}");
    }
}
