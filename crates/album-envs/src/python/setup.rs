//! Creates virtual environments with pinned packages.

use std::fs::{self, File, TryLockError};
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use super::{Python, PythonError};
use crate::error::EnvError;

/// Marks an environment as made here. It contains the pins once complete, so that an interrupted set-up is
/// repeated.
const STAMP: &str = "album-pins.txt";

/// The pins as constraints for further packages.
const CONSTRAINTS: &str = "album-constraints.txt";

/// Contents of the stamp until the set-up is complete.
const UNFINISHED: &str = "unfinished\n";

/// The oldest Python supported by the packages.
const OLDEST: (u32, u32) = (3, 10);

/// Lines of output that an error quotes.
const QUOTED: usize = 12;

/// Creates a virtual environment with pinned packages in `folder`, unless it exists with the same pins. `say`
/// receives progress messages.
///
/// Uses the `python3` in `PATH`; [`set_up_from`] uses any other.
pub fn set_up(folder: &Path, requirements: &str, say: &mut dyn FnMut(&str)) -> Result<Python, EnvError> {
    set_up_from(Path::new("python3"), folder, requirements, say)
}

/// [`set_up`] with another base interpreter.
///
/// A non-empty folder that was not made here is refused and left untouched. On a failure, nothing is left
/// behind.
pub fn set_up_from(
    base: &Path,
    folder: &Path,
    requirements: &str,
    say: &mut dyn FnMut(&str),
) -> Result<Python, EnvError> {
    let python = Python::in_folder(folder);
    if stamp(folder).as_deref() == Some(requirements) && version(python.interpreter()).is_ok() {
        return Ok(python);
    }
    // Checked before anything changes.
    let version = version(base)?;
    if parse(&version) < Some(OLDEST) {
        return Err(PythonError::TooOld { interpreter: base.to_owned(), found: version }.into());
    }
    if !may_be_made(folder).map_err(PythonError::io(folder))? {
        return Err(PythonError::NotOurs { folder: folder.to_owned() }.into());
    }
    fs::create_dir_all(folder).map_err(PythonError::io(folder))?;
    let mut lock = lock(folder, say)?;
    // Another process may have completed it in the meantime.
    if stamp(folder).as_deref() == Some(requirements) && self::version(python.interpreter()).is_ok() {
        return Ok(python);
    }
    say(&format!("setting up Python {version} packages in {}", folder.display()));
    let made = make(base, folder, &version, requirements, &mut lock, say);
    if made.is_err() {
        // Unlocked first: some systems cannot remove open files.
        drop(lock);
        let _ = fs::remove_dir_all(folder);
    }
    made?;
    Ok(python)
}

/// Installs further packages into an environment that [`set_up`] made for these requirements. Pinned packages
/// keep their versions.
pub fn install(
    folder: &Path,
    packages: &[String],
    requirements: &str,
    say: &mut dyn FnMut(&str),
) -> Result<(), EnvError> {
    if let Some(found) = packages.iter().find(|package| package.is_empty() || package.starts_with('-')) {
        return Err(PythonError::NotAPackage { found: found.clone() }.into());
    }
    let _lock = lock(folder, say)?;
    let pins: Vec<&str> = requirements.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    let constraints = folder.join(CONSTRAINTS);
    fs::write(&constraints, pins.join("\n") + "\n").map_err(PythonError::io(&constraints))?;
    let mut pip = pip(folder);
    pip.arg("--constraint").arg(&constraints).args(packages);
    say(&format!("installing {} in {}", packages.join(", "), folder.display()));
    let version = version(Python::in_folder(folder).interpreter())?;
    Ok(run(pip, say).map_err(|said| pip_failure(folder, &version, said))?)
}

/// `pip install` in an environment, without the packages.
fn pip(folder: &Path) -> Command {
    let mut pip = Command::new(Python::in_folder(folder).interpreter());
    // -I: ignore the caller's Python variables.
    pip.args([
        "-I",
        "-m",
        "pip",
        "install",
        "--no-input",
        "--disable-pip-version-check",
        "--progress-bar",
        "off",
    ]);
    pip
}

/// The pins of a complete environment.
pub(super) fn stamp(folder: &Path) -> Option<String> {
    fs::read_to_string(folder.join(STAMP)).ok().filter(|pins| pins != UNFINISHED)
}

/// Whether a folder does not exist, is empty, or was made here.
fn may_be_made(folder: &Path) -> std::io::Result<bool> {
    match fs::read_dir(folder) {
        Ok(mut entries) => Ok(folder.join(STAMP).is_file() || entries.next().is_none()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(true),
        Err(e) => Err(e),
    }
}

/// Opens and locks the stamp, so that only one set-up runs at a time.
fn lock(folder: &Path, say: &mut dyn FnMut(&str)) -> Result<File, PythonError> {
    let path = folder.join(STAMP);
    let open = || File::options().read(true).write(true).create(true).truncate(false).open(&path);
    let file = open().map_err(PythonError::io(&path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            say(&format!("waiting for another set-up in {}", folder.display()));
            file.lock().map_err(PythonError::io(&path))?;
        }
        // A file system without locks: continue without one.
        Err(TryLockError::Error(_)) => {}
    }
    Ok(file)
}

fn make(
    base: &Path,
    folder: &Path,
    version: &str,
    requirements: &str,
    stamp: &mut File,
    say: &mut dyn FnMut(&str),
) -> Result<(), PythonError> {
    let stamp_path = folder.join(STAMP);
    let mut write = |text: &str| {
        stamp.set_len(0)?;
        stamp.rewind()?;
        stamp.write_all(text.as_bytes())?;
        stamp.sync_all()
    };
    write(UNFINISHED).map_err(PythonError::io(&stamp_path))?;
    clear(folder).map_err(PythonError::io(folder))?;
    let mut venv = Command::new(base);
    // -I: ignore the caller's Python variables.
    venv.args(["-I", "-m", "venv"]).arg(folder);
    run(venv, say).map_err(|said| venv_failure(base, folder, said))?;
    let mut pip = pip(folder);
    pip.args(requirements.lines().filter_map(pip_argument));
    run(pip, say).map_err(|said| pip_failure(folder, version, said))?;
    write(requirements).map_err(PythonError::io(&stamp_path))
}

/// The pip argument for a line of the requirements: the package, or the option of a comment `# pip: OPTION`.
fn pip_argument(line: &str) -> Option<&str> {
    let line = line.trim();
    match line.strip_prefix('#') {
        Some(comment) => comment.trim_start().strip_prefix("pip: "),
        None => Some(line).filter(|line| !line.is_empty()),
    }
}

/// Removes everything but the stamp.
fn clear(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name() == STAMP {
            continue;
        }
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    Ok(())
}

/// The version of an interpreter, such as `3.11`.
fn version(interpreter: &Path) -> Result<String, PythonError> {
    let mut command = Command::new(interpreter);
    command.args(["-c", "import sys; print('%d.%d' % sys.version_info[:2])"]).stdin(Stdio::null());
    let output = command
        .output()
        .map_err(|source| PythonError::NoPython { interpreter: interpreter.to_owned(), source })?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if !output.status.success() || parse(&version).is_none() {
        let said = [version, last_lines(&String::from_utf8_lossy(&output.stderr))].join("\n");
        let found = format!("{} and `{}`", output.status, said.trim());
        return Err(PythonError::NotPython { interpreter: interpreter.to_owned(), found });
    }
    Ok(version)
}

fn parse(version: &str) -> Option<(u32, u32)> {
    let (major, minor) = version.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Runs a command and forwards pip's progress. The error is the command's output, or why it cannot be
/// started.
fn run(mut command: Command, say: &mut dyn FnMut(&str)) -> Result<(), String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| format!("cannot start {command:?}: {e}"))?;
    let errors = child.stderr.take().map(|mut pipe| {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = pipe.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        })
    });
    let mut said = String::new();
    for line in
        child.stdout.take().into_iter().flat_map(|pipe| BufReader::new(pipe).lines()).map_while(Result::ok)
    {
        if ["Downloading", "Installing"].iter().any(|word| line.trim_start().starts_with(word)) {
            say(line.trim());
        } else if !line.starts_with("Ignoring ") {
            // Lines about other Python versions explain nothing.
            said.push_str(&line);
            said.push('\n');
        }
    }
    let status = child.wait().map_err(|e| format!("{command:?}: {e}"))?;
    said.push_str(&errors.and_then(|thread| thread.join().ok()).unwrap_or_default());
    if status.success() { Ok(()) } else { Err(format!("{said}({status})")) }
}

fn venv_failure(base: &Path, folder: &Path, said: String) -> PythonError {
    if no_space(&said) {
        return PythonError::NoSpace { folder: folder.to_owned() };
    }
    let missing = ["ensurepip", "No module named venv", "No module named 'venv'"];
    let words = last_lines(&said);
    match missing.iter().any(|word| said.contains(word)) {
        true => PythonError::NoVenv { interpreter: base.to_owned(), said: words },
        false => PythonError::Step { step: "making a virtual environment (python3 -m venv)", said: words },
    }
}

fn pip_failure(folder: &Path, version: &str, said: String) -> PythonError {
    if no_space(&said) {
        return PythonError::NoSpace { folder: folder.to_owned() };
    }
    let words = last_lines(&said);
    // Without a network, pip also reports that no version was found, so this is checked first.
    let network = [
        "onnection",
        "Retrying",
        "ProxyError",
        "Timeout",
        "timed out",
        "resolution",
        "SSLError",
        "HTTPError",
    ];
    if network.iter().any(|word| said.contains(word)) {
        return PythonError::NoIndex { said: words };
    }
    match said.contains("No matching distribution") || said.contains("requires a different Python") {
        true => PythonError::NoPackage { version: version.to_owned(), said: words },
        false => PythonError::Step { step: "installing the packages (pip install)", said: words },
    }
}

fn no_space(said: &str) -> bool {
    ["No space left on device", "Errno 28", "Disk quota exceeded"].iter().any(|word| said.contains(word))
}

/// The last lines of a program's output; long lines are truncated.
fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let cut = |line: &&str| line.chars().take(300).collect::<String>();
    lines[lines.len().saturating_sub(QUOTED)..].iter().map(cut).collect::<Vec<_>>().join("\n")
}
