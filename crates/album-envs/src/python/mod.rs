//! Environments in Python: one kind of worker process for every suite.
//!
//! A [`Suite`] names a Python adapter in `suites/` and its arguments. A worker is
//! `python -c HOST FILE SOURCE ARGUMENT...`, where the host is `worker.py` and `FILE` and `SOURCE` are the adapter's
//! name and text. [`WorkerPool`] runs episodes in workers and [`play`](crate::play) records data in them, both with
//! the same guarantees: a worker that dies, sends garbage or exceeds its [`Limits`] is replaced, its last lines on
//! standard error are quoted, and the caller repeats its requests.
//!
//! # Protocol 4
//!
//! A worker communicates through its standard input and output, and exits when its input closes. Each message
//! is a kind (`u8`), the length of its body (`u32`) and the body. All numbers are little-endian. The worker
//! speaks first.
//!
//! | from | kind | body |
//! |---|---|---|
//! | worker | 1 hello | `ALBUMENV`, protocol `u32`, then `u32` each: observation dimension, action dimension, horizon, discrete actions (0: continuous, and the lower and upper bounds follow, `f32` each); then a line `NAME VERSION` for each package |
//! | worker | 2 started | environment `u32`, observation `f32`s, frame |
//! | worker | 3 stepped | environment `u32`, reward `f64`, flags `u8` (1 terminated, 2 truncated, 4 success, 8 success unknown), observation `f32`s, frame |
//! | worker | 4 error | cause `u8`, text; the worker ends. 0: its episodes are lost; 1: the text names a missing module; 2: a new worker would fail in the same way |
//! | worker | 5 recorded | nothing; an episode of the file under way is recorded |
//! | worker | 6 written | nothing; the file is complete |
//! | album | 1 reset | environment `u32`, seed `u64`, frame interval in steps `u32`; 0 means no frames |
//! | album | 2 step | environment `u32`, action `f32`s within their bounds, or the index of a discrete action as one `f32` |
//! | album | 3 record | a line of seeds separated by spaces, a tab and the path of the npz file to write |
//!
//! A frame is its width and height (`u32` each) and three bytes per pixel, row by row from the top; it is
//! empty if not requested.
//!
//! A worker answers requests in order: `reset` by `started` and `step` by `stepped`, with the index of the
//! environment, `record` by one `recorded` per episode and `written`. It has two environments, 0 and 1, and
//! creates the second at its first reset. So it can step one while the answer of the other travels, the
//! policy acts and the next action travels back.
//!
//! # Episodes
//!
//! An episode depends only on its seed and actions, bit for bit: not on the worker, its history or its other
//! environment. Each environment of a worker replaces the global generators of NumPy and gymnasium by its
//! own, seeded at every reset.

mod error;
mod interpreter;
mod pool;
mod process;
pub(crate) mod protocol;
mod setup;
mod suites;
pub(crate) mod workers;

pub use error::{PythonError, WorkerError};
pub use interpreter::{Python, VARIABLE, default_folder};
pub use pool::WorkerPool;
pub use protocol::PROTOCOL;
pub use setup::{install, set_up, set_up_from};
pub use suites::{GYMNASIUM, REQUIREMENTS, Suite};
pub use workers::Limits;

/// The number of messages in a worker's bytes before the first invalid one. For `fuzz/`, which has no worker.
#[doc(hidden)]
pub fn count_messages(mut bytes: &[u8]) -> usize {
    let mut reader = protocol::Reader::new();
    let mut count = 0;
    loop {
        reader.read(&mut bytes);
        while let Some(message) = reader.next() {
            if message.is_err() {
                return count;
            }
            count += 1;
        }
    }
}
