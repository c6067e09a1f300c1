//! Work on several threads, as far as there are some.

use std::thread;

/// Does the same work on this thread and on up to `threads - 1` others, and waits for all of them. What there is to do they
/// divide among themselves. A thread that cannot be started only costs speed.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// let (next, sum) = (AtomicUsize::new(0), AtomicUsize::new(0));
/// album_base::threads::share(4, || loop {
///     match next.fetch_add(1, Ordering::Relaxed) {
///         n if n < 100 => sum.fetch_add(n, Ordering::Relaxed),
///         _ => break,
///     };
/// });
/// assert_eq!(sum.into_inner(), 4950);
/// ```
pub fn share(threads: usize, work: impl Fn() + Sync) {
    thread::scope(|scope| {
        for _ in 1..threads {
            if thread::Builder::new().spawn_scoped(scope, &work).is_err() {
                break;
            }
        }
        work();
    });
}
