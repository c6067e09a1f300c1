//! Standard error and standard output: the one place that writes to them.
//!
//! `eprintln!` panics where standard error cannot be written to (a log on a full disk, a reader such as `head` that has
//! left), and a run of days would die of a line that nobody reads. Lints forbid it in all crates; [`say!`](crate::say)
//! takes its place.

use std::fmt;
use std::io::{self, Write};

/// Writes a line to standard error, formatted as by `eprintln!`. A stream that cannot be written to is no failure.
///
/// ```
/// album_base::say!("recording {}", "maze.npz");
/// ```
#[macro_export]
macro_rules! say {
    ($($line:tt)*) => { $crate::console::line(::std::format_args!($($line)*)) };
}

/// What [`say!`](crate::say) calls.
pub fn line(line: fmt::Arguments<'_>) {
    // In one piece, so that lines of several processes do not mix. Nobody is left to tell if it fails.
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Writes a line to standard output. A reader that has left (`album ... | head`) is no failure; a full disk is.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}
