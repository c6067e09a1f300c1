//! From a recorded dataset to an evaluated policy, in the real environments. Needs a Python with ogbench.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::{album, fails, json};
use serde_json::Value;
use std::path::{Path, PathBuf};

const TASK: &str = "cube-single-play-singletask-task2-v0";

/// The interpreter with ogbench that `cargo xtask test` sets up; without it, the test is reported as skipped.
fn python() -> Option<PathBuf> {
    let python = std::env::var_os("ALBUM_PYTHON").map(PathBuf::from);
    if python.is_none() {
        album_testing::skip("python", "ALBUM_PYTHON is not set; `cargo xtask test` sets it");
    }
    python
}

fn train<'a>(python: &'a str, out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["train", TASK, "--data", "cube-single-play-v0.npz", "--out", out, "--json"];
    args.extend(["--steps", "60", "--eval-every", "20", "--save-every", "30"]);
    args.extend(["--set", "hidden=[8,8]", "--set", "batch_size=16", "--set", "log_every=10"]);
    args.extend(["--python", python]);
    args.extend_from_slice(more);
    args
}

fn same_files(folder: &Path, a: &str, b: &str) {
    for name in ["train.csv", "eval.csv", "episodes.jsonl", "checkpoints/step_000000060/agent.safetensors"] {
        let read = |run: &str| std::fs::read(folder.join(run).join(name)).unwrap();
        assert!(read(a) == read(b), "{name} of {a} and {b} differ");
    }
}

#[test]
fn a_recorded_dataset_becomes_an_evaluated_policy() {
    let Some(python) = python() else { return };
    let python = python.to_str().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    let generate = ["data", "generate", "cube-single-play", "--episodes", "2", "--out", "."];
    json(folder, &[&generate[..], &["--python", python, "--json"]].concat());

    // Two workers with training paused, or one worker beside one training thread: the same run.
    let first =
        json(folder, &train(python, "paused", &["--eval-episodes", "3", "--workers", "2", "--threads", "2"]));
    let beside =
        json(folder, &train(python, "beside", &["--eval-episodes", "3", "--workers", "1", "--threads", "1"]));
    assert_eq!(first["weights_sha256"], beside["weights_sha256"]);
    assert_eq!(first["evaluations"], beside["evaluations"]);
    same_files(folder, "paused", "beside");
    assert_eq!(first["versions"]["ogbench"], "1.2.2");
    assert!(first["versions"]["mujoco"].is_string(), "{first}");
    assert!(first["eval_seconds"].as_f64().unwrap() > 0.0);
    assert_eq!(first["evaluations"].as_array().unwrap().len(), 3);
    let written: Value =
        serde_json::from_slice(&std::fs::read(folder.join("paused/result.json")).unwrap()).unwrap();
    assert_eq!(written["versions"], first["versions"]);

    // `eval` gives the run's own result for any number of workers.
    let look = |workers: &str| {
        let args = ["eval", "paused", "--episodes", "3", "--workers", workers, "--python", python, "--json"];
        json(folder, &args)
    };
    let (one, three) = (look("1"), look("3"));
    assert_eq!(one["episodes"], three["episodes"]);
    assert_eq!(one["evaluations"][0], first["evaluations"][2]);
    assert_eq!((one["workers"].as_u64(), three["workers"].as_u64()), (Some(1), Some(3)));
    assert_eq!(one["versions"]["ogbench"], "1.2.2");
    let row = &one["episodes"][0];
    assert!(row["seed"].is_u64() && row["success"].is_boolean() && row["return"].is_f64(), "{row}");
    assert!(row["length"].as_u64().unwrap() <= 200, "{row}");

    // The critic's values beside the best values that the data supports.
    let critic =
        json(folder, &["eval", "paused", "--episodes", "1", "--critic", "--python", python, "--json"]);
    let (learned, star) = (&critic["critic"]["learned"], &critic["critic"]["v_star"]);
    let number = |value: &Value| value.as_f64().unwrap();
    assert!(number(&learned["value/v_max"]) >= number(&learned["value/v_mean"]));
    assert!((0.0..=1.0).contains(&number(&learned["critic/g_b_satisfied"])));
    assert!(number(&star["min"]) >= -198.67 && number(&star["max"]) <= 0.0, "{star}");

    // An earlier checkpoint can be evaluated; for a missing one, the message lists those that exist.
    let at = |step| ["eval", "paused", "--episodes", "1", "--step", step, "--python", python, "--json"];
    assert_eq!(json(folder, &at("30"))["steps"], 30);
    fails(folder, &at("31"), 3, &["no checkpoint of step 31", "30, 60"]);

    // Videos, where rendering is available.
    let film =
        album(folder, &["eval", "paused", "--episodes", "1", "--video", "1", "--python", python, "--json"]);
    let said = String::from_utf8_lossy(&film.stderr);
    if film.status.success() {
        let report: Value = serde_json::from_slice(&film.stdout).unwrap();
        let bytes = std::fs::read(folder.join(report["videos"][0].as_str().unwrap())).unwrap();
        assert!(bytes.starts_with(b"GIF89a") && bytes.len() > 10_000);
    } else {
        assert!(said.contains("libegl1") || said.contains("libosmesa6"), "{said}");
        assert!(!folder.join("paused/videos").exists());
    }
}

#[test]
fn a_python_without_ogbench_is_refused_before_there_is_a_run() {
    let Some(python) = common::python() else { return };
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    let observations = vec![0.5; 3 * 28];
    let mut npz = album_data::NpzWriter::create(folder.join("cube-single-play-v0.npz")).unwrap();
    npz.array_f32("observations", &[3, 28], &observations).unwrap();
    npz.array_f32("actions", &[3, 5], &[0.0; 15]).unwrap();
    npz.array_bool("terminals", &[3], &[false, false, true]).unwrap();
    npz.array_f32("qpos", &[3, 21], &[0.0; 63]).unwrap();
    npz.finish().unwrap();
    fails(
        folder,
        &train(python.to_str().unwrap(), "run", &[]),
        5,
        &["no module ogbench", "album setup ogbench"],
    );
    assert!(!folder.join("run").exists());
    // Without evaluation episodes, no environment is needed.
    let result = json(folder, &train("nowhere", "run", &["--eval-episodes", "0"]));
    assert_eq!(result["finished"], true);
}
