//! `album data import`, and training from the imported columns.

#![allow(clippy::unwrap_used)] // helpers of tests

use crate::common;

use album_data::NpzWriter;
use album_data::ogbench::MazeSize;
use album_data::table::{ColumnData, TableWriter};
use album_envs::navigate::{Recipe, record};
use common::{fails, json, snapshot};
use std::num::NonZero;
use std::path::Path;
use std::process::{Command, Output};

const TASK: &str = "pointmaze-medium-navigate-singletask-task1-v0";

/// Writes a small PointMaze dataset.
fn data(path: &Path, seed: u64) {
    let recipe = Recipe { episodes: 10, rows: 100, ..Recipe::train(MazeSize::Medium, seed) };
    record(&recipe, NonZero::<usize>::MIN).write(path, &recipe).unwrap();
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    data(&folder.path().join("data.npz"), 1);
    folder
}

fn train<'a>(data: &'a str, out: &'a str, steps: &'a str) -> Vec<&'a str> {
    let mut args =
        vec!["train", TASK, "--data", data, "--out", out, "--json", "--steps", steps, "--threads", "1"];
    args.extend(["--set", "hidden=[8,8]", "--set", "batch_size=16", "--set", "log_every=10"]);
    args.extend(["--eval-episodes", "0", "--save-every", "10"]);
    args
}

#[test]
fn training_from_columns_is_training_from_the_file() {
    let folder = folder();
    let path = folder.path();
    let report = json(path, &["data", "import", "data.npz", "--task", TASK, "--json"]);
    assert_eq!(report["folder"], "data.columns");
    assert_eq!((report["transitions"].as_u64(), report["episodes"].as_u64()), (Some(990), Some(10)));
    assert_eq!(report["columns"]["observations"], 2);
    json(path, &["data", "import", "data.columns", "--verify", "--json"]);

    let whole = json(path, &train("data.npz", "file", "20"))["weights_sha256"].clone();
    assert_eq!(json(path, &train("data.columns", "columns", "20"))["weights_sha256"], whole);

    // A run started from the file resumes from the columns: the data has the same hash.
    let config = path.join("file/config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    assert!(text.contains("data.npz"), "{text}");
    std::fs::write(&config, text.replace("data.npz", "data.columns")).unwrap();
    assert_eq!(json(path, &["resume", "file", "--json"])["weights_sha256"], whole);
}

#[test]
fn training_says_that_the_rewards_of_a_file_are_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let xy: Vec<f32> = (0..40).map(|i| i as f32 / 2.0).collect();
    let mut npz = NpzWriter::create(folder.path().join("data.npz")).unwrap();
    npz.array_f32("observations", &[20, 2], &xy).unwrap();
    npz.array_f32("actions", &[20, 2], &[0.5; 40]).unwrap();
    npz.array_f32("qpos", &[20, 2], &xy).unwrap();
    npz.array_f32("rewards", &[20], &[1.0; 20]).unwrap();
    npz.array_bool("terminals", &[20], &(0..20).map(|row| row == 19).collect::<Vec<_>>()).unwrap();
    npz.finish().unwrap();
    let output = common::album(folder.path(), &train("data.npz", "run", "10"));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}");
    assert!(
        message.contains("warning: array `rewards` is ignored: rewards and masks are those of the task"),
        "{message}"
    );
}

#[test]
fn folders_of_slices() {
    let folder = tempfile::tempdir().unwrap();
    let slices = folder.path().join("walks-100m-v0");
    std::fs::create_dir(&slices).unwrap();
    for (name, seed) in [("walks-001.npz", 1), ("walks-000.npz", 2), ("walks-val.npz", 3)] {
        data(&slices.join(name), seed);
    }
    let report = json(folder.path(), &["data", "import", "walks-100m-v0", "--json"]);
    assert_eq!(report["folder"], "walks-100m-v0.columns");
    assert_eq!(report["episodes"], 20);
    let order: Vec<_> = report["sources"].as_array().unwrap().iter().map(|s| s.as_str().unwrap()).collect();
    assert!(order[0].ends_with("walks-000.npz") && order[1].ends_with("walks-001.npz"), "{order:?}");
    let (a, b) = ("walks-100m-v0/walks-000.npz", "walks-100m-v0/walks-001.npz");
    fails(folder.path(), &["data", "import", a, b], 2, &["several files", "--out"]);
    json(folder.path(), &["data", "import", a, b, "--out", "both", "--json"]);
    let read = |path: &str| std::fs::read(folder.path().join(path)).unwrap();
    assert_eq!(read("both/observations.f32"), read("walks-100m-v0.columns/observations.f32"));
}

#[test]
fn refusals_leave_everything_as_it_was() {
    let folder = folder();
    let path = folder.path();
    std::fs::create_dir(path.join("empty")).unwrap();
    let before = snapshot(path);
    let task = "cube-single-play-singletask-v0";
    fails(path, &["data", "import", "data.npz", "--task", task], 3, &["data.npz", "cube-single"]);
    fails(
        path,
        &["data", "import", "data.npz", "--task", "cube-singel-play-singletask-v0"],
        3,
        &["did you mean"],
    );
    fails(path, &["data", "import", "none.npz"], 5, &["none.npz"]);
    fails(path, &["data", "import", "empty"], 3, &["empty: found a folder without data"]);
    fails(path, &["data", "import", "data.npz", "--out", "missing/folder"], 5, &["missing/folder"]);
    fails(path, &["data", "import"], 2, &["SOURCE"]);
    fails(path, &["data", "import", "data.npz", "--verify"], 3, &["data.npz"]);
    assert_eq!(snapshot(path), before);
    json(path, &["data", "import", "data.npz", "--json"]);
    fails(path, &["data", "import", "data.npz"], 3, &["data.columns", "already exists", "--force"]);
    json(path, &["data", "import", "data.npz", "--force", "--json"]);
}

#[test]
fn own_rewards_and_every_transition_are_kept_and_the_rest_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut npz = NpzWriter::create(folder.path().join("own.npz")).unwrap();
    npz.array_f32("observations", &[3, 1], &[0.0, 1.0, 5.0]).unwrap();
    npz.array_f32("next_observations", &[3, 1], &[1.0, 2.0, 6.0]).unwrap();
    npz.array_f32("actions", &[3, 1], &[0.1, 0.2, 0.3]).unwrap();
    npz.array_f32("rewards", &[3], &[1.0, 2.0, 3.0]).unwrap();
    npz.array_f32("infos", &[3], &[0.0; 3]).unwrap();
    npz.array_bool("terminals", &[3], &[false, true, true]).unwrap();
    npz.finish().unwrap();
    // A single flag column is ambiguous.
    fails(
        folder.path(),
        &["data", "import", "own.npz"],
        2,
        &["`terminals`", "--ends terminal or --ends timeout"],
    );
    let report = json(folder.path(), &["data", "import", "own.npz", "--ends", "terminal", "--json"]);
    assert_eq!((report["transitions"].as_u64(), report["episodes"].as_u64()), (Some(3), Some(2)));
    assert_eq!(
        (report["columns"]["rewards"].as_u64(), report["columns"]["masks"].as_u64()),
        (Some(1), Some(1))
    );
    assert!(report["warnings"][0].as_str().unwrap().contains("not read: `infos`"), "{report}");
    let [file, columns] = ["own.npz", "own.columns"].map(|data| {
        let ends: &[&str] = if data == "own.npz" { &["--ends", "terminal"] } else { &[] };
        let args = [&["data", "inspect", data, "--gamma", "0.5", "--json"], ends].concat();
        let mut report = json(folder.path(), &args);
        let warnings = report["warnings"].take();
        assert_eq!(warnings.to_string().contains("infos"), data == "own.npz", "{warnings}");
        [report["reward_sum"].take(), report["v_star"].take(), report["transitions"].take()]
    });
    assert_eq!(file, columns);
    assert_eq!(file[0], 6.0);
}

/// Runs `album` after shell commands that set limits.
#[cfg(unix)]
fn limited(folder: &Path, limits: &str, args: &[&str]) -> Output {
    Command::new("sh")
        .args(["-c", &format!("{limits}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_album")])
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap()
}

#[cfg(unix)]
#[test]
fn a_disk_that_fills_up_leaves_nothing_behind() {
    let folder = folder();
    let before = snapshot(folder.path());
    // `ulimit -f 1` limits files to one block; with SIGXFSZ ignored, larger writes fail.
    let output = limited(folder.path(), "trap '' XFSZ; ulimit -f 1", &["data", "import", "data.npz"]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{message}");
    assert!(message.contains("File too large"), "{message}");
    assert_eq!(snapshot(folder.path()), before);
}

/// On Linux the data limit counts a program's allocations but not the files it maps.
#[cfg(target_os = "linux")]
#[test]
fn data_larger_than_the_memory_can_be_trained_on() {
    const ROWS: usize = 600_000;
    const TASK: &str = "puzzle-4x4-play-singletask-task1-v0";
    const KILOBYTES: usize = 80_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    {
        // 211 MB of observations and actions; constant columns compress well and are quick to write.
        let mut npz = NpzWriter::create(path.join("large.npz")).unwrap();
        npz.array_f32("observations", &[ROWS, 83], &vec![0.25; ROWS * 83]).unwrap();
        npz.array_f32("actions", &[ROWS, 5], &vec![0.5; ROWS * 5]).unwrap();
        let terminals: Vec<bool> = (0..ROWS).map(|row| row % 1000 == 999).collect();
        npz.array_bool("terminals", &[ROWS], &terminals).unwrap();
        npz.array_i64("button_states", &[ROWS, 16], &vec![1; ROWS * 16]).unwrap();
        npz.finish().unwrap();
    }
    let limit = format!("ulimit -d {KILOBYTES}");
    let import = limited(path, &limit, &["data", "import", "large.npz", "--task", TASK]);
    assert!(import.status.success(), "{}", String::from_utf8_lossy(&import.stderr));
    let bytes = std::fs::metadata(path.join("large.columns/observations.f32")).unwrap().len();
    assert!(bytes > 2 * 1024 * KILOBYTES as u64, "{bytes}");

    let train = |data: &str| {
        let mut args = vec!["train", TASK, "--data", data, "--out", "run", "--json", "--steps", "20"];
        args.extend([
            "--set",
            "hidden=[8,8]",
            "--set",
            "batch_size=64",
            "--eval-episodes",
            "0",
            "--threads",
            "1",
        ]);
        limited(path, &limit, &args)
    };
    let from_file = train("large.npz");
    let message = String::from_utf8_lossy(&from_file.stderr);
    assert_eq!(from_file.status.code(), Some(3), "{message}");
    assert!(message.contains("array `observations`: not enough memory for 199200000 bytes"), "{message}");
    assert!(!path.join("run").exists());

    let from_columns = train("large.columns");
    assert!(from_columns.status.success(), "{}", String::from_utf8_lossy(&from_columns.stderr));
    let result: serde_json::Value = serde_json::from_slice(&from_columns.stdout).unwrap();
    assert_eq!(result["steps"], 20);
}

/// Ten million rows, 280 MB in memory, are imported in 120 MB.
#[cfg(target_os = "linux")]
#[test]
fn a_long_log_is_imported_in_little_memory() {
    const ROWS: usize = 1_000_000;
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    std::fs::create_dir(&log).unwrap();
    {
        let numbers =
            |factor: usize| ColumnData::Float32((0..ROWS).map(|i| (i * factor % 97) as f32).collect());
        let mut columns =
            vec![("episode".to_owned(), ColumnData::Int((0..ROWS).map(|i| i as i64 / 1000).collect()))];
        columns.extend((0..4).map(|i| (format!("obs_{i}"), numbers(i + 1))));
        columns.extend([("action".to_owned(), numbers(7)), ("reward".to_owned(), numbers(11))]);
        let ends = (0..ROWS).map(|i| i % 1000 == 999).collect();
        columns.push(("terminated".to_owned(), ColumnData::Bool(ends)));
        let part = log.join("part-0.parquet");
        TableWriter::write(&part, &columns).unwrap().commit().unwrap();
        for i in 1..10 {
            std::fs::copy(&part, log.join(format!("part-{i}.parquet"))).unwrap();
        }
    }
    let args = ["data", "import", "log", "--actions", "continuous", "--out", "log.columns", "--json"];
    let output = limited(folder.path(), "ulimit -d 120000", &args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let bytes = std::fs::metadata(folder.path().join("log.columns/observations.f32")).unwrap().len();
    assert_eq!(bytes, 4 * 4 * (10 * ROWS as u64 + 10_000)); // each episode has one final state more
}
