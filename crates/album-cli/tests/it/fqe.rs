//! `album fqe` as a user runs it.

use crate::common::{album, fails, json, pointmaze_data};
use serde_json::Value;
use std::path::Path;

fn train(folder: &Path, task: &str, more: &[&str]) {
    let few = ["--steps", "20", "--set", "hidden=[8]", "--set", "eval_episodes=0", "--out", "run"];
    let output = album(folder, &[&["train", task][..], &few, more].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn is_estimate(value: &Value) -> bool {
    let number = |key: &str| value[key].as_f64().unwrap();
    keys(value).len() == 3 && number("low") <= number("mean") && number("mean") <= number("high")
}

#[test]
fn choices_have_the_documented_json() {
    let folder = tempfile::tempdir().unwrap();
    train(folder.path(), "mudworld-4-eps-greedy", &["--holdout", "0.2"]);
    let found = json(folder.path(), &["fqe", "run", "--updates", "20", "--json"]);
    assert!(is_estimate(&found["policy"]) && is_estimate(&found["behaviour"]["estimated"]), "{found}");
    assert_eq!(keys(&found["behaviour"]), ["estimated", "observed"]);
    assert!(found["behaviour"]["observed"].is_f64());
    let verdicts = ["better", "worse", "cannot tell", "not calibrated"];
    assert!(verdicts.contains(&found["verdict"].as_str().unwrap()));
    for key in [
        "td_error",
        "action_distance",
        "support",
        "unseen",
        "agent_value",
        "calibration_gap",
        "observed_tail",
    ] {
        assert!(found["diagnostics"].get(key).is_some(), "{key}: {found}");
    }
    assert!(is_estimate(&found["importance"]["dr"]) && is_estimate(&found["importance"]["pdis"]));
    assert!(found["importance"]["effective_sample_size"].is_f64());
    assert!(found.get("calibration").is_none(), "only the page shows single episodes");

    let text = album(folder.path(), &["fqe", "run", "--updates", "20"]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("verdict: ") && text.contains("effective sample size"), "{text}");

    fails(folder.path(), &["fqe", "run", "--columns", "obs=x"], 2, &["--data SOURCE"]);
    fails(folder.path(), &["fqe", "run", "--propensity", "p"], 2, &["--propensity"]);
    fails(folder.path(), &["fqe", "nowhere"], 5, &["nowhere"]);
}

#[test]
fn a_task_of_ogbench_with_a_share_held_out_or_another_file() {
    let folder = tempfile::tempdir().unwrap();
    pointmaze_data(&folder.path().join("maze.npz"));
    let task = "pointmaze-medium-navigate-singletask-v0";
    train(folder.path(), task, &["--data", "maze.npz", "--holdout", "0.3"]);
    let found = json(folder.path(), &["fqe", "run", "--updates", "20", "--json"]);
    assert_eq!(found["episodes"], 6);
    assert!(found.get("importance").is_none());
    let found = json(folder.path(), &["fqe", "run", "--updates", "20", "--data", "maze.npz", "--json"]);
    assert_eq!(found["episodes"], 20);
    let page = std::fs::read_to_string(folder.path().join("run/report.html")).unwrap();
    assert!(page.contains("Off-policy evaluation"));
}
