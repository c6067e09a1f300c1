//! Stop requests from outside.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::TrainError;

/// A flag that asks a run to save its state and stop.
///
/// Clones share the flag.
///
/// ```
/// use album_train::StopFlag;
/// let stop = StopFlag::new();
/// let from_elsewhere = stop.clone();
/// from_elsewhere.set();
/// assert!(stop.is_set());
/// ```
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// A flag raised only by [`set`](Self::set).
    pub fn new() -> Self {
        Self::default()
    }

    /// A flag also raised by SIGTERM, SIGINT (Ctrl-C), SIGUSR1 and SIGHUP (closed terminal). SIGHUP is left
    /// alone if it is ignored, as under `nohup`.
    ///
    /// If a second signal arrives while the flag is up, the process exits at once with the shell's code for
    /// that signal (128 plus its number).
    pub fn on_signals() -> Result<Self, TrainError> {
        use signal_hook::consts::{SIGINT, SIGTERM};
        #[cfg(unix)]
        let signals = {
            use signal_hook::consts::{SIGHUP, SIGUSR1};
            let mut signals = vec![SIGINT, SIGTERM, SIGUSR1];
            signals.extend((!ignored(SIGHUP)).then_some(SIGHUP));
            signals
        };
        #[cfg(not(unix))]
        let signals = vec![SIGINT, SIGTERM];

        let stop = Self::new();
        for signal in signals {
            // The order matters: the first signal finds the flag down and raises it, the second finds it up.
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop.0))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop.0)))
                .map_err(TrainError::Signals)?;
        }
        Ok(stop)
    }

    /// Raises the flag.
    pub fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether the flag is raised.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Whether this process was started with the signal ignored.
#[cfg(unix)]
fn ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}
