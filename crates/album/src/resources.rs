//! What a run may use of the machine.

use album_nn::Pool;
use std::path::PathBuf;

/// What a run may use of the machine. No result depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Threads that train; 0 means all processors.
    pub threads: usize,
    /// Worker processes that run episodes; 0 means as many as there are processors.
    pub workers: usize,
    /// A Python that has the environment's package, where it is not the one that was set up.
    pub python: Option<PathBuf>,
}

impl Resources {
    /// Threads that train, never more than a [`Pool`] has.
    pub fn threads(&self) -> usize {
        or_all(self.threads).min(Pool::most_threads())
    }

    /// Worker processes that run episodes.
    pub fn workers(&self) -> usize {
        or_all(self.workers)
    }
}

/// The processors of this machine.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn or_all(asked: usize) -> usize {
    if asked == 0 { processors() } else { asked }
}
