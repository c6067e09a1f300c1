//! The thread pool of album-nn compiled with loom's types, which tries every interleaving of its threads.

#![allow(dead_code)] // the model uses only a part of the pool

#[path = "../../../crates/album-nn/src/pool.rs"]
mod pool;
#[path = "../../../crates/album-nn/src/simd.rs"]
mod simd;

mod sync {
    pub(crate) use loom::hint::spin_loop;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use loom::thread::{Builder, JoinHandle, yield_now};
    /// Loom's has no constant initial values.
    macro_rules! of_thread {
        ($($(#[$attribute:meta])* $vis:vis static $name:ident: $type:ty = const { $value:expr };)*) => {
            loom::thread_local! { $($(#[$attribute])* $vis static $name: $type = $value;)* }
        };
    }
    pub(crate) use of_thread as thread_local;

    /// Polling again adds nothing in a model.
    pub(crate) const SPINS: u32 = 0;
}

#[cfg(test)]
mod model {
    use super::pool::Pool;
    use super::simd::Isa;
    use loom::cell::UnsafeCell;
    use loom::model::Builder;

    /// Loops over unguarded cells: loom detects any two accesses that could race, including that of a late
    /// worker.
    fn loops(threads: usize, counts: &[usize], preemptions: usize) {
        let mut builder = Builder::new();
        builder.preemption_bound = Some(preemptions);
        let counts = counts.to_vec();
        builder.check(move || {
            let pool = Pool::with_isa(threads, Isa::Scalar);
            for &count in &counts {
                let cells = Cells((0..count).map(|_| UnsafeCell::new(0)).collect());
                pool.run(count, &|i| cells.add(i));
                assert!((0..count).all(|i| cells.take(i) == 1));
            }
        });
    }

    struct Cells(Vec<UnsafeCell<u32>>);

    // SAFETY: loom checks every access; that is the purpose of the model.
    unsafe impl Sync for Cells {}

    impl Cells {
        fn add(&self, i: usize) {
            // SAFETY: loom panics if another thread could be here.
            self.0[i].with_mut(|cell| unsafe { *cell += 1 });
        }

        fn take(&self, i: usize) -> u32 {
            // SAFETY: loom panics if another thread could be here.
            self.0[i].with_mut(|cell| unsafe { std::mem::take(&mut *cell) })
        }
    }

    #[test]
    fn one_worker_one_loop() {
        loops(2, &[2], 4);
    }

    #[test]
    fn one_worker_two_loops() {
        loops(2, &[2, 3], 3);
    }

    #[test]
    fn two_workers() {
        loops(3, &[2], 2);
    }
}
