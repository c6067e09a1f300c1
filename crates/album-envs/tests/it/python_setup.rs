//! Set-ups with fake interpreters, one for each thing that can be missing.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use album_envs::python::{Python, install, set_up_from};
use std::path::{Path, PathBuf};

const PINS: &str =
    "# comment\n# pip: --no-deps\nnumpy==2.4.6; python_version >= \"3.11\"\n\nogbench==1.2.2\n";

/// Prints its version; `-m venv FOLDER` creates a folder with an interpreter whose pip writes its arguments
/// to `pip.txt`.
const GOOD: &str = r#"
if [ "$1" = -c ]; then echo 3.12; exit; fi
for folder in "$@"; do :; done
mkdir -p "$folder/bin"
cat > "$folder/bin/python" <<'END'
#!/bin/sh
if [ "$1" = -c ]; then echo 3.12; exit; fi
echo "Collecting numpy"
echo "  Downloading numpy.whl (16 MB)"
PIP
for argument in "$@"; do echo "$argument" >> "${0%/bin/python}/pip.txt"; done
END
chmod +x "$folder/bin/python"
"#;

struct Case {
    folder: tempfile::TempDir,
    base: PathBuf,
}

impl Case {
    /// An interpreter that runs this script.
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("python3");
        album_testing::script(&base, &format!("echo run >> {}/runs\n{script}", folder.path().display()));
        Self { folder, base }
    }

    /// An interpreter whose pip runs this script.
    fn with_pip(pip: &str) -> Self {
        Self::new(&GOOD.replace("PIP", pip))
    }

    fn target(&self) -> PathBuf {
        self.folder.path().join("deep/environment")
    }

    fn set_up(&self, pins: &str) -> (Result<Python, String>, Vec<String>) {
        for _ in 0..50 {
            let mut said = Vec::new();
            let say = &mut |line: &str| said.push(line.to_owned());
            match set_up_from(&self.base, &self.target(), pins, say).map_err(|e| e.to_string()) {
                // A file that was just written can be busy for a moment while another test forks.
                Err(e) if e.contains("busy") => std::thread::sleep(std::time::Duration::from_millis(20)),
                result => return (result, said),
            }
        }
        panic!("the script stays busy");
    }

    /// The message of a set-up that fails and leaves nothing behind.
    fn fails(&self, parts: &[&str]) {
        let message = self.set_up(PINS).0.unwrap_err();
        for part in parts {
            assert!(message.contains(part), "no `{part}` in: {message}");
        }
        assert!(!self.target().exists(), "{message}");
    }

    fn runs(&self) -> usize {
        std::fs::read_to_string(self.folder.path().join("runs")).unwrap_or_default().lines().count()
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn an_environment_is_made_once_and_again_for_other_pins() {
    let case = Case::with_pip(":");
    let (python, said) = case.set_up(PINS);
    assert_eq!(python.unwrap(), Python::at(case.target().join("bin/python")));
    assert!(said[0].starts_with("setting up Python 3.12 packages in "), "{said:?}");
    assert_eq!(said[1], "Downloading numpy.whl (16 MB)");
    let pip = read(&case.target().join("pip.txt"));
    assert!(pip.contains("install\n"), "{pip}");
    assert!(pip.ends_with("--no-deps\nnumpy==2.4.6; python_version >= \"3.11\"\nogbench==1.2.2\n"), "{pip}");
    let runs = case.runs();
    let (python, said) = case.set_up(PINS);
    assert!(python.is_ok() && said.is_empty() && case.runs() == runs);
    // Different pins: nothing of the old environment remains.
    std::fs::write(case.target().join("old"), "").unwrap();
    case.set_up("ogbench==1.2.3\n").0.unwrap();
    assert!(!case.target().join("old").exists());
    assert!(read(&case.target().join("pip.txt")).ends_with("off\nogbench==1.2.3\n"));
}

#[test]
fn an_interrupted_set_up_is_done_again() {
    let case = Case::with_pip(":");
    case.set_up(PINS).0.unwrap();
    std::fs::write(case.target().join("album-pins.txt"), "unfinished\n").unwrap();
    let (python, said) = case.set_up(PINS);
    assert!(python.is_ok() && !said.is_empty());
    // So is one whose interpreter is missing.
    std::fs::remove_file(case.target().join("bin/python")).unwrap();
    let (python, said) = case.set_up(PINS);
    assert!(python.is_ok() && !said.is_empty());
}

#[test]
fn other_folders_are_left_alone() {
    let case = Case::with_pip(":");
    std::fs::create_dir_all(case.target()).unwrap();
    std::fs::write(case.target().join("thesis.tex"), "text").unwrap();
    let message = case.set_up(PINS).0.unwrap_err();
    assert!(message.contains("found something that `album setup` did not make"), "{message}");
    assert_eq!(std::fs::read_dir(case.target()).unwrap().count(), 1);
    assert_eq!(read(&case.target().join("thesis.tex")), "text");
    // A file in place of the folder is refused.
    std::fs::remove_dir_all(case.target()).unwrap();
    std::fs::write(case.target(), "text").unwrap();
    assert!(case.set_up(PINS).0.is_err());
    assert_eq!(read(&case.target()), "text");
    // An empty folder is used.
    std::fs::remove_file(case.target()).unwrap();
    std::fs::create_dir(case.target()).unwrap();
    case.set_up(PINS).0.unwrap();
}

#[test]
fn no_python() {
    let mut case = Case::new("");
    case.base = case.folder.path().join("missing");
    case.fails(&["cannot start `", "apt install python3 python3-venv", "--python"]);
}

#[test]
fn not_a_python() {
    Case::new("echo hello there").fails(&["found exit status: 0 and `hello there`"]);
    Case::new("echo no such version: 3.9 >&2; exit 127").fails(&["exit status: 127", "no such version"]);
}

#[test]
fn an_old_python() {
    Case::new("echo 3.9").fails(&["found Python 3.9, expected 3.10 to 3.13"]);
    Case::new("echo 2.7").fails(&["found Python 2.7"]);
}

#[test]
fn no_venv() {
    let debian = "if [ \"$1\" = -c ]; then echo 3.11; exit; fi
        echo 'The virtual environment was not created successfully because ensurepip is not'
        echo 'available.'; exit 1";
    Case::new(debian).fails(&["has no venv module with pip", "apt install python3-venv", "ensurepip is not"]);
    let bare = "if [ \"$1\" = -c ]; then echo 3.11; exit; fi; echo \"$0: No module named venv\" >&2; exit 1";
    Case::new(bare).fails(&["apt install python3-venv"]);
    let other = "if [ \"$1\" = -c ]; then echo 3.11; exit; fi; echo 'Error: weather' >&2; exit 1";
    Case::new(other).fails(&["making a virtual environment", "Error: weather"]);
}

#[test]
fn no_index() {
    let said = "WARNING: Retrying (Retry(total=4)) after connection broken by NewConnectionError: Name or service not known
ERROR: No matching distribution found for ogbench==1.2.2";
    Case::with_pip(&format!("cat >&2 <<'X'\n{said}\nX\nexit 1")).fails(&[
        "the package index does not answer",
        "HTTPS_PROXY",
        "PIP_INDEX_URL",
        "No matching distribution",
    ]);
}

#[test]
fn no_package_for_this_python() {
    Case::with_pip("echo 'ERROR: No matching distribution found for mujoco==4.0.0' >&2; exit 1")
        .fails(&["does not exist for Python 3.12 on this system", "mujoco==4.0.0"]);
    Case::with_pip("echo 'error: subprocess-exited-with-error' >&2; exit 1")
        .fails(&["installing the packages"]);
}

#[test]
fn no_space() {
    Case::with_pip("echo 'ERROR: Could not install: [Errno 28] No space left on device' >&2; exit 1")
        .fails(&["deep/environment: no space left; about 1 GB is needed"]);
    let venv = "if [ \"$1\" = -c ]; then echo 3.11; exit; fi; echo 'OSError: [Errno 28]' >&2; exit 1";
    Case::new(venv).fails(&["no space left"]);
}

#[test]
fn further_packages_leave_the_pinned_ones_alone() {
    let case = Case::with_pip(":");
    case.set_up(PINS).0.unwrap();
    let say = &mut |_: &str| {};
    install(&case.target(), &["h5py".into(), "minigrid>=3".into()], PINS, say).unwrap();
    let pip = read(&case.target().join("pip.txt"));
    let constraints = case.target().join("album-constraints.txt");
    let end = format!("off\n--constraint\n{}\nh5py\nminigrid>=3\n", constraints.display());
    assert!(pip.ends_with(&end), "{pip}");
    assert!(read(&constraints).contains("ogbench==1.2.2\n") && !read(&constraints).contains('#'));
    // The environment is still the pinned one.
    assert!(case.set_up(PINS).1.is_empty());
    let message = install(&case.target(), &["--user".into()], PINS, say).unwrap_err().to_string();
    assert!(message.contains("found `--user`, expected the name of a package"), "{message}");
}
