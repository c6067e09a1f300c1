//! The private Python environments under `target/`, made by the code that `album setup` runs.

use album_envs::python::{self, Python};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The tools of `cargo xtask`: what builds HiGHS, and the peers that album is checked against.
pub struct Tools {
    /// Their interpreter.
    pub interpreter: PathBuf,
    bin: PathBuf,
    libclang: PathBuf,
}

/// The environment with the tools.
pub fn tools(root: &Path) -> Result<Tools, String> {
    let python = pinned(root, "python", "requirements.txt")?;
    let interpreter = python.interpreter().to_path_buf();
    let bin = interpreter.parent().map(Path::to_path_buf).unwrap_or_default();
    let libclang = site_packages(bin.parent().unwrap_or(&bin))?.join("clang").join("native");
    Ok(Tools { interpreter, bin, libclang })
}

/// The environment with JAX and PyTorch.
pub fn peers(root: &Path) -> Result<Python, String> {
    pinned(root, "python-peers", "requirements-peers.txt")
}

/// The environment with `ogbench`.
pub fn ogbench() -> Result<Python, String> {
    set_up("python-ogbench", python::REQUIREMENTS)
}

/// The environment `name` under the target directory, with the pins of a file in `xtask/`.
fn pinned(root: &Path, name: &str, pins: &str) -> Result<Python, String> {
    let file = root.join("xtask").join(pins);
    let requirements = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    set_up(name, &requirements)
}

fn set_up(name: &str, requirements: &str) -> Result<Python, String> {
    let say = &mut |line: &str| eprintln!("== {line}");
    python::set_up(&crate::target().join(name), requirements, say).map_err(|e| e.to_string())
}

impl Tools {
    /// Lets a command find cmake and libclang, and the tests the interpreter.
    pub fn apply(&self, command: &mut Command) {
        let mut path = vec![self.bin.clone()];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        if let Ok(path) = std::env::join_paths(path) {
            command.env("PATH", path);
        }
        command.env("LIBCLANG_PATH", &self.libclang).env("ALBUM_TEST_PYTHON", &self.interpreter);
    }
}

fn site_packages(folder: &Path) -> Result<PathBuf, String> {
    if cfg!(windows) {
        return Ok(folder.join("Lib").join("site-packages"));
    }
    let lib = folder.join("lib");
    let entries = std::fs::read_dir(&lib).map_err(|e| format!("{}: {e}", lib.display()))?;
    entries
        .flatten()
        .map(|entry| entry.path().join("site-packages"))
        .find(|path| path.is_dir())
        .ok_or_else(|| format!("no site-packages below {}", lib.display()))
}
