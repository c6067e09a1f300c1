//! What can go wrong with workers.

use std::io;
use std::path::PathBuf;

/// Why an environment of OGBench cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// The interpreter cannot be started.
    #[error(
        "{}: cannot start this Python ({source}); run `album setup ogbench`, or set ALBUM_PYTHON to an interpreter \
         that has ogbench",
        .interpreter.display()
    )]
    NotStarted {
        /// The interpreter.
        interpreter: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// A package is missing.
    #[error(
        "{}: found no module {module}; run `album setup ogbench`, or set ALBUM_PYTHON to an interpreter that has ogbench",
        .interpreter.display()
    )]
    NoModule {
        /// The interpreter.
        interpreter: PathBuf,
        /// The module that it does not have.
        module: String,
    },

    /// The worker speaks another protocol.
    #[error(
        "{}: found protocol {found}, expected {expected}; the worker is not that of this version of album",
        .interpreter.display()
    )]
    OtherProtocol {
        /// The interpreter.
        interpreter: PathBuf,
        /// The worker's protocol.
        found: u32,
        /// This crate's.
        expected: u32,
    },

    /// The environment is not the one that album knows.
    #[error(
        "{environment}: found {found} as {what}, expected {expected}; the installed ogbench differs from 1.2.2 (`album \
         setup ogbench` installs that)"
    )]
    OtherEnvironment {
        /// Its name in the package.
        environment: String,
        /// Which number differs.
        what: &'static str,
        /// The package's.
        found: usize,
        /// That of album's table.
        expected: usize,
    },

    /// A worker did not get ready, or said that no other would do better.
    #[error("{environment}: {reason}{}", quoted(.said))]
    Failed {
        /// Its name in the package.
        environment: String,
        /// What happened.
        reason: String,
        /// The worker's last lines on standard error.
        said: String,
    },
}

fn quoted(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!("; the worker's last lines:\n{said}") }
}
