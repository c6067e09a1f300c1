//! Recording with several processes, resuming where the last attempt stopped.

use std::collections::VecDeque;
use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::Duration;

use album_base::atomic;

use super::chunks::{Chunk, join};
use super::{Recipe, RecordError, Split};
use crate::python::protocol::{Hello, Message, record_request};
use crate::python::workers::{Event as WorkerEvent, OUT_OF_TURN, Workers};
use crate::python::{Limits, Python, Suite};
use crate::recording::work;

/// Number of processes that may fail on the same chunk.
const LOSSES: usize = 3;

/// How often the stop request is checked.
const POLL: Duration = Duration::from_millis(100);

/// Progress of a recording.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Number of episodes recorded so far.
    Recorded {
        /// Recorded episodes of both splits.
        episodes: usize,
        /// Total number of episodes.
        of: usize,
    },
    /// A process died or hung; another one repeats its chunk.
    Lost {
        /// How it ended, and its last lines on standard error.
        reason: &'a str,
    },
    /// A file is being joined from its chunks.
    Writing {
        /// The file.
        path: &'a Path,
    },
}

/// How a recording ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Both files are complete.
    Done {
        /// Versions of the packages that recorded the missing episodes.
        packages: String,
    },
    /// It was stopped; complete chunks are kept.
    Stopped {
        /// Episodes in complete chunks.
        episodes: usize,
        /// Total number of episodes.
        of: usize,
    },
}

/// Records the missing files of a recipe.
pub struct Recorder<'a> {
    /// The recipe.
    pub recipe: &'a Recipe,
    /// Folder for the files.
    pub folder: &'a Path,
    /// A Python with `ogbench`.
    pub python: &'a Python,
    /// Number of processes.
    pub workers: NonZero<usize>,
    /// Episodes per chunk, the most that an interruption loses per process.
    pub chunk: NonZero<usize>,
    /// How long a process may take to start, and to record one episode.
    pub limits: Limits,
    /// Polled several times a second.
    pub stop: &'a dyn Fn() -> bool,
    /// Receives progress events.
    pub observer: &'a mut dyn FnMut(Event<'_>),
}

impl std::fmt::Debug for Recorder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (recipe, folder) = (&self.recipe, &self.folder);
        f.debug_struct("Recorder").field("recipe", recipe).field("folder", folder).finish_non_exhaustive()
    }
}

/// A chunk being recorded, and its episodes so far.
struct Job {
    chunk: Chunk,
    recorded: usize,
}

impl Recorder<'_> {
    /// Five episodes: about 15 s and a few megabytes.
    pub const CHUNK: NonZero<usize> = NonZero::new(5).unwrap();

    /// An episode takes seconds; on an overloaded machine, perhaps a minute.
    pub const LIMITS: Limits = Limits { start: Duration::from_secs(300), answer: Duration::from_secs(600) };

    /// Records until both files are complete, or until stopped.
    pub fn record(mut self) -> Result<Outcome, RecordError> {
        let mut missing = Vec::new();
        for split in [Split::Train, Split::Validation] {
            if !self.recipe.is_recorded(self.folder, split)? {
                missing.push(split);
            }
        }
        let work = self.recipe.work_folder(self.folder);
        fs::create_dir_all(&work).map_err(RecordError::io(&work))?;
        let _lock = work::lock(&work)?;

        let chunks: Vec<Chunk> =
            missing.iter().flat_map(|&split| Chunk::all(self.recipe, split, self.chunk.get())).collect();
        let of: usize = chunks.iter().map(|chunk| chunk.seeds.len()).sum();
        // Incomplete chunks are recorded again.
        let todo: VecDeque<Chunk> =
            chunks.iter().filter(|chunk| chunk.check(self.recipe, &work).is_err()).cloned().collect();
        let ran = self.run(todo, of, &work);
        if !matches!(ran, Ok(episodes) if episodes == of) && !has_chunks(&work)? {
            // There is nothing to resume.
            fs::remove_dir_all(&work).map_err(RecordError::io(&work))?;
        }
        let episodes = ran?;
        if episodes < of {
            return Ok(Outcome::Stopped { episodes, of });
        }
        let packages = packages(&work)?.unwrap_or_default();
        for split in missing {
            let path = self.recipe.file(self.folder, split);
            (self.observer)(Event::Writing { path: &path });
            let chunks: Vec<Chunk> = chunks.iter().filter(|chunk| chunk.split == split).cloned().collect();
            join(self.recipe, split, &chunks, &work, &packages, &path)?;
        }
        fs::remove_dir_all(&work).map_err(RecordError::io(&work))?;
        Ok(Outcome::Done { packages })
    }

    /// The suite of the processes, which read the expert from the work folder.
    fn suite(&self, work: &Path) -> Result<Suite, RecordError> {
        let Recipe { environment, kind, rows, expert, .. } = self.recipe;
        let kind = kind.to_string();
        Ok(match expert {
            None if self.recipe.needs_expert() => {
                return Err(RecordError::NoExpert { recipe: self.recipe.to_string() });
            }
            None => Suite::play(environment, &kind, *rows),
            Some(bytes) => {
                let path = work.join("expert.safetensors");
                atomic::write(&path, bytes).map_err(RecordError::io(&path))?;
                Suite::locomaze(environment, &kind, *rows, path.display().to_string())
            }
        })
    }

    /// Records chunks, and returns the number of episodes in complete chunks.
    fn run(&mut self, mut todo: VecDeque<Chunk>, of: usize, work: &Path) -> Result<usize, RecordError> {
        let mut complete = of - todo.iter().map(|chunk| chunk.seeds.len()).sum::<usize>();
        (self.observer)(Event::Recorded { episodes: complete, of });
        let suite = self.suite(work)?;
        let mut workers =
            Workers::start(suite, self.workers.get().min(todo.len()), self.python, self.limits)?;
        let mut jobs: Vec<Option<Job>> = (0..workers.len()).map(|_| None).collect();
        loop {
            for (number, job) in jobs.iter_mut().enumerate().filter(|(_, job)| job.is_none()) {
                if let Some(chunk) = todo.pop_front() {
                    workers.send(number, &record_request(&chunk.seeds, &work.join(&chunk.name)));
                    *job = Some(Job { chunk, recorded: 0 });
                }
            }
            // Dropping the workers ends them.
            if jobs.iter().all(Option::is_none) || (self.stop)() {
                return Ok(complete);
            }
            workers.listen(POLL);
            while let Some((number, event)) = workers.next()? {
                let reason = match (event, &mut jobs[number]) {
                    (WorkerEvent::Ready, _) => {
                        same_packages(work, &workers.hello().map(Hello::packages).unwrap_or_default())?;
                        continue;
                    }
                    (WorkerEvent::Said(Message::Recorded), Some(job)) => {
                        job.recorded += 1;
                        continue;
                    }
                    (WorkerEvent::Said(Message::Written), Some(job)) => {
                        match job.chunk.check(self.recipe, work) {
                            Ok(()) => {
                                complete += job.chunk.seeds.len();
                                jobs[number] = None;
                                continue;
                            }
                            Err(e) => workers.replace(number, format!("it wrote a bad chunk: {e}"))?,
                        }
                    }
                    (WorkerEvent::Said(_), _) => workers.replace(number, OUT_OF_TURN.to_owned())?,
                    (WorkerEvent::Lost { reason }, _) => reason,
                };
                let Some(Job { mut chunk, .. }) = jobs[number].take() else { continue };
                chunk.losses += 1;
                if chunk.losses == LOSSES {
                    return Err(RecordError::Lost { part: work.join(chunk.name), times: LOSSES, reason });
                }
                (self.observer)(Event::Lost { reason: &reason });
                todo.push_front(chunk);
            }
            let episodes = complete + jobs.iter().flatten().map(|job| job.recorded).sum::<usize>();
            (self.observer)(Event::Recorded { episodes, of });
        }
    }
}

fn has_chunks(work: &Path) -> Result<bool, RecordError> {
    let entries = fs::read_dir(work).map_err(RecordError::io(work))?;
    Ok(entries.flatten().any(|entry| entry.path().extension().is_some_and(|extension| extension == "npz")))
}

fn packages_file(work: &Path) -> PathBuf {
    work.join("packages")
}

/// The packages that recorded the chunks in the folder.
fn packages(work: &Path) -> Result<Option<String>, RecordError> {
    let path = packages_file(work);
    match path.exists() {
        false => Ok(None),
        true => fs::read_to_string(&path).map(Some).map_err(RecordError::io(&path)),
    }
}

fn same_packages(work: &Path, found: &str) -> Result<(), RecordError> {
    match packages(work)? {
        None => {
            let path = packages_file(work);
            atomic::write(&path, found.as_bytes()).map_err(RecordError::io(&path))
        }
        Some(before) if before == found => Ok(()),
        Some(before) => Err(RecordError::OtherPackages {
            folder: work.to_path_buf(),
            found: before,
            expected: found.to_owned(),
        }),
    }
}
