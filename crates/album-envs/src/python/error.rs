//! What can go wrong with Python and its workers.

use std::io;
use std::path::PathBuf;

use album_base::cache::NoHome;

/// Why there is no Python to run OGBench with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PythonError {
    /// Nothing was named and nothing is set up.
    #[error(
        "no Python with ogbench: found no environment in {}; run `album setup ogbench`, or set ALBUM_PYTHON to an \
         interpreter that has the package",
        .folder.display()
    )]
    NotSetUp {
        /// Where the environment would be.
        folder: PathBuf,
    },

    /// The environment was made by another version of album.
    #[error(
        "{}: found an environment with other packages than this version of album expects; run `album setup ogbench`",
        .folder.display()
    )]
    OtherPins {
        /// The environment.
        folder: PathBuf,
    },

    /// The named interpreter does not exist.
    #[error("{}: found no such file, expected the Python interpreter that {by} names", .path.display())]
    NoInterpreter {
        /// The path.
        path: PathBuf,
        /// What named it.
        by: &'static str,
    },

    /// There is no folder to keep things in.
    #[error(transparent)]
    NoHome(NoHome),

    /// The base interpreter cannot be started.
    #[error(
        "cannot start `{}` ({source}); Python 3.10 to 3.13 is needed (Debian, Ubuntu: apt install python3 python3-venv; \
         macOS: brew install python; or see python.org), or name one with --python",
        .interpreter.display()
    )]
    NoPython {
        /// What was to be started.
        interpreter: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// The base interpreter is not a Python.
    #[error("`{}`: found {found}, expected the version of a Python 3.10 to 3.13; name another with --python", .interpreter.display())]
    NotPython {
        /// What was started.
        interpreter: PathBuf,
        /// What it said.
        found: String,
    },

    /// The packages do not exist for so old a Python.
    #[error("`{}`: found Python {found}, expected 3.10 to 3.13; name another with --python", .interpreter.display())]
    TooOld {
        /// The base interpreter.
        interpreter: PathBuf,
        /// Its version.
        found: String,
    },

    /// Python comes without what makes environments.
    #[error(
        "`{}` has no venv module with pip (Debian, Ubuntu: apt install python3-venv); it said:\n{said}",
        .interpreter.display()
    )]
    NoVenv {
        /// The base interpreter.
        interpreter: PathBuf,
        /// Its last words.
        said: String,
    },

    /// The packages cannot be downloaded.
    #[error(
        "the package index does not answer; check the network, or set HTTPS_PROXY for a proxy or PIP_INDEX_URL for a \
         mirror; pip said:\n{said}"
    )]
    NoIndex {
        /// pip's last words.
        said: String,
    },

    /// The index lacks a pinned package for this Python or system.
    #[error(
        "a pinned package does not exist for Python {version} on this system, expected Python 3.10 to 3.13 (--python \
         names another); pip said:\n{said}"
    )]
    NoPackage {
        /// The version of the base interpreter.
        version: String,
        /// pip's last words.
        said: String,
    },

    /// The disk is full.
    #[error("{}: no space left; about 1 GB is needed, --path names another place", .folder.display())]
    NoSpace {
        /// Where the environment was to be.
        folder: PathBuf,
    },

    /// The folder holds something else. It is left alone.
    #[error(
        "{}: found something that `album setup` did not make, expected no such folder or an empty one; it is left \
         alone, name another with --path",
        .folder.display()
    )]
    NotOurs {
        /// The folder.
        folder: PathBuf,
    },

    /// Any other failure of a step of the set-up.
    #[error("{step} failed; it said:\n{said}")]
    Step {
        /// What was done.
        step: &'static str,
        /// The last words.
        said: String,
    },

    /// A file cannot be read or written.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl PythonError {
    /// Whether the cause is input or output: the network, the disk, a program that is missing.
    pub fn is_io(&self) -> bool {
        use PythonError::{Io, NoIndex, NoPython, NoSpace, NoVenv, Step};
        matches!(
            self,
            NoPython { .. } | NoVenv { .. } | NoIndex { .. } | NoSpace { .. } | Step { .. } | Io { .. }
        )
    }

    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        |source| PythonError::Io { path, source }
    }
}

/// Why workers cannot be used.
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
        /// The missing module.
        module: String,
    },

    /// The worker speaks another protocol.
    #[error(
        "{}: found protocol {found}, expected {expected}; the worker belongs to another version of album",
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

    /// The environment has another shape than album's table or than its first worker.
    #[error(
        "{environment}: found {found} as {what}, expected {expected}; the installed package differs from the one that \
         `album setup ogbench` installs"
    )]
    OtherEnvironment {
        /// What was to run.
        environment: String,
        /// Which number differs.
        what: &'static str,
        /// The worker's.
        found: usize,
        /// What album expects.
        expected: usize,
    },

    /// No worker got ready, or no more of them after some were lost.
    #[error(
        "{environment}: no worker could be started: {reason}; `album setup ogbench` makes a Python that has what is \
         needed, and ALBUM_PYTHON names another than {}{}",
        .interpreter.display(), quoted(.said)
    )]
    NoneReady {
        /// What was to run.
        environment: String,
        /// The interpreter.
        interpreter: PathBuf,
        /// What happened to the last one.
        reason: String,
        /// Its last lines on standard error.
        said: String,
    },

    /// A worker said that a new one would fail in the same way.
    #[error("{environment}: {reason}{}", quoted(.said))]
    Failed {
        /// What was to run.
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
