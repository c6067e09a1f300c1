//! Small utilities used by all crates of album, one module each.
//!
//! - [`rng`]: named, counter-based random streams of one master seed.
//! - [`atomic`]: files and folders that are either complete or untouched.
//! - [`files`]: regular files only, for untrusted folders.
//! - [`limits`]: upper limits of all sizes in options and configurations.
//! - [`machine`]: the memory of this machine.
//! - [`console`]: output that cannot end the program.
//! - [`disk`]: free space on the disk of a path.
//! - [`cache`]: where downloads and recordings are kept.
//! - [`hex`]: bytes as hexadecimal digits.
//! - [`suggest`]: "did you mean ...?" for misspelt names.
//! - [`number`]: human-readable numbers.
//! - [`progress`]: progress bars in one style.
//! - [`text`]: line wrapping.
//! - [`threads`]: work on several threads, if available.
//! - [`spread`]: evenly spread samples of a list.
//!
//! ```
//! use album_base::{number, suggest};
//!
//! assert_eq!(number::grouped(1_000_000), "1,000,000");
//! assert!(suggest::hint("lamda_b", ["lambda_b", "lambda_e"]).contains("lambda_b"));
//! ```

pub mod atomic;
pub mod cache;
pub mod console;
pub mod disk;
pub mod files;
pub mod hex;
pub mod limits;
pub mod machine;
pub mod number;
pub mod progress;
pub mod rng;
pub mod spread;
pub mod suggest;
pub mod text;
pub mod threads;
