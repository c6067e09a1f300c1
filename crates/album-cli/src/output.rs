//! Standard output and the progress bar.

use album::Error as Failure;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::io::Write;

/// Writes to standard output; a closed pipe (`album ... | head`) ends quietly.
pub fn print(text: &str) -> Result<(), Failure> {
    match writeln!(std::io::stdout(), "{text}") {
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|source| Failure::Io { what: "standard output".into(), source }),
    }
}

/// Writes the one JSON object of a `--json` run.
pub fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Failure::Numerical(e.to_string()))?;
    print(&text)
}

/// A bar on standard error, from 0 to 1000; hidden where standard error is not a terminal.
pub fn progress_bar() -> ProgressBar {
    let bar = ProgressBar::new(1000);
    let style = ProgressStyle::with_template("{prefix:>13} [{bar:30}] {percent:>3} %  {wide_msg} {elapsed}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ");
    bar.set_style(style);
    bar
}
