//! Running the binary as a user would.
#![allow(dead_code)] // each test file uses a part of it
#![allow(clippy::unwrap_used, clippy::expect_used)] // a helper of tests

use album_data::NpzWriter;
use album_data::ogbench::MazeSize;
use album_envs::navigate::{Recipe, record};
use serde_json::Value;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The program under test. `ALBUM_TEST_BINARY` names another build, to see whether a test fails on it.
pub fn program() -> PathBuf {
    std::env::var_os("ALBUM_TEST_BINARY").map_or_else(|| env!("CARGO_BIN_EXE_album").into(), PathBuf::from)
}

/// Runs a shell command line in `folder`, in which `album` is the program under test. It may take a minute.
pub fn shell(folder: &Path, line: &str) -> Output {
    let line = format!("album() {{ timeout 60 \"$ALBUM\" \"$@\"; }}; {line}");
    let mut shell = Command::new("bash");
    shell.args(["-c", &line]).current_dir(folder).env("ALBUM", program()).env_remove("ALBUM_PYTHON");
    shell.output().expect("a shell starts")
}

/// Runs `album`, which must end within a minute with this exit code and every one of `words` in its message.
pub fn refuses(folder: &Path, args: &[&str], code: i32, words: &[&str]) {
    let output = Command::new("timeout")
        .arg("60")
        .arg(program())
        .args(args)
        .current_dir(folder)
        .env_remove("ALBUM_PYTHON")
        .stdin(std::process::Stdio::null())
        .output()
        .expect("timeout starts");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {message}");
    for word in words {
        assert!(message.contains(word), "{args:?}: no `{word}` in: {message}");
    }
}

/// Creates a named pipe where a file is expected.
pub fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo starts").success());
}

/// Runs `album` in `folder`.
pub fn album(folder: &Path, args: &[&str]) -> Output {
    Command::new(program())
        .args(args)
        .current_dir(folder)
        .env_remove("ALBUM_PYTHON")
        .output()
        .expect("album starts")
}

/// Runs `album` and reads the one JSON object on its standard output.
pub fn json(folder: &Path, args: &[&str]) -> Value {
    let output = album(folder, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("standard output is one JSON object")
}

/// Runs `album`, expects this exit code, nothing on standard output, and every one of `words` in the message.
pub fn fails(folder: &Path, args: &[&str], code: i32, words: &[&str]) {
    let output = album(folder, args);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {message}");
    assert!(output.stdout.is_empty(), "{args:?} printed a result");
    for word in words {
        assert!(message.contains(word), "{args:?}: no `{word}` in: {message}");
    }
}

/// Records a PointMaze dataset of 20 short episodes, so that no test waits for a million transitions.
pub fn pointmaze_data(path: &Path) {
    let recipe = Recipe { episodes: 20, rows: 200, ..Recipe::train(MazeSize::Medium, 1) };
    record(&recipe, NonZero::<usize>::MIN).write(path, &recipe).unwrap();
}

/// A dataset of a chain 0 -> 1 -> 2 (absorbing), rewards 1 and 2.
pub struct Columns {
    pub states: Vec<i64>,
    pub actions: Vec<i64>,
    pub next_states: Vec<i64>,
    pub rewards: Vec<f64>,
    pub terminals: Vec<bool>,
}

impl Columns {
    pub fn chain() -> Self {
        Columns {
            states: vec![0, 1],
            actions: vec![0, 0],
            next_states: vec![1, 2],
            rewards: vec![1.0, 2.0],
            terminals: vec![false, true],
        }
    }

    pub fn write(&self, folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(name);
        let mut npz = NpzWriter::create(&path).unwrap();
        npz.array_i64("states", &[self.states.len()], &self.states).unwrap();
        npz.array_i64("actions", &[self.actions.len()], &self.actions).unwrap();
        npz.array_i64("next_states", &[self.next_states.len()], &self.next_states).unwrap();
        npz.array_f64("rewards", &[self.rewards.len()], &self.rewards).unwrap();
        npz.array_bool("terminals", &[self.terminals.len()], &self.terminals).unwrap();
        npz.finish().unwrap();
        path
    }
}

/// All files of a folder, with their contents.
pub fn snapshot(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), std::fs::read(&path).unwrap_or_default()))
        .collect();
    files.sort();
    files
}

/// The interpreter with the pinned packages that `cargo xtask test` sets up; without it, the test is reported
/// as skipped.
pub fn python() -> Option<PathBuf> {
    let python = std::env::var_os("ALBUM_TEST_PYTHON").map(PathBuf::from);
    if python.is_none() {
        album_testing::skip("python", "ALBUM_TEST_PYTHON is not set; `cargo xtask test` sets it");
    }
    python
}
