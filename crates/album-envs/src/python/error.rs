//! Errors of Python and its workers.

use std::io;
use std::path::PathBuf;

use album_base::cache::NoHome;

/// Why there is no Python to run workers with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PythonError {
    /// No interpreter was named and none is set up.
    #[error(
        "no Python to run environments with: found none in {}; run `album setup ogbench` or `album setup gymnasium`, or \
         set ALBUM_PYTHON to an interpreter that has the packages",
        .folder.display()
    )]
    NotSetUp {
        /// Where the virtual environment would be.
        folder: PathBuf,
    },

    /// The virtual environment was made by another version of album.
    #[error(
        "{}: found an environment with other packages than this version of album expects; run `album setup ogbench`",
        .folder.display()
    )]
    OtherPins {
        /// The virtual environment.
        folder: PathBuf,
    },

    /// The named interpreter does not exist.
    #[error("{}: found no such file, expected the Python interpreter that {by} names", .path.display())]
    NoInterpreter {
        /// The path.
        path: PathBuf,
        /// The option or variable that names it.
        by: &'static str,
    },

    /// There is no home directory for the cache.
    #[error(transparent)]
    NoHome(NoHome),

    /// The base interpreter cannot be started.
    #[error(
        "cannot start `{}` ({source}); Python 3.10 to 3.13 is needed (Debian, Ubuntu: apt install python3 python3-venv; \
         macOS: brew install python; or see python.org), or name one with --python",
        .interpreter.display()
    )]
    NoPython {
        /// The program.
        interpreter: PathBuf,
        /// The system's error.
        source: io::Error,
    },

    /// The base interpreter is not a Python.
    #[error("`{}`: found {found}, expected the version of a Python 3.10 to 3.13; name another with --python", .interpreter.display())]
    NotPython {
        /// The program.
        interpreter: PathBuf,
        /// Its output.
        found: String,
    },

    /// The Python is too old for the packages.
    #[error("`{}`: found Python {found}, expected 3.10 to 3.13; name another with --python", .interpreter.display())]
    TooOld {
        /// The base interpreter.
        interpreter: PathBuf,
        /// Its version.
        found: String,
    },

    /// Python lacks the modules to create virtual environments.
    #[error(
        "`{}` has no venv module with pip (Debian, Ubuntu: apt install python3-venv); it said:\n{said}",
        .interpreter.display()
    )]
    NoVenv {
        /// The base interpreter.
        interpreter: PathBuf,
        /// The last lines of its output.
        said: String,
    },

    /// The packages cannot be downloaded.
    #[error(
        "the package index does not answer; check the network, or set HTTPS_PROXY for a proxy or PIP_INDEX_URL for a \
         mirror; pip said:\n{said}"
    )]
    NoIndex {
        /// pip's last lines.
        said: String,
    },

    /// The package index lacks a pinned package for this Python or system.
    #[error(
        "a pinned package does not exist for Python {version} on this system, expected Python 3.10 to 3.13 (--python \
         names another); pip said:\n{said}"
    )]
    NoPackage {
        /// The version of the base interpreter.
        version: String,
        /// pip's last lines.
        said: String,
    },

    /// The disk is full.
    #[error("{}: no space left; about 1 GB is needed, --path names another place", .folder.display())]
    NoSpace {
        /// The folder of the virtual environment.
        folder: PathBuf,
    },

    /// The folder has other contents. It is left untouched.
    #[error(
        "{}: found something that `album setup` did not make; it is left as it is. Choose another folder with --path, \
         new or empty",
        .folder.display()
    )]
    NotOurs {
        /// The folder.
        folder: PathBuf,
    },

    /// Not a package name.
    #[error("found `{found}`, expected the name of a package, such as `minigrid` or `gymnasium[box2d]`")]
    NotAPackage {
        /// What was given.
        found: String,
    },

    /// Another step of the set-up failed.
    #[error("{step} failed; it said:\n{said}")]
    Step {
        /// The step.
        step: &'static str,
        /// The last lines of its output.
        said: String,
    },

    /// A file cannot be read or written.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl PythonError {
    /// Whether the cause is I/O: the network, the disk, a missing program.
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
        "{}: cannot start this Python ({source}); run `album setup {setup}`, or set ALBUM_PYTHON to an interpreter that \
         has {setup}",
        .interpreter.display()
    )]
    NotStarted {
        /// The `album setup` target that makes one.
        setup: &'static str,
        /// The interpreter.
        interpreter: PathBuf,
        /// The system's error.
        source: io::Error,
    },

    /// A package is missing.
    #[error(
        "{}: found no module {module}; run `album setup {setup}`, or set ALBUM_PYTHON to an interpreter that has {setup}",
        .interpreter.display()
    )]
    NoModule {
        /// The `album setup` target that installs it.
        setup: &'static str,
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
        /// The protocol of this crate.
        expected: u32,
    },

    /// The environment's shape differs from album's table or from that of the first worker.
    #[error(
        "{environment}: found {found} as {what}, expected {expected}; the installed package differs from the one that \
         `album setup {setup}` installs"
    )]
    OtherEnvironment {
        /// The `album setup` target that installs the right package.
        setup: &'static str,
        /// The environment.
        environment: String,
        /// The dimension that differs.
        what: &'static str,
        /// The worker's value.
        found: usize,
        /// The value that album expects.
        expected: usize,
    },

    /// No worker started, or no replacement for lost ones.
    #[error(
        "{environment}: no worker could be started: {reason}; `album setup {setup}` makes a Python that has what is \
         needed, and ALBUM_PYTHON names another than {}{}",
        .interpreter.display(), quoted(.said)
    )]
    NoneReady {
        /// The `album setup` target that makes a working Python.
        setup: &'static str,
        /// The environment.
        environment: String,
        /// The interpreter.
        interpreter: PathBuf,
        /// Why the last one failed.
        reason: String,
        /// Its last lines on standard error.
        said: String,
    },

    /// A worker reported an error that a new one would repeat.
    #[error("{environment}: {reason}{}", quoted(.said))]
    Failed {
        /// The environment.
        environment: String,
        /// The error.
        reason: String,
        /// The worker's last lines on standard error.
        said: String,
    },
}

fn quoted(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!("; the worker's last lines:\n{said}") }
}
