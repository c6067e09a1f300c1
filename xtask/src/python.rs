//! The private Python environment under `target/`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// An environment with the pinned packages.
pub struct Python {
    /// Its interpreter.
    pub interpreter: PathBuf,
    bin: PathBuf,
    libclang: PathBuf,
}

/// Makes the environment `name` under the target directory from `pins` in `xtask/`, unless it is there with the same pins.
pub fn environment(root: &Path, name: &str, pins: &str) -> Result<Python, String> {
    let requirements = root.join("xtask").join(pins);
    let pins =
        std::fs::read_to_string(&requirements).map_err(|e| format!("{}: {e}", requirements.display()))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let folder = target.join(name);
    let bin = folder.join(if cfg!(windows) { "Scripts" } else { "bin" });
    let interpreter = bin.join(if cfg!(windows) { "python.exe" } else { "python" });
    // Written last, so that an interrupted set-up is done again.
    let stamp = folder.join("album-pins.txt");
    if std::fs::read_to_string(&stamp).ok().as_deref() != Some(&pins) {
        eprintln!("== setting up Python packages in {}", folder.display());
        let _ = std::fs::remove_file(&stamp);
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv", "--clear"]).arg(&folder);
        run(venv, "python3 with its venv module is needed (on Debian: apt install python3 python3-venv)")?;
        let mut pip = Command::new(&interpreter);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
        pip.arg(&requirements);
        run(pip, "the pinned packages in xtask/ could not be installed; is the package index reachable?")?;
        std::fs::write(&stamp, &pins).map_err(|e| format!("{}: {e}", stamp.display()))?;
    }
    let libclang = site_packages(&folder)?.join("clang").join("native");
    Ok(Python { interpreter, bin, libclang })
}

impl Python {
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

fn run(mut command: Command, hint: &str) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?} failed ({status}): {hint}")),
        Err(e) => Err(format!("cannot start {command:?} ({e}): {hint}")),
    }
}
