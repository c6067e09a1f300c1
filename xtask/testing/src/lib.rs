//! Test helpers shared by several crates: counted allocations, golden files, shell scripts in place of programs, and
//! tests that need something the machine may lack, which are visibly skipped, or fail if it is required.
//!
//! `cargo xtask test` lists what was skipped. `ALBUM_REQUIRE=slurm,browser,python,strace` turns a skip into a failure.
//!
//! ```
//! if std::env::var_os("ALBUM_TEST_PYTHON").is_none() {
//!     album_testing::skip("python", "ALBUM_TEST_PYTHON is not set; `cargo xtask test` sets it");
//! }
//! ```

#![allow(clippy::print_stderr)] // a line of a test

mod allocations;
mod golden;
#[cfg(unix)]
mod script;

pub use allocations::{Counting, allocations};
pub use golden::golden;
#[cfg(unix)]
pub use script::script;

use std::fs::OpenOptions;
use std::io::Write;

/// The variable that lists what must not be skipped.
pub const REQUIRE: &str = "ALBUM_REQUIRE";

/// The variable with the file to which skipped tests are appended, one per line.
pub const LOG: &str = "ALBUM_SKIP_LOG";

/// Whether `ALBUM_REQUIRE` lists this need.
pub fn required(need: &str) -> bool {
    std::env::var(REQUIRE).is_ok_and(|needs| needs.split(',').any(|listed| listed.trim() == need))
}

/// Reports that the running test is skipped because `need` is missing; the caller returns.
///
/// # Panics
///
/// If `ALBUM_REQUIRE` lists it.
#[track_caller]
pub fn skip(need: &str, reason: &str) {
    assert!(!required(need), "{REQUIRE} lists {need}, but {reason}");
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let line = format!("SKIPPED {package} {test}: no {need}: {reason}\n");
    eprint!("{line}");
    if let Some(log) = std::env::var_os(LOG)
        && let Ok(mut file) = OpenOptions::new().create(true).append(true).open(log)
    {
        let _ = file.write_all(line.as_bytes()); // the test is not about this file
    }
}
