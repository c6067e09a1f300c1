//! Upper limits of all sizes that users can set, in configurations and options alike, by name.
//!
//! They are far above any sensible value, and below what would freeze a computer. Memory is not limited here,
//! but computed and compared with the machine's, see [`machine`](crate::machine).
//!
//! ```
//! use album_base::limits;
//! assert!(limits::check("threads", 8).is_ok());
//! let error = limits::check("threads", 1 << 40).unwrap_err();
//! assert_eq!(error.to_string(), "threads = 1099511627776; expected at most 1,024");
//! ```

use crate::number::grouped;

const WIDTH: u64 = 65_536;
/// Periods and lengths of runs: years of training.
const STEPS: u64 = 1_000_000_000_000;

/// The maximum of every size.
const MOST: &[(&str, u64)] = &[
    // networks
    ("hidden", WIDTH),
    ("policy_hidden", WIDTH),
    ("noise_width", WIDTH),
    ("time_width", WIDTH),
    ("time_features", WIDTH),
    ("fourier_features", WIDTH),
    ("bins", WIDTH),
    ("noise_blocks", 1_000),
    ("ensemble", 1_000),
    // what one update does
    ("batch_size", 1_000_000),
    ("k", 10_000),
    ("h", 10_000),
    ("ha", 10_000),
    ("flow_steps", 1_000),
    ("diffusion_steps", 1_000),
    ("levels", 10_000),
    ("num_samples", 10_000),
    // schedules
    ("steps", STEPS),
    ("step", STEPS),
    ("updates", STEPS),
    ("patience", STEPS),
    ("log_every", STEPS),
    ("eval_every", STEPS),
    ("save_every", STEPS),
    ("actor_every", STEPS),
    ("target_every", STEPS),
    ("ema_every", STEPS),
    ("ema_after", STEPS),
    ("schedule_steps", STEPS),
    ("policy_from", STEPS),
    ("keep", 1_000_000),
    // environments and data
    ("eval_episodes", 1_000_000),
    ("episodes", 1_000_000),
    ("max_steps", 1_000_000_000),
    ("video", 1_000),
    // resources
    ("threads", 1_024),
    ("workers", 1_024),
    ("jobs", 1_024),
    ("cpus", 1_024),
    ("concurrent", 1_000_000),
    // exact solutions, statistics, measurements
    ("bootstrap", 100_000),
    ("check", 1_000_000),
    ("size", 2_000),
    ("sizes", 2_000),
    ("rounds", 10_000),
    ("batch", 1_000_000),
    ("width", WIDTH),
];

/// Maximum number of entries of a list in a configuration.
pub const LONGEST_LIST: usize = 100;

/// A size above its limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key} = {found}; expected at most {}", grouped((*most).cast_signed()))]
pub struct TooLarge {
    /// The name of the size.
    pub key: String,
    /// The given value.
    pub found: u64,
    /// The limit.
    pub most: u64,
}

/// The limit of a size; `None` for other numbers, such as a seed.
pub fn most(key: &str) -> Option<u64> {
    MOST.iter().find(|(name, _)| *name == key).map(|(_, most)| *most)
}

/// Refuses a size above its limit.
pub fn check(key: &str, found: u64) -> Result<(), TooLarge> {
    match most(key) {
        Some(most) if found > most => Err(TooLarge { key: key.to_owned(), found, most }),
        _ => Ok(()),
    }
}
