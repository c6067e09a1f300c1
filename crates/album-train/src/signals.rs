//! Stopping a run from outside.

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
    /// A flag that only [`set`](Self::set) raises.
    pub fn new() -> Self {
        Self::default()
    }

    /// A flag that SIGTERM, SIGINT (Ctrl-C) and SIGUSR1 raise as well.
    ///
    /// When one of them arrives and the flag is already up, the process exits at once with the code that shells
    /// give to a death by that signal (128 and its number).
    pub fn on_signals() -> Result<Self, TrainError> {
        use signal_hook::consts::{SIGINT, SIGTERM};
        #[cfg(unix)]
        let signals = [SIGINT, SIGTERM, signal_hook::consts::SIGUSR1];
        #[cfg(not(unix))]
        let signals = [SIGINT, SIGTERM];

        let stop = Self::new();
        for signal in signals {
            // In this order: the first signal finds the flag down and raises it, the second finds it up.
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

    /// Whether the flag is up.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
