//! Minari's layout: `data/main_data.hdf5` and `data/metadata.json`, written by Python, which has an HDF5
//! library.

use std::path::Path;
use std::process::Stdio;

use album_base::atomic::AtomicFolder;
use album_data::ActionSpace;

use crate::env::EnvShape;
use crate::python::{Python, WorkerError};
use crate::recording::play::RecordError;

const SCRIPT: &str = include_str!("minari.py");

/// Refuses a Python without HDF5 before anything is recorded.
pub fn check_minari(python: &Python) -> Result<(), RecordError> {
    run(python, &["check"])
}

/// Converts a recorded file to a Minari dataset folder, atomically.
///
/// Observations are flat vectors as in the file, whatever the environment's observation space.
pub fn write_minari(
    file: &Path,
    folder: &Path,
    shape: &EnvShape,
    env: &str,
    python: &Python,
) -> Result<(), RecordError> {
    let target = AtomicFolder::create(folder).map_err(RecordError::io(folder))?;
    let actions = match &shape.actions {
        ActionSpace::Discrete { n } => {
            serde_json::json!({"type": "Discrete", "dtype": "int64", "start": 0, "n": n})
        }
        ActionSpace::Continuous { low, high } => {
            // JSON has no infinity, but Python's reader, which Minari uses, accepts it.
            let bounds = |bounds: &[f32]| bounds.iter().map(|x| x.to_string()).collect::<Vec<_>>();
            serde_json::json!({"type": "Box", "dtype": "float32", "low": bounds(low), "high": bounds(high)})
        }
    };
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let (from, to) = (file.display().to_string(), target.path().display().to_string());
    run(python, &["write", &from, &to, &name, env, &actions.to_string()])?;
    target.commit().map_err(RecordError::io(folder))
}

fn run(python: &Python, args: &[&str]) -> Result<(), RecordError> {
    let interpreter = || python.interpreter().to_owned();
    let mut command = python.command();
    command.args(["-c", SCRIPT]).args(args).stdin(Stdio::null());
    let output = command.output().map_err(|source| {
        RecordError::Env(
            WorkerError::NotStarted { setup: "gymnasium", interpreter: interpreter(), source }.into(),
        )
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let last = said.lines().last().unwrap_or_default();
    let error = match last.strip_prefix("ModuleNotFoundError: No module named ") {
        Some(module) => {
            let module = module.trim_matches('\'').to_owned();
            WorkerError::NoModule { setup: "gymnasium", interpreter: interpreter(), module }
        }
        None => {
            let (environment, reason) = ("Minari's layout".to_owned(), last.to_owned());
            WorkerError::Failed { environment, reason, said }
        }
    };
    Err(RecordError::Env(error.into()))
}
