//! Work on several threads, if available.

use std::thread;

/// Runs the same work on this thread and on up to `threads - 1` others, and waits for all of them. They
/// divide the work among themselves. Failing to start a thread only costs speed.
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
