//! Small things that every crate of album uses, one module each.
//!
//! - [`rng`]: named, counter-based random streams of one master seed.
//! - [`atomic`]: files and folders that are either complete or untouched.
//! - [`files`]: regular files only, for folders of strangers.
//! - [`limits`]: upper bounds of all sizes that people give.
//! - [`machine`]: the memory of this machine.
//! - [`console`]: lines on standard error and output that cannot end the program.
//! - [`disk`]: free space on the disk of a path.
//! - [`cache`]: where downloads and recordings are kept.
//! - [`hex`]: bytes as hexadecimal digits.
//! - [`suggest`]: "did you mean ...?" for misspelt names.
//! - [`number`]: numbers as people read them.
//! - [`progress`]: progress bars in one style.
//! - [`text`]: words broken into lines.
//! - [`threads`]: work on several threads, as far as there are some.
//! - [`spread`]: a few of many, evenly spread.
//!
//! ```
//! use album_base::{number, suggest};
//!
//! assert_eq!(number::grouped(1_000_000), "1,000,000");
//! assert!(suggest::hint("lamda_b", ["lambda_b", "lambda_e"]).contains("lambda_b"));
//! ```

#![warn(missing_debug_implementations)]

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
