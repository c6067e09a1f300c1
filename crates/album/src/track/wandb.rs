//! Weights & Biases: the logs of a run, exported by its own Python package.

use crate::error::Error;
use crate::run::read_config;
use album_envs::Python;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

const SCRIPT: &str = include_str!("wandb.py");
/// The exit code by which the script says that wandb is missing.
const MISSING: i32 = 42;

/// What was exported.
#[derive(Clone, Debug, Serialize)]
pub struct Logged {
    /// The run.
    pub run: PathBuf,
    /// `offline` or `online`.
    pub mode: &'static str,
    /// The project.
    pub project: String,
    /// Rows of `train.csv` and `eval.csv`.
    pub rows: u64,
    /// Where wandb keeps it; `wandb sync` uploads an offline run from there.
    pub folder: PathBuf,
}

impl fmt::Display for Logged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folder = self.folder.display();
        write!(f, "{} steps logged in {folder}", self.rows)?;
        if self.mode == "offline" { write!(f, "\n`wandb sync {folder}` uploads it") } else { Ok(()) }
    }
}

/// Exports the logs of a run. The same run has the same id there, whenever it is exported.
pub fn log(run: &Path, project: &str, online: bool, python: Option<&Path>) -> Result<Logged, Error> {
    let config = read_config(run)?;
    let mode = if online { "online" } else { "offline" };
    let about = serde_json::json!({
        "run": std::path::absolute(run).map_err(Error::io(run))?,
        "project": project,
        "mode": mode,
        "name": format!("{}-{}-seed{}", config.problem, config.agent, config.seed),
        "config": config.to_toml()?.parse::<toml::Table>().map_err(|e| Error::Config(e.to_string()))?,
    });
    let python = Python::find(python)?;
    let output = python.command().args(["-c", SCRIPT, &about.to_string()]).stdin(Stdio::null()).output();
    let output = output.map_err(|e| Error::Tool(format!("{}: {e}", python.interpreter().display())))?;
    let (said, complaint) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let failed = |what: String| Error::Tool(format!("wandb in {}: {what}", python.interpreter().display()));
    if output.status.code() == Some(MISSING) {
        return Err(failed("not installed; `album setup gymnasium wandb` installs it".into()));
    }
    if !output.status.success() {
        return Err(failed(complaint.lines().last().unwrap_or("it failed").to_owned()));
    }
    #[derive(serde::Deserialize)]
    struct Said {
        rows: u64,
        folder: PathBuf,
    }
    // The package may print before it.
    let last = said.lines().last().unwrap_or_default();
    let Said { rows, folder } =
        serde_json::from_str(last).map_err(|e| failed(format!("it said `{}`: {e}", last.escape_debug())))?;
    Ok(Logged { run: run.to_path_buf(), mode, project: project.to_owned(), rows, folder })
}
