//! Progress bars on standard error, all in one style, hidden if standard error is not a terminal or
//! [`console`] is quiet.
//!
//! ```
//! use album_base::progress::{self, Amount};
//!
//! let bar = progress::bar(1_000, Amount::Count).with_prefix("training");
//! bar.set_position(10);
//! progress::say(&bar, "the first checkpoint is written");
//! bar.finish_and_clear();
//! ```

use crate::console::{self, Level};
pub use indicatif::{MultiProgress, ProgressBar};
use indicatif::{ProgressDrawTarget, ProgressStyle};
use std::time::{Duration, Instant};

/// How a bar shows progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// `120/1000`.
    Count,
    /// `12 %`.
    Share,
    /// `1.2 MB/10 MB  3.1 MB/s`.
    Bytes,
    /// `1.2 MB  3.1 MB/s`, if the total is unknown.
    UnknownBytes,
}

/// A bar up to `length`: prefix, bar, amount, remaining time and message.
pub fn bar(length: u64, amount: Amount) -> ProgressBar {
    let bar = ProgressBar::new(length);
    if !console::shows(Level::Normal) {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    show(&bar, amount);
    bar
}

/// A group of bars, drawn below each other.
pub fn several() -> MultiProgress {
    let target = if console::shows(Level::Normal) {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    MultiProgress::with_draw_target(target)
}

/// Changes how a bar shows progress.
pub fn show(bar: &ProgressBar, amount: Amount) {
    let template = match amount {
        Amount::Count => "{prefix:>13} [{bar:30}] {pos}/{len}  eta {eta}  {wide_msg}",
        Amount::Share => "{prefix:>13} [{bar:30}] {percent:>3} %  eta {eta}  {wide_msg}",
        Amount::Bytes => {
            "{prefix:>13} [{bar:30}] {decimal_bytes}/{decimal_total_bytes}  {decimal_bytes_per_sec}  eta {eta}  {wide_msg}"
        }
        Amount::UnknownBytes => "{prefix:>13} {decimal_bytes}  {decimal_bytes_per_sec}  {wide_msg}",
    };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.set_style(style.progress_chars("=> "));
}

/// Writes a line to standard error, above the bar if there is one.
pub fn say(bar: &ProgressBar, line: &str) {
    bar.suspend(|| crate::say!("{line}"));
}

/// Writes a warning to standard error, above the bar if there is one.
pub fn warn(bar: &ProgressBar, line: &str) {
    bar.suspend(|| crate::warn!("{line}"));
}

/// Occasional lines instead of a hidden bar, for the log of a long job.
#[derive(Debug)]
pub struct Lines {
    pause: Duration,
    last: Instant,
}

impl Lines {
    /// Lines at least this far apart.
    pub fn every(pause: Duration) -> Self {
        Lines { pause, last: Instant::now() }
    }

    /// Writes a line if it is due.
    pub fn say(&mut self, bar: &ProgressBar, line: impl FnOnce() -> String) {
        if bar.is_hidden() && self.last.elapsed() >= self.pause {
            crate::say!("{}", line());
            self.last = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::{InMemoryTerm, TermLike};

    #[test]
    fn every_amount_has_a_style() {
        for (amount, expected) in [
            (Amount::Count, "fetching [=========>                    ] 300/1000  eta"),
            (Amount::Share, "fetching [=========>                    ]  30 %  eta"),
            (Amount::Bytes, "fetching [=========>                    ] 300 B/1.00 kB"),
            (Amount::UnknownBytes, "fetching 300 B"),
        ] {
            let screen = InMemoryTerm::new(4, 120);
            let bar = bar(1000, amount).with_prefix("fetching");
            bar.set_draw_target(ProgressDrawTarget::term_like(Box::new(screen.clone()) as Box<dyn TermLike>));
            bar.set_position(300);
            bar.tick();
            assert!(screen.contents().contains(expected), "{}", screen.contents());
        }
    }
}
