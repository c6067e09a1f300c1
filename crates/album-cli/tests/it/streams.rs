//! Unwritable standard streams and signals: a run finishes as usual or saves its state.

use crate::common::{Columns, album, json, pointmaze_data, program, shell};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const TRAIN: &str = "train pointmaze-medium-navigate-singletask-task1-v0 --data data.npz --out run --steps 60 \
    --set hidden=[8,8] --set batch_size=16 --set log_every=10 --eval-every 30 --eval-episodes 2";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    pointmaze_data(&folder.path().join("data.npz"));
    folder
}

/// Trains with a shell command line and returns the exit code it prints; the run must be finished.
fn trained(line: &str) -> String {
    let folder = folder();
    let output = shell(folder.path(), &line.replace("TRAIN", TRAIN));
    let result =
        std::fs::read(folder.path().join("run/result.json")).unwrap_or_else(|_| panic!("{line}: no result"));
    let result: serde_json::Value = serde_json::from_slice(&result).unwrap();
    assert_eq!((&result["finished"], &result["steps"]), (&true.into(), &60.into()), "{line}");
    assert!(folder.path().join("run/report.html").is_file(), "{line}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_failing_standard_error_does_not_end_a_run() {
    assert_eq!(trained("album TRAIN >/dev/null 2>/dev/full; echo $?"), "0");
    assert_eq!(trained("album TRAIN >/dev/null 2>&-; echo $?"), "0");
    // The reader closes the pipe after one line.
    assert_eq!(
        trained("{ album TRAIN 2>&1 >/dev/null; echo $? >code; } | head -1 >/dev/null; cat code"),
        "0"
    );
}

#[test]
fn a_failing_standard_output_is_told_after_the_run_is_saved() {
    assert_eq!(trained("album TRAIN >/dev/full 2>/dev/null; echo $?"), "5");
    assert_eq!(trained("album TRAIN >/dev/full 2>/dev/full; echo $?"), "5");
    assert_eq!(trained("{ album TRAIN 2>/dev/null; echo $? >code; } | head -0; cat code"), "0");
}

/// Every command that writes to standard error, with a full one.
#[test]
fn other_commands_have_the_same_end_with_a_full_standard_error() {
    let folder = folder();
    let mut data = Columns::chain();
    data.next_states[0] = 2; // a warning: the next row starts elsewhere
    data.write(folder.path(), "table.npz");
    std::fs::write(folder.path().join("log.csv"), "episode,obs,action,reward\n0,1,0.5,0\n0,2,1.5,1\n")
        .unwrap();
    for (line, code) in [
        ("solve table.npz", "0"),
        ("data import log.csv --out log.columns", "0"),
        ("data generate pointmaze-medium-navigate-v0 --episodes 2 --out cache", "0"),
        ("solve missing.npz", "5"),
        ("train --steps none", "2"),
        (
            "data fetch pointmaze-medium-navigate-v0 --from http://127.0.0.1:9 --patience 0.01 --out cache2",
            "5",
        ),
    ] {
        let output = shell(folder.path(), &format!("album {line} >/dev/null 2>/dev/full; echo $?"));
        assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), code, "{line}");
    }
}

fn wait_for(path: &Path, bytes: u64) {
    for _ in 0..20_000 {
        if std::fs::metadata(path).map_or(0, |found| found.len()) >= bytes {
            return;
        }
        std::thread::sleep(Duration::from_millis(3));
    }
    panic!("{} stays short", path.display());
}

/// Closing a terminal sends SIGHUP.
#[test]
fn a_closed_terminal_saves_the_state() {
    // A process started with SIGHUP ignored passes that on to its children.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or("0").trim();
    if u64::from_str_radix(ignored, 16).is_ok_and(|mask| mask & 1 == 1) {
        return album_testing::skip("hangup", "SIGHUP is ignored here");
    }
    let folder = folder();
    let line = TRAIN.replace("--steps 60", "--steps 100000 --eval-every 0 --save-every 100000");
    let line = line.replace("--eval-every 30", "");
    let mut child = Command::new(program())
        .args(line.split_whitespace())
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for(&folder.path().join("run/train.csv"), 200);
    Command::new("kill").args(["-HUP", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(75));
    let stopped = std::fs::read_dir(folder.path().join("run/checkpoints")).unwrap().count();
    assert_eq!(stopped, 1);
    let steps = json(folder.path(), &["eval", "run", "--episodes", "1", "--json"])["steps"].as_u64().unwrap();
    let longer = (steps + 10).to_string();
    let resumed = album(folder.path(), &["resume", "run", "--steps", &longer]);
    assert!(resumed.status.success(), "{}", String::from_utf8_lossy(&resumed.stderr));
}
