//! Recording with several processes, from where the last attempt stopped.

use std::collections::VecDeque;
use std::fs::{self, File, TryLockError};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use album_base::atomic;

use super::parts::{Chunk, join};
use super::worker::Worker;
use super::{Recipe, RecordError, Split};
use crate::python::Python;

/// Processes that may fail at one chunk.
const LOSSES: usize = 3;

/// How often the wish to stop is looked at.
const POLL: Duration = Duration::from_millis(100);

/// What happens on the way.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// This many episodes are there.
    Recorded {
        /// Of both datasets.
        episodes: usize,
        /// All that are to be recorded.
        of: usize,
    },
    /// A process died; another one repeats its chunk.
    Lost {
        /// How it ended, and its last words.
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
    /// Both files are there.
    Done {
        /// Versions of the packages that recorded what was missing.
        packages: String,
    },
    /// It was stopped; the chunks that are whole are kept.
    Stopped {
        /// Episodes in them.
        episodes: usize,
        /// All that are to be recorded.
        of: usize,
    },
}

/// Records the files of a recipe that are not there yet.
pub struct Recorder<'a> {
    /// What to record.
    pub recipe: &'a Recipe,
    /// Where the files go.
    pub folder: &'a Path,
    /// A Python that has `ogbench`.
    pub python: &'a Python,
    /// Number of processes.
    pub workers: NonZero<usize>,
    /// Episodes of a chunk, which is what an interruption loses at most per process.
    pub chunk: NonZero<usize>,
    /// Asked several times a second whether to stop.
    pub stop: &'a dyn Fn() -> bool,
    /// Is told what happens.
    pub observer: &'a mut dyn FnMut(Event<'_>),
}

impl Recorder<'_> {
    /// Five episodes: a quarter of a minute, and some megabytes.
    pub const CHUNK: NonZero<usize> = NonZero::new(5).unwrap();

    /// Records until both files are there, or until it is stopped.
    pub fn record(mut self) -> Result<Outcome, RecordError> {
        let mut missing = Vec::new();
        for split in [Split::Train, Split::Validation] {
            if !self.recipe.is_recorded(self.folder, split)? {
                missing.push(split);
            }
        }
        let work = self.recipe.work_folder(self.folder);
        fs::create_dir_all(&work).map_err(RecordError::io(&work))?;
        let _lock = lock(&work)?;

        let chunks: Vec<Chunk> =
            missing.iter().flat_map(|&split| Chunk::all(self.recipe, split, self.chunk.get())).collect();
        let of: usize = chunks.iter().map(|chunk| chunk.seeds.len()).sum();
        // Anything that is not a whole chunk is recorded again.
        let todo: VecDeque<Chunk> =
            chunks.iter().filter(|chunk| chunk.check(self.recipe, &work).is_err()).cloned().collect();
        let ran = self.run(todo, of, &work);
        if !matches!(ran, Ok(episodes) if episodes == of) && !has_chunks(&work)? {
            // There is nothing to go on from.
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

    /// Records chunks, and returns how many of all episodes are in whole chunks then.
    fn run(&mut self, mut todo: VecDeque<Chunk>, of: usize, work: &Path) -> Result<usize, RecordError> {
        let (answers, said) = channel();
        let mut whole = of - todo.iter().map(|chunk| chunk.seeds.len()).sum::<usize>();
        let mut workers: Vec<Worker> = Vec::new();
        let mut started = 0;
        let mut ready = false;
        (self.observer)(Event::Recorded { episodes: whole, of });
        loop {
            while workers.len() < self.workers.get()
                && let Some(chunk) = todo.pop_front()
            {
                workers.push(self.start(started, chunk, work, &answers)?);
                started += 1;
            }
            // Dropping the workers ends them.
            if workers.is_empty() || (self.stop)() {
                return Ok(whole);
            }
            let (number, line) = match said.recv_timeout(POLL) {
                Ok(said) => said,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => continue,
            };
            let Some(at) = workers.iter().position(|worker| worker.number == number) else {
                continue; // the last lines of one that was ended
            };
            let worker = &mut workers[at];
            let trouble = match line.as_deref() {
                Some("episode") => {
                    worker.recorded += 1;
                    None
                }
                Some("chunk") => match worker.chunk.check(self.recipe, work) {
                    Ok(()) => {
                        whole += worker.chunk.seeds.len();
                        match todo.pop_front() {
                            Some(chunk) => worker.next(chunk),
                            None => drop(workers.remove(at)),
                        }
                        None
                    }
                    Err(e) => Some(format!("it wrote a bad chunk: {e}")),
                },
                Some(line) => match line.strip_prefix("packages ") {
                    Some(found) => {
                        same_packages(work, found)?;
                        ready = true;
                        None
                    }
                    None => Some(format!("it said `{}`", line.escape_debug())),
                },
                None => Some(String::new()),
            };
            if let Some(trouble) = trouble {
                let mut worker = workers.remove(at);
                let reason = [trouble, worker.last_words()].into_iter().filter(|words| !words.is_empty());
                let reason = reason.collect::<Vec<_>>().join("; ");
                if !ready {
                    let interpreter = self.python.interpreter().to_path_buf();
                    return Err(RecordError::NotReady { interpreter, reason });
                }
                let mut chunk = worker.chunk.clone();
                chunk.losses += 1;
                if chunk.losses == LOSSES {
                    return Err(RecordError::Lost { part: work.join(chunk.name), times: LOSSES, reason });
                }
                (self.observer)(Event::Lost { reason: &reason });
                todo.push_front(chunk);
            }
            let episodes = whole + workers.iter().map(|worker| worker.recorded).sum::<usize>();
            (self.observer)(Event::Recorded { episodes, of });
        }
    }

    fn start(
        &self,
        number: usize,
        chunk: Chunk,
        work: &Path,
        answers: &Sender<super::worker::Said>,
    ) -> Result<Worker, RecordError> {
        Worker::start(number, self.python, self.recipe, work, chunk, answers)
    }
}

/// Keeps a second process out, until it is dropped or the process is gone.
fn lock(work: &Path) -> Result<File, RecordError> {
    let path = work.join("lock");
    let file = File::create(&path).map_err(RecordError::io(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(RecordError::Busy { folder: work.to_path_buf() }),
        Err(TryLockError::Error(source)) => Err(RecordError::Io { path, source }),
    }
}

fn has_chunks(work: &Path) -> Result<bool, RecordError> {
    let entries = fs::read_dir(work).map_err(RecordError::io(work))?;
    Ok(entries.flatten().any(|entry| entry.path().extension().is_some_and(|extension| extension == "npz")))
}

fn packages_file(work: &Path) -> PathBuf {
    work.join("packages")
}

/// The packages that the chunks in the folder were recorded with.
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
