//! The only place that writes to standard error and standard output.
//!
//! `eprintln!` panics if standard error cannot be written to (a log on a full disk, a closed pipe), and a run
//! of several days would die of a line that nobody reads. Lints forbid it in all crates; the macros here replace it:
//!
//! | macro | line | shown |
//! |---|---|---|
//! | [`say!`](crate::say) | what is going on | unless [`Level::Quiet`] |
//! | [`detail!`](crate::detail) | what few want to read | with [`Level::Verbose`] |
//! | [`warn!`](crate::warn) | `warning: ...` | always |
//! | [`error!`](crate::error) | `error: ...` | always |

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU8, Ordering};

/// How much is written to standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Warnings and errors.
    Quiet = 0,
    /// What is going on, and progress bars.
    Normal = 1,
    /// Details too.
    Verbose = 2,
}

static LEVEL: AtomicU8 = AtomicU8::new(Level::Normal as u8);

/// Sets how much is written, for the whole program.
pub fn set_level(level: Level) {
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// Whether lines of this level are written.
pub fn shows(level: Level) -> bool {
    level as u8 <= LEVEL.load(Ordering::Relaxed)
}

/// Writes a line to standard error, formatted as by `eprintln!`. A stream that cannot be written to is
/// ignored.
///
/// ```
/// album_base::say!("recording {}", "maze.npz");
/// ```
#[macro_export]
macro_rules! say {
    ($($line:tt)*) => { $crate::console::line($crate::console::Level::Normal, ::std::format_args!($($line)*)) };
}

/// Writes a line that is shown only with [`Level::Verbose`](crate::console::Level::Verbose).
#[macro_export]
macro_rules! detail {
    ($($line:tt)*) => { $crate::console::line($crate::console::Level::Verbose, ::std::format_args!($($line)*)) };
}

/// Writes a line with `warning: ` before it.
#[macro_export]
macro_rules! warn {
    ($($line:tt)*) => { $crate::console::marked($crate::console::Mark::Warning, ::std::format_args!($($line)*)) };
}

/// Writes a line with `error: ` before it.
#[macro_export]
macro_rules! error {
    ($($line:tt)*) => { $crate::console::marked($crate::console::Mark::Error, ::std::format_args!($($line)*)) };
}

/// The implementation of [`say!`](crate::say) and [`detail!`](crate::detail).
pub fn line(level: Level, line: fmt::Arguments<'_>) {
    if shows(level) {
        // In one piece, so that lines of several processes do not mix. A failure cannot be reported.
        let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
    }
}

/// What stands before a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// `warning: `, yellow on a terminal.
    Warning,
    /// `error: `, red on a terminal.
    Error,
}

impl Mark {
    fn text(self, colours: bool) -> &'static str {
        match (self, colours) {
            (Mark::Warning, false) => "warning: ",
            (Mark::Error, false) => "error: ",
            (Mark::Warning, true) => "\x1b[1;33mwarning:\x1b[0m ",
            (Mark::Error, true) => "\x1b[1;31merror:\x1b[0m ",
        }
    }
}

/// The implementation of [`warn!`](crate::warn) and [`error!`](crate::error).
pub fn marked(mark: Mark, text: fmt::Arguments<'_>) {
    line(Level::Quiet, format_args!("{}{text}", mark.text(colours())));
}

/// Whether standard error takes colours.
fn colours() -> bool {
    let set = |name| std::env::var(name).unwrap_or_default();
    coloured(io::stderr().is_terminal(), &set("NO_COLOR"), &set("TERM"))
}

/// On a terminal that can, unless `NO_COLOR` has a value (<https://no-color.org>).
fn coloured(terminal: bool, no_color: &str, term: &str) -> bool {
    terminal && no_color.is_empty() && term != "dumb"
}

/// Writes a line to standard output. A closed pipe (`album ... | head`) is not an error; a full disk is.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_only_on_a_terminal_that_wants_them() {
        assert!(coloured(true, "", "xterm-256color"));
        assert!(!coloured(false, "", "xterm-256color"));
        assert!(!coloured(true, "1", "xterm-256color"));
        assert!(!coloured(true, "", "dumb"));
        assert_eq!(Mark::Warning.text(false), "warning: ");
        assert_eq!(Mark::Error.text(true), "\x1b[1;31merror:\x1b[0m ");
    }
}
