//! `album reproduce` from the outside.

#![allow(clippy::unwrap_used)] // helpers of tests

use crate::common;

use common::{album, fails, json, snapshot};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// An experiment of two variants and two seeds on a small PointMaze dataset.
const TINY: &str = r#"
title = "A small comparison"
question = "Does it work?"
reference = "none"

[paper]
seeds = 1

[paper.tasks]
cube-single-play = [2]

[small]
seeds = 2

[small.tasks]
pointmaze-medium-navigate = [1]

[small.data]
pointmaze-medium-navigate = "data.npz"

[small.set]
steps = STEPS
eval_every = 0
eval_episodes = 2
save_every = 50
log_every = 10
hidden = [8, 8]
batch_size = 16

[[variant]]
label = "ALBUM"
method = "ALBUM"
agent = "album"

[[variant]]
label = "BC"
method = "BC"
agent = "bc"
"#;

fn folder(steps: u64, more: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    common::pointmaze_data(&folder.path().join("data.npz"));
    let text = TINY.replace("STEPS", &steps.to_string()) + more;
    std::fs::write(folder.path().join("tiny.toml"), text).unwrap();
    folder
}

const RUN: [&str; 4] = ["reproduce", "tiny.toml", "--jobs", "2"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&RUN[..], more].concat()
}

/// Weights and success rate of each run.
fn outcomes(folder: &Path, results: &str) -> BTreeMap<String, (String, String)> {
    let runs = std::fs::read_dir(folder.join(results).join("runs")).unwrap();
    runs.map(|entry| entry.unwrap().path())
        .map(|path| {
            let text = std::fs::read(path.join("result.json")).unwrap();
            let result: Value = serde_json::from_slice(&text).unwrap();
            assert_eq!(result["finished"], true, "{}", path.display());
            let id = path.file_name().unwrap().to_string_lossy().into_owned();
            (id, (result["weights_sha256"].to_string(), result["success"].to_string()))
        })
        .collect()
}

fn spawn(folder: &Path, args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_album"))
        .args(args)
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn status(folder: &Path) -> Value {
    json(folder, &["reproduce", "tiny.toml", "--status", "--json"])
}

/// Waits until a run has logged some steps without being finished.
fn wait_for_work(folder: &Path) {
    let begin = Instant::now();
    loop {
        let now = status(folder);
        let busy = |run: &Value| run["state"] == "running" && run["step"].as_u64().unwrap() >= 60;
        if now["runs"].as_array().unwrap().iter().any(busy) {
            return;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{now}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(unix)]
fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
}

#[test]
fn everything_is_run_once_and_reported() {
    let same =
        "[[variant]]\nlabel = \"ALBUM again\"\nmethod = \"ALBUM\"\nagent = \"album\"\nset = { k = 10 }\n";
    let folder = folder(60, same);
    let plan = json(folder.path(), &with(&["--dry-run", "--json"]));
    // The third variant equals the first, so they share their runs.
    assert_eq!(plan["runs"].as_array().unwrap().len(), 4, "{plan}");
    assert!(!folder.path().join("results").exists(), "a dry run starts nothing");

    let done = json(folder.path(), &with(&["--json"]));
    assert_eq!((done["finished"].as_u64(), done["failed"].as_u64()), (Some(4), Some(0)), "{done}");
    let first = outcomes(folder.path(), "results");
    assert_eq!(first.len(), 4);

    // `album train` with the planned command line gives the planned run.
    let run = &plan["runs"][0];
    let command: Vec<&str> = run["command"].as_str().unwrap().split(' ').skip(1).collect();
    let quoted: Vec<String> = command.iter().map(|word| word.replace('\'', "")).collect();
    // `hidden=[8, 8]` contains a space, which splits the quoted argument: rejoin it.
    let line = quoted.join(" ").replace("hidden=[8, 8]", "hidden=[8,8]");
    let mut words: Vec<&str> = line.split(' ').collect();
    words.extend(["--out", "alone", "--json"]);
    let alone = json(folder.path(), &words);
    assert_eq!(alone["weights_sha256"].to_string(), first[run["id"].as_str().unwrap()].0);

    // A second call runs nothing.
    let logs = snapshot(&folder.path().join("results/logs"));
    let again = album(folder.path(), &RUN);
    assert!(again.status.success());
    assert!(String::from_utf8_lossy(&again.stderr).contains("all 4 runs are finished already"));
    assert_eq!(snapshot(&folder.path().join("results/logs")), logs);

    // More seeds add runs; finished ones stay.
    let more = json(folder.path(), &with(&["--seeds", "0-2", "--variants", "BC", "--json"]));
    assert_eq!((more["finished"].as_u64(), more["runs"].as_array().unwrap().len()), (Some(3), 3));
    assert_eq!(outcomes(folder.path(), "results").len(), 5);
}

#[test]
fn a_failed_run_is_reported_and_stops_no_other() {
    let bad = "[[variant]]\nlabel = \"BC, wild\"\nmethod = \"BC\"\nagent = \"bc\"\nset = { lr = 1e38 }\n";
    let folder = folder(60, bad);
    let output = album(folder.path(), &RUN);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{message}");
    assert!(
        message.contains("the end of results/logs/bc-") && message.contains("1 more failed"),
        "{message}"
    );
    let now = status(folder.path());
    assert_eq!((now["finished"].as_u64(), now["failed"].as_u64()), (Some(4), Some(2)), "{now}");
    let failed = now["runs"].as_array().unwrap().iter().find(|run| run["state"] == "failed").unwrap();
    assert!(Path::new(failed["log"].as_str().unwrap()).starts_with("results/logs"));
    assert!(!failed["failure"].as_str().unwrap().is_empty());
    let text = album(folder.path(), &["reproduce", "tiny.toml", "--status"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("6 runs, 4 finished, 2 failed") && text.contains("exit 4"), "{text}");
}

#[test]
#[cfg(unix)]
fn stopped_and_killed_plans_end_as_if_nothing_had_happened() {
    let steps = 6000;
    let folder = folder(steps, "");
    let clean = with(&["--results", "clean"]);
    assert!(album(folder.path(), &clean).status.success());
    let expected = outcomes(folder.path(), "clean");

    // Stopped by a signal: every run saves its state.
    let mut plan = spawn(folder.path(), &RUN);
    wait_for_work(folder.path());
    signal(plan.id(), "-TERM");
    assert_eq!(plan.wait().unwrap().code(), Some(75));
    assert_eq!(status(folder.path())["running"], 0);

    // Killed: its child processes notice and stop.
    let mut plan = spawn(folder.path(), &RUN);
    wait_for_work(folder.path());
    signal(plan.id(), "-KILL");
    plan.wait().unwrap();
    let begin = Instant::now();
    while status(folder.path())["running"] != 0 {
        assert!(begin.elapsed() < Duration::from_secs(30), "a run went on without its executor");
        std::thread::sleep(Duration::from_millis(50));
    }

    // Two concurrent calls share the work.
    let mut other = spawn(folder.path(), &RUN);
    assert!(album(folder.path(), &RUN).status.success());
    assert!(other.wait().unwrap().success());
    assert_eq!(outcomes(folder.path(), "results"), expected);
    let status = status(folder.path());
    for run in status["runs"].as_array().unwrap() {
        let log = std::fs::read_to_string(folder.path().join(run["log"].as_str().unwrap())).unwrap();
        assert_eq!(log.matches("\nsuccess ").count() + usize::from(log.starts_with("success ")), 1, "{log}");
    }
}

#[test]
fn mistakes_are_named_and_nothing_is_started() {
    let folder = folder(60, "");
    let here = folder.path();
    let before = snapshot(here);
    fails(here, &["reproduce", "k-swep"], 3, &["no experiment `k-swep`", "did you mean `k-sweep`?"]);
    fails(here, &["reproduce", "none.toml"], 5, &["none.toml"]);
    fails(here, &["reproduce"], 2, &["NAME"]);
    fails(
        here,
        &with(&["--tasks", "cube-single-play"]),
        3,
        &["has no task `cube-single-play` at scale small"],
    );
    fails(here, &with(&["--seeds", "x"]), 2, &["invalid value 'x' for '--seeds", "0-7"]);
    fails(here, &with(&["--variants", "ALBAM"]), 3, &["no variant `ALBAM`", "did you mean `ALBUM`?"]);
    fails(here, &with(&["--run", "none"]), 3, &["no run `none`", "--dry-run"]);
    fails(here, &with(&["--memory", "0.01"]), 3, &["GiB", "nothing was started"]);
    // Missing data is reported before anything starts, with the command that gets it.
    let cache = here.join("no-cache");
    let output = Command::new(env!("CARGO_BIN_EXE_album"))
        .args(["reproduce", "tiny.toml", "--scale", "paper"])
        .current_dir(here)
        .env("ALBUM_CACHE", &cache)
        .env("HOME", &cache)
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{message}");
    assert!(message.contains("album data generate cube-single-play-v0"), "{message}");
    assert_eq!(snapshot(here), before);

    let text = TINY.replace("STEPS", "60").replace("save_every", "safe_every");
    std::fs::write(here.join("wrong.toml"), text).unwrap();
    fails(here, &["reproduce", "wrong.toml"], 3, &["unknown key `safe_every`", "did you mean `save_every`?"]);
    std::fs::write(here.join("wrong.toml"), TINY).unwrap();
    fails(here, &["reproduce", "wrong.toml"], 3, &["wrong.toml"]);

    std::fs::create_dir(here.join("other")).unwrap();
    std::fs::write(here.join("other/album-results.json"), r#"{"format": 2, "album": "9.0.0"}"#).unwrap();
    fails(here, &with(&["--results", "other"]), 3, &["format 2 of album 9.0.0", "--results DIR"]);
    std::fs::create_dir(here.join("thesis")).unwrap();
    std::fs::write(here.join("thesis/chapter1.tex"), "").unwrap();
    fails(here, &with(&["--results", "thesis"]), 3, &["is not a results folder"]);
    assert_eq!(snapshot(&here.join("thesis")).len(), 1);
}
