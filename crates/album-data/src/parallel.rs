//! Work on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use crate::error::DataError;
use crate::source::log::{LogFile, Part, Stop, Visit};

/// Number of threads: one per processor, at most 8, because each holds a part in memory.
pub(crate) fn threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(8)
}

/// Runs tasks in parallel and returns their results in order, or the first error in that order.
pub(crate) fn parallel<T: Send>(
    tasks: usize,
    run: impl Fn(usize) -> Result<T, DataError> + Sync,
) -> Result<Vec<T>, DataError> {
    let threads = threads().min(tasks);
    if threads <= 1 {
        return (0..tasks).map(run).collect();
    }
    let results: Vec<Mutex<Option<Result<T, DataError>>>> = (0..tasks).map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let failed = AtomicUsize::new(usize::MAX);
    album_base::threads::share(threads, || {
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= tasks || i > failed.load(Ordering::Relaxed) {
                break;
            }
            let result = run(i);
            if result.is_err() {
                failed.fetch_min(i, Ordering::Relaxed);
            }
            *results[i].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        }
    });
    let results =
        results.into_iter().filter_map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner));
    results.collect()
}

/// Reads some fields of a file on a background thread, one part ahead of the consumer.
pub(crate) fn visit_ahead(table: &dyn LogFile, fields: &[usize], each: Visit<'_>) -> Result<(), Stop> {
    let (send, parts) = mpsc::sync_channel::<Part>(1);
    thread::scope(|scope| {
        let read = move || table.visit(fields, &mut |part| send.send(part).map_err(|_| Stop::Enough));
        let Ok(reader) = thread::Builder::new().spawn_scoped(scope, read) else {
            return table.visit(fields, each);
        };
        // Dropping the parts stops the reader, whose own error no longer matters.
        parts.into_iter().try_for_each(each)?;
        reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
