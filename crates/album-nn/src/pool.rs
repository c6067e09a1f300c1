//! A persistent thread pool: one parallel loop at a time, in which the caller takes part.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, PoisonError};

use crate::simd::{Isa, Precision, Supported};
use crate::sync::{
    AtomicBool, AtomicU64, AtomicUsize, Builder, Condvar, JoinHandle, Mutex, MutexGuard, Ordering, SPINS,
    spin_loop, thread_local, yield_now,
};

/// Threads that share the kernels' loops, and the instruction set of the kernels.
///
/// Results do not depend on the number of threads. A clone is another handle to the same threads.
///
/// ```
/// use album_nn::Pool;
/// let pool = Pool::new(2);
/// assert_eq!(pool.threads(), 2);
/// ```
#[derive(Clone)]
pub struct Pool {
    crew: Arc<Crew>,
    isa: Supported,
}

/// The worker threads; dropping the last handle stops them.
struct Crew {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// Held during a loop: clones of a pool may be used on several threads.
    running: Mutex<()>,
}

#[derive(Default)]
struct Shared {
    /// Loop counter; a worker that sees a new value takes `job`. The top bit closes the pool.
    epoch: AtomicU64,
    job: Mutex<Option<Job>>,
    wake: Condvar,
    next: AtomicUsize,
    busy: AtomicUsize,
    panicked: AtomicBool,
    /// Number of workers that have started.
    started: AtomicUsize,
}

const CLOSED: u64 = 1 << 63;

thread_local! {
    /// Whether this thread is in the body of a parallel loop.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// A loop body with its lifetime erased; see [`Pool::run`] for why that is sound.
#[derive(Clone, Copy)]
struct Job {
    body: *const (dyn Fn(usize) + Sync),
    count: usize,
}

// SAFETY: the body is `Sync`, and `Pool::run` keeps it alive while any worker can reach it.
unsafe impl Send for Job {}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("threads", &self.threads()).field("isa", &self.isa()).finish()
    }
}

impl Pool {
    /// A pool of `threads` threads, including the caller's, with the best kernels for this processor. Zero
    /// means one thread per processor. There are never more than [`Pool::most_threads`].
    pub fn new(threads: usize) -> Self {
        Self::with_kernels(threads, Supported::detect())
    }

    /// A pool that uses the kernels for `isa`.
    ///
    /// # Panics
    /// If this processor does not support `isa`.
    pub fn with_isa(threads: usize, isa: Isa) -> Self {
        match isa.supported() {
            Some(supported) => Self::with_kernels(threads, supported),
            None => panic!("this processor has no {isa:?}"),
        }
    }

    /// The same threads, with products of this precision.
    pub fn with_precision(&self, precision: Precision) -> Self {
        Self { crew: self.crew.clone(), isa: self.isa.with(precision) }
    }

    /// The precision of matrix products.
    pub fn precision(&self) -> Precision {
        self.isa.precision()
    }

    /// Maximum number of threads: more per processor would only compete with each other.
    pub fn most_threads() -> usize {
        64.max(4 * processors())
    }

    fn with_kernels(threads: usize, isa: Supported) -> Self {
        let threads = match threads {
            0 => processors(),
            n => n.min(Self::most_threads()),
        };
        let shared = Arc::new(Shared::default());
        // Failing to start a thread only costs speed.
        let workers: Vec<_> = (1..threads)
            .filter_map(|i| {
                let shared = shared.clone();
                Builder::new().name(format!("album-nn-{i}")).spawn(move || work(&shared)).ok()
            })
            .collect();
        // A thread allocates a little when it starts: wait, so that this does not happen during a later loop.
        while shared.started.load(Ordering::Acquire) < workers.len() {
            yield_now();
        }
        Self { crew: Arc::new(Crew { shared, workers, running: Mutex::new(()) }), isa }
    }

    /// Number of threads that take part in a loop.
    pub fn threads(&self) -> usize {
        self.crew.workers.len() + 1
    }

    /// The instruction set of the kernels.
    pub fn isa(&self) -> Isa {
        self.isa.isa()
    }

    /// The same, as proof that this processor supports it.
    pub(crate) fn supported(&self) -> Supported {
        self.isa
    }

    /// Calls `body(0)`, ..., `body(count - 1)`, each once, on any thread, and waits for all.
    pub(crate) fn run(&self, count: usize, body: &(dyn Fn(usize) + Sync)) {
        if count <= 1 || self.crew.workers.is_empty() {
            (0..count).for_each(body);
            return;
        }
        assert!(
            !INSIDE.with(Cell::get),
            "a parallel loop cannot start another one: it would wait for itself"
        );
        let _running = lock(&self.crew.running);
        let shared = &*self.crew.shared;
        // SAFETY: only the lifetime changes. Workers take the job and count themselves busy under its
        // lock; below, the job is withdrawn under that lock and then no worker is left busy before
        // this function returns or unwinds, so the body outlives every use.
        let body: &'static (dyn Fn(usize) + Sync) = unsafe { std::mem::transmute(body) };
        let job = Job { body, count };
        {
            let mut slot = lock(&shared.job);
            shared.next.store(0, Ordering::Relaxed);
            *slot = Some(job);
            shared.epoch.fetch_add(1, Ordering::Release);
            shared.wake.notify_all();
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| take_turns(&shared.next, job.count, body)));
        *lock(&shared.job) = None;
        let mut spins = 0;
        while shared.busy.load(Ordering::Acquire) > 0 {
            relax(&mut spins);
        }
        let worker_panicked = shared.panicked.swap(false, Ordering::Relaxed);
        if let Err(payload) = outcome {
            resume_unwind(payload);
        }
        assert!(!worker_panicked, "a worker thread of the pool panicked");
    }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Marks its thread as inside a parallel loop until dropped, also by unwinding.
struct Inside;

impl Inside {
    fn enter() -> Self {
        INSIDE.with(|inside| inside.set(true));
        Inside
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.with(|inside| inside.set(false));
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        {
            let _slot = lock(&self.shared.job);
            self.shared.epoch.fetch_or(CLOSED, Ordering::Release);
            self.shared.wake.notify_all();
        }
        for worker in self.workers.drain(..) {
            // A worker's panic was already reported by its loop.
            let _ = worker.join();
        }
    }
}

/// Claims indices until none are left.
fn take_turns(next: &AtomicUsize, count: usize, body: &(dyn Fn(usize) + Sync)) {
    let _inside = Inside::enter();
    loop {
        let i = next.fetch_add(1, Ordering::Relaxed);
        if i >= count {
            return;
        }
        body(i);
    }
}

fn work(shared: &Shared) {
    shared.started.fetch_add(1, Ordering::Release);
    let mut seen = 0;
    loop {
        let mut spins = 0;
        while shared.epoch.load(Ordering::Acquire) == seen && spins < SPINS {
            spins += 1;
            spin_loop();
        }
        let job = {
            let mut slot = lock(&shared.job);
            while shared.epoch.load(Ordering::Acquire) == seen {
                slot = shared.wake.wait(slot).unwrap_or_else(PoisonError::into_inner);
            }
            seen = shared.epoch.load(Ordering::Acquire);
            if seen & CLOSED != 0 {
                return;
            }
            if slot.is_some() {
                shared.busy.fetch_add(1, Ordering::Relaxed);
            }
            *slot
        };
        let Some(job) = job else { continue };
        // SAFETY: this worker counted itself busy while the job was posted, so `Pool::run` waits for
        // the decrement below before the body's borrow ends.
        let body = unsafe { &*job.body };
        if catch_unwind(AssertUnwindSafe(|| take_turns(&shared.next, job.count, body))).is_err() {
            shared.panicked.store(true, Ordering::Relaxed);
        }
        shared.busy.fetch_sub(1, Ordering::Release);
    }
}

/// Waits briefly: first spinning, then yielding the processor.
fn relax(spins: &mut u32) {
    *spins += 1;
    if *spins < SPINS {
        spin_loop();
    } else {
        yield_now();
    }
}

/// A panic leaves no inconsistent state here, so poisoning can be ignored.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_within_a_loop_is_refused() {
        let pool = Pool::new(2);
        let nested = catch_unwind(AssertUnwindSafe(|| pool.run(2, &|_| pool.run(2, &|_| {}))));
        assert!(nested.is_err());
        // The pool still works afterwards.
        pool.run(4, &|_| {});
    }

    #[test]
    fn nobody_gets_countless_threads() {
        assert_eq!(Pool::new(usize::MAX).threads(), Pool::most_threads());
    }

    #[test]
    fn every_index_runs_once() {
        for threads in [1, 2, 4] {
            let pool = Pool::new(threads);
            for count in [0, 1, 2, 3, 100] {
                for _ in 0..50 {
                    let hits: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
                    pool.run(count, &|i| {
                        hits[i].fetch_add(1, Ordering::Relaxed);
                    });
                    assert!(hits.iter().all(|h| h.load(Ordering::Relaxed) == 1));
                }
            }
        }
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_survives() {
        let pool = Pool::new(3);
        for round in 0..20 {
            let result = catch_unwind(AssertUnwindSafe(|| {
                pool.run(8, &|i| assert_ne!(i, round % 8));
            }));
            assert!(result.is_err());
            pool.run(8, &|_| {});
        }
    }

    #[test]
    fn several_threads_may_share_a_pool() {
        let pool = Pool::new(2);
        let total = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        pool.run(5, &|_| {
                            total.fetch_add(1, Ordering::Relaxed);
                        });
                    }
                });
            }
        });
        assert_eq!(total.load(Ordering::Relaxed), 1500);
    }
}
