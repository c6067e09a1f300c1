//! The only place that writes to standard error and standard output.
//!
//! `eprintln!` panics if standard error cannot be written to (a log on a full disk, a closed pipe), and a run
//! of several days would die of a line that nobody reads. Lints forbid it in all crates; [`say!`](crate::say)
//! replaces it.

use std::fmt;
use std::io::{self, Write};

/// Writes a line to standard error, formatted as by `eprintln!`. A stream that cannot be written to is
/// ignored.
///
/// ```
/// album_base::say!("recording {}", "maze.npz");
/// ```
#[macro_export]
macro_rules! say {
    ($($line:tt)*) => { $crate::console::line(::std::format_args!($($line)*)) };
}

/// The implementation of [`say!`](crate::say).
pub fn line(line: fmt::Arguments<'_>) {
    // In one piece, so that lines of several processes do not mix. A failure cannot be reported.
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Writes a line to standard output. A closed pipe (`album ... | head`) is not an error; a full disk is.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}
