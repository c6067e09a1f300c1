//! Which Python to run.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::error::PythonError;
use super::setup;
use super::suites::REQUIREMENTS;
use crate::error::EnvError;

/// The environment variable that names an interpreter.
pub const VARIABLE: &str = "ALBUM_PYTHON";

/// A Python interpreter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Python {
    interpreter: PathBuf,
}

impl Python {
    /// This interpreter, unchecked.
    pub fn at(interpreter: impl Into<PathBuf>) -> Self {
        Self { interpreter: interpreter.into() }
    }

    /// The interpreter for workers: `explicit`, else the one that `ALBUM_PYTHON` names, else the one that
    /// `album setup ogbench` made.
    pub fn find(explicit: Option<&Path>) -> Result<Self, EnvError> {
        let named = std::env::var_os(VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from);
        Self::choose(explicit, named, default_folder)
    }

    fn choose(
        explicit: Option<&Path>,
        named: Option<PathBuf>,
        default: impl FnOnce() -> Result<PathBuf, EnvError>,
    ) -> Result<Self, EnvError> {
        match (explicit, named) {
            (Some(path), _) => Self::named(path, "--python"),
            (None, Some(path)) => Self::named(&path, VARIABLE),
            (None, None) => {
                let folder = default()?;
                match setup::stamp(&folder) {
                    None => Err(PythonError::NotSetUp { folder }.into()),
                    Some(pins) if pins != REQUIREMENTS => Err(PythonError::OtherPins { folder }.into()),
                    Some(_) => Ok(Self::in_folder(&folder)),
                }
            }
        }
    }

    /// The interpreter's path, or a name to be found in `PATH`.
    pub fn interpreter(&self) -> &Path {
        &self.interpreter
    }

    /// A command that runs the interpreter unbuffered, in UTF-8, and with one thread for linear algebra,
    /// because there is one process per core.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.interpreter);
        command.env("PYTHONUNBUFFERED", "1").env("PYTHONUTF8", "1");
        for threads in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"] {
            command.env(threads, "1");
        }
        command
    }

    fn named(path: &Path, by: &'static str) -> Result<Self, EnvError> {
        // The system finds a bare name in PATH.
        let bare = path.parent() == Some(Path::new(""));
        if !bare && !path.is_file() {
            return Err(PythonError::NoInterpreter { path: path.to_owned(), by }.into());
        }
        Ok(Self::at(path))
    }

    /// The interpreter of a virtual environment.
    pub(super) fn in_folder(folder: &Path) -> Self {
        Self::at(match cfg!(windows) {
            true => folder.join("Scripts").join("python.exe"),
            false => folder.join("bin").join("python"),
        })
    }
}

/// The default folder of `album setup ogbench`.
pub fn default_folder() -> Result<PathBuf, EnvError> {
    Ok(album_base::cache::folder().map_err(PythonError::NoHome)?.join("python"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_explicit_interpreter_wins() {
        let folder = tempfile::tempdir().unwrap();
        let default = || Ok(folder.path().to_owned());
        let (first, second) = (folder.path().join("first"), folder.path().join("second"));
        let choose = |explicit: Option<&Path>, named: Option<&PathBuf>| {
            Python::choose(explicit, named.cloned(), default).map_err(|e| e.to_string())
        };
        let message = choose(Some(&first), Some(&second)).unwrap_err();
        assert!(
            message
                .ends_with("first: found no such file, expected the Python interpreter that --python names")
        );
        let message = choose(None, Some(&second)).unwrap_err();
        assert!(message.ends_with(
            "second: found no such file, expected the Python interpreter that ALBUM_PYTHON names"
        ));
        std::fs::write(&first, "").unwrap();
        std::fs::write(&second, "").unwrap();
        assert_eq!(choose(Some(&first), Some(&second)), Ok(Python::at(&first)));
        assert_eq!(choose(None, Some(&second)), Ok(Python::at(&second)));
        assert_eq!(choose(Some(Path::new("python3")), None), Ok(Python::at("python3")));
    }

    #[test]
    fn the_default_environment_must_be_complete_and_of_these_pins() {
        let folder = tempfile::tempdir().unwrap();
        let choose =
            || Python::choose(None, None, || Ok(folder.path().to_owned())).map_err(|e| e.to_string());
        let message = choose().unwrap_err();
        assert!(
            message.contains("run `album setup ogbench` or `album setup gymnasium`, or set ALBUM_PYTHON"),
            "{message}"
        );
        let stamp = folder.path().join("album-pins.txt");
        std::fs::write(&stamp, "unfinished\n").unwrap();
        assert_eq!(choose().unwrap_err(), message);
        std::fs::write(&stamp, "ogbench==1.0\n").unwrap();
        assert!(choose().unwrap_err().contains("other packages than this version of album expects"));
        std::fs::write(&stamp, REQUIREMENTS).unwrap();
        assert_eq!(choose(), Ok(Python::in_folder(folder.path())));
    }
}
