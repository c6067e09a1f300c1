//! The environments of the package `ogbench`, in worker processes.
//!
//! A worker is `python -c SCRIPT ENVIRONMENT_ID` with the script `python/worker.py`,
//! which is part of this crate. It talks through its standard input and output; what it
//! prints to standard error is kept for error messages. It ends when its input does.
//!
//! # Protocol 2
//!
//! Each message is a kind (`u8`), the length of its body (`u32`) and the body. All
//! numbers are little-endian. The worker speaks first.
//!
//! | from | kind | body |
//! |---|---|---|
//! | worker | 1 hello | `ALBUMENV`, protocol `u32`, then `u32` each: numbers in an observation, numbers in an action, horizon; then a line `NAME VERSION` for each package |
//! | worker | 2 started | environment `u32`, observation `f32`s, picture |
//! | worker | 3 stepped | environment `u32`, reward `f64`, flags `u8` (1 terminated, 2 truncated, 4 success), observation `f32`s, picture |
//! | worker | 4 error | cause `u8`, text; the worker ends. 0: its episodes are lost; 1: the text names a module that is missing; 2: another worker would fail just so |
//! | album | 1 reset | environment `u32`, seed `u64`, `u32` that is 0 for no pictures, else each how manyeth step has one |
//! | album | 2 step | environment `u32`, action `f32`s, each within ±1 |
//! | album | 3 bye | nothing |
//!
//! A picture is its width and height (`u32` each) and three bytes for each pixel, row by
//! row from the top; where none is asked for, there is nothing.
//!
//! A worker has two environments, 0 and 1, and makes the second one when it is first reset. It answers
//! requests in the order in which they come: `reset` by `started`, `step` by `stepped`, with the
//! number of the environment. So it has the next step to do while the answer to the last one
//! travels, the policy acts and the action travels back.
//!
//! # Episodes
//!
//! An episode depends on its seed and its actions alone, bit for bit: not on the worker,
//! nor on what that did before or does meanwhile. Python's, NumPy's global and gymnasium's generators are
//! seeded at each reset, and so are the spaces that the package draws from in its resets; each
//! environment of a worker has a state of them to itself.

mod error;
mod pool;
mod protocol;
mod worker;

pub use error::WorkerError;
pub use pool::{Limits, WorkerPool};
pub use protocol::{FRAME_EVERY, PROTOCOL};
