//! Exports the logs of a run to Weights & Biases through its Python package.

use crate::error::Error;
use crate::run::read_config;
use album_envs::Python;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

const SCRIPT: &str = include_str!("wandb.py");
/// Exit code of the script if wandb is missing.
const MISSING: i32 = 42;

/// Summary of an export.
#[derive(Clone, Debug, Serialize)]
pub struct Logged {
    /// The run directory.
    pub run: PathBuf,
    /// `offline` or `online`.
    pub mode: &'static str,
    /// Name of the project.
    pub project: String,
    /// Number of rows of `train.csv` and `eval.csv`.
    pub rows: u64,
    /// The directory that wandb writes to; `wandb sync` uploads an offline run from there.
    pub folder: PathBuf,
}

impl fmt::Display for Logged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folder = self.folder.display();
        write!(f, "{} steps logged in {folder}", self.rows)?;
        if self.mode == "offline" { write!(f, "\n`wandb sync {folder}` uploads it") } else { Ok(()) }
    }
}

/// Exports the logs of a run. A run keeps its wandb id across exports.
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
    // The package may print other lines before the result.
    let last = said.lines().last().unwrap_or_default();
    let Said { rows, folder } =
        serde_json::from_str(last).map_err(|e| failed(format!("it said `{}`: {e}", last.escape_debug())))?;
    Ok(Logged { run: run.to_path_buf(), mode, project: project.to_owned(), rows, folder })
}
