//! `--precision bf16`.

use crate::common::{fails, json, pointmaze_data};
use std::path::Path;

const TASK: &str = "pointmaze-medium-navigate-singletask-task1-v0";

fn train<'a>(out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["train", TASK, "--data", "data.npz", "--out", out, "--json", "--steps", "20"];
    args.extend(["--set", "hidden=[40,40]", "--set", "batch_size=16", "--eval-episodes", "0"]);
    args.extend_from_slice(more);
    args
}

fn config(folder: &Path, run: &str) -> String {
    std::fs::read_to_string(folder.join(run).join("config.toml")).unwrap()
}

#[test]
fn precision_is_part_of_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    pointmaze_data(&path.join("data.npz"));
    let one = json(path, &train("one", &["--precision", "bf16", "--threads", "1"]));
    let three = json(path, &train("three", &["--precision", "bf16", "--threads", "3"]));
    assert_eq!(one["weights_sha256"], three["weights_sha256"], "for any number of threads");
    let single = json(path, &train("single", &["--precision", "f32"]));
    assert_ne!(one["weights_sha256"], single["weights_sha256"]);
    assert!(config(path, "one").contains("precision = \"bf16\""), "{}", config(path, "one"));
    assert!(!config(path, "single").contains("precision"), "as files were before there was a choice");

    // Resumed as it is, it goes on; under another precision it is refused, and nothing changes.
    json(path, &["resume", "three", "--steps", "30", "--json"]);
    let edited = config(path, "one").replace("precision = \"bf16\"\n", "");
    std::fs::write(path.join("one/config.toml"), edited).unwrap();
    fails(path, &["resume", "one", "--steps", "30"], 3, &["train.precision", "bf16"]);
    fails(path, &train("bad", &["--precision", "fp8"]), 3, &["fp8", "bf16"]);
    assert!(!path.join("bad").exists());
}
