//! Private Python environments under `target/`, each with pinned packages.

use crate::{captured, command, root, run, target};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An environment: its folder under `target/`, the file with its pins, and further packages for the tests.
#[derive(Clone, Copy)]
pub struct Environment(&'static str, &'static str, &'static str);

/// NumPy, SciPy and HiGHS, the references for album's tests.
pub const TESTS: Environment = Environment("python", "xtask/requirements.txt", "");
/// The build tools of HiGHS.
pub const HIGHS: Environment = Environment("python-highs", "xtask/requirements-highs.txt", "");
/// JAX and PyTorch.
pub const PEERS: Environment = Environment("python-peers", "xtask/requirements-peers.txt", "");
/// The packages to build, test and use album_rl.
pub const WHEEL: Environment = Environment("python-wheel", "xtask/requirements-wheel.txt", "");
/// The CPU plugin of XLA, as `album setup xla` installs it.
pub const XLA: Environment = Environment("python-xla", "xtask/requirements-xla.txt", "");
/// The real OGBench and gymnasium, as `album setup gymnasium` installs them.
pub const OGBENCH: Environment =
    Environment("python-ogbench", "crates/album-envs/src/python/suites/requirements.txt", "h5py==3.16.0");

/// The variable that names the plugin of the tests.
pub const XLA_PLUGIN: &str = "ALBUM_XLA_PLUGIN";

impl Environment {
    /// Creates the environment unless it exists with the same pins; returns its interpreter.
    pub fn set_up(self) -> Result<PathBuf, String> {
        let Environment(name, pins, more) = self;
        let folder = target().join(name);
        let interpreter = folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
        let pins = root().join(pins);
        let pins = fs::read_to_string(&pins).map_err(|e| format!("{}: {e}", pins.display()))? + more;
        let stamp = folder.join("pins.txt");
        if fs::read_to_string(&stamp).is_ok_and(|made| made == pins) {
            return Ok(interpreter);
        }
        // An interrupted set-up is started over.
        let python = if cfg!(windows) { "python" } else { "python3" };
        let mut venv = command(python, &["-I", "-m", "venv", "--clear"]);
        venv.arg(&folder);
        run(&format!("{name}: venv"), venv)?;
        let mut pip = Command::new(&interpreter);
        pip.args(["-I", "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]);
        // A comment `# pip: OPTION` is an option, as for `album setup ogbench`.
        for line in pins.lines().map(str::trim).filter(|line| !line.is_empty()) {
            match line.strip_prefix('#') {
                Some(comment) => pip.args(comment.trim().strip_prefix("pip: ")),
                None => pip.arg(line),
            };
        }
        run(&format!("{name}: pip install"), pip)?;
        fs::write(&stamp, pins).map_err(|e| format!("{}: {e}", stamp.display()))?;
        Ok(interpreter)
    }
}

/// The library of the XLA plugin.
pub fn xla_plugin() -> Result<PathBuf, String> {
    let interpreter = XLA.set_up()?;
    let library = packages_of(&interpreter)?.join("xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so");
    if library.is_file() { Ok(library) } else { Err(format!("{}: there is no such file", library.display())) }
}

/// Where an environment has its packages.
fn packages_of(interpreter: &Path) -> Result<PathBuf, String> {
    let place = "import sysconfig; print(sysconfig.get_path('purelib'))";
    let said = Command::new(interpreter).args(["-c", place]).output().map_err(|e| format!("python: {e}"))?;
    Ok(PathBuf::from(String::from_utf8_lossy(&said.stdout).trim()))
}

/// Builds the package album_rl from what the workspace's tests have compiled, installs it and runs its tests; what they
/// said.
pub fn test_package(interpreter: &Path, log: &Path, plugin: Option<&Path>) -> Result<String, String> {
    let wheels = target().join("wheels");
    let _ = fs::remove_dir_all(&wheels);
    let mut maturin = python(interpreter, &["maturin", "build", "--quiet", "--compatibility", "linux"]);
    maturin.args(["--features", "workspace-features", "--interpreter"]).arg(interpreter);
    maturin.arg("--out").arg(&wheels).env("CARGO_TARGET_DIR", target());
    let mut pip = python(interpreter, &["pip", "install", "--quiet", "--no-deps", "--force-reinstall"]);
    pip.args(["--no-index", "--disable-pip-version-check", "--find-links"]).arg(&wheels).arg("album-rl");
    let mut tests = python(interpreter, &["pytest"]);
    tests.env("ALBUM_BINARY", target().join("debug/album")).env(album_testing::LOG, log);
    if let Some(plugin) = plugin {
        tests.env(XLA_PLUGIN, plugin);
    }
    if let Ok(with_onnxruntime) = TESTS.set_up() {
        tests.env("ALBUM_TEST_PYTHON", with_onnxruntime);
    }
    let steps = [("album_rl: wheel", maturin), ("album_rl: pip install", pip), ("album_rl: tests", tests)];
    steps.into_iter().map(|(what, command)| captured(what, command)).collect()
}

/// Runs a module of an environment, in the folder of the package.
fn python(interpreter: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(interpreter);
    command.args(["-I", "-m"]).args(args).current_dir(root().join("python"));
    command
}

/// Makes cmake and libclang available to a command.
pub fn with_highs(command: &mut Command) -> Result<(), String> {
    let interpreter = HIGHS.set_up()?;
    let bin = interpreter.parent().map(Path::to_path_buf).unwrap_or_default();
    let packages = packages_of(&interpreter)?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&path)));
    command.env("PATH", path.map_err(|e| e.to_string())?);
    command.env("LIBCLANG_PATH", packages.join("clang").join("native"));
    Ok(())
}
