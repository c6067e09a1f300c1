//! Machine resources of a run.

use album_nn::Pool;
use std::path::PathBuf;

/// Machine resources of a run; results do not depend on them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Worker threads; 0 means all processors.
    pub threads: usize,
    /// Worker processes for episodes; 0 means one per processor.
    pub workers: usize,
    /// A Python with the environment's package, if not the one that was set up.
    pub python: Option<PathBuf>,
}

impl Resources {
    /// Number of worker threads, at most what a [`Pool`] supports.
    pub fn threads(&self) -> usize {
        or_all(self.threads).min(Pool::most_threads())
    }

    /// Number of worker processes.
    pub fn workers(&self) -> usize {
        or_all(self.workers)
    }
}

/// Number of processors of this machine.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn or_all(asked: usize) -> usize {
    if asked == 0 { processors() } else { asked }
}
