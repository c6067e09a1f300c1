//! How far a download is: a bar on a terminal, a line now and then elsewhere.

use album_base::progress::{self, Amount, ProgressBar};
use indicatif::DecimalBytes;
use std::time::{Duration, Instant};

/// Between two lines where there is no terminal.
const QUIET: Duration = Duration::from_secs(10);

pub struct Progress {
    bar: ProgressBar,
    file: String,
    started: bool,
    length: Option<u64>,
    /// When the last line was written and how much was there.
    last: (Instant, u64),
}

impl Progress {
    /// Nothing is shown before [`start`](Self::start).
    pub fn new(file: &str) -> Self {
        Progress {
            bar: ProgressBar::hidden(),
            file: file.to_owned(),
            started: false,
            length: None,
            last: (Instant::now(), 0),
        }
    }

    /// A connection to this address brings the bytes behind the first `have`.
    pub fn start(&mut self, url: &str, have: u64, length: Option<u64>) {
        if !self.started {
            self.started = true;
            match have {
                0 => eprintln!("fetching {url}"),
                _ => eprintln!("fetching {url} from {} on", DecimalBytes(have)),
            }
            self.bar = ProgressBar::no_length().with_prefix(self.file.clone());
        }
        if let Some(length) = length {
            self.bar.set_length(length);
        }
        progress::show(&self.bar, if length.is_some() { Amount::Bytes } else { Amount::UnknownBytes });
        self.bar.set_position(have);
        self.bar.reset_eta(); // the bytes that were there say nothing about the speed
        self.length = length;
        self.last = (Instant::now(), have);
    }

    /// So much is there.
    pub fn at(&mut self, have: u64) {
        self.bar.set_position(have);
        let (since, before) = self.last;
        if self.bar.is_hidden() && since.elapsed() >= QUIET {
            let speed = have.saturating_sub(before) as f64 / since.elapsed().as_secs_f64();
            eprintln!("{}: {}, {}/s", self.file, amount(have, self.length), DecimalBytes(speed as u64));
            self.last = (Instant::now(), have);
        }
    }

    /// Writes a line, above the bar if there is one.
    pub fn say(&self, line: &str) {
        progress::say(&self.bar, line);
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// `12 MB of 34 MB`, as far as it is known.
pub fn amount(have: u64, length: Option<u64>) -> String {
    match length {
        Some(length) => format!("{} of {}", DecimalBytes(have), DecimalBytes(length)),
        None => DecimalBytes(have).to_string(),
    }
}
