//! `album train`, `resume` and `eval` from the outside.

#![allow(clippy::unwrap_used)] // helpers of tests

use crate::common;

use album_train::Identity;
use album_train::checkpoint::{self, Checkpoint};
use common::{album, fails, json, snapshot};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A folder with a small PointMaze dataset, so that no test waits for a million transitions.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    common::pointmaze_data(&folder.path().join("data.npz"));
    folder
}

const TASK: &str = "pointmaze-medium-navigate-singletask-task1-v0";

fn train<'a>(out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["train", TASK, "--data", "data.npz", "--out", out, "--json", "--steps", "60"];
    args.extend(["--set", "hidden=[8,8]", "--set", "batch_size=16", "--set", "log_every=10"]);
    args.extend(["--eval-every", "30", "--eval-episodes", "2", "--save-every", "20"]);
    args.extend_from_slice(more);
    args
}

fn file(folder: &Path, path: &str) -> Vec<u8> {
    std::fs::read(folder.join(path)).unwrap()
}

#[test]
fn a_run_reports_what_the_contract_names_and_eval_looks_at_it() {
    let folder = folder();
    let r = json(folder.path(), &train("run", &[]));
    assert_eq!(r["task"], TASK);
    assert_eq!(
        (r["agent"].as_str(), r["seed"].as_u64(), r["steps"].as_u64()),
        (Some("album"), Some(0), Some(60))
    );
    assert!(r["success"].is_number() && r["ms_per_step"].is_number() && r["wall_seconds"].is_number());
    assert_eq!(r["evaluations"].as_array().unwrap().len(), 2);
    for key in ["step", "success", "return", "length"] {
        assert!(r["evaluations"][0][key].is_number(), "{key}");
    }
    assert_eq!(r["weights_sha256"].as_str().unwrap().len(), 64);
    assert!(r["parameters"].as_u64().unwrap() > 100 && r["versions"]["album"].is_string());
    let on_disk: serde_json::Value = serde_json::from_slice(&file(folder.path(), "run/result.json")).unwrap();
    assert_eq!(on_disk, r);
    for name in ["config.toml", "train.csv", "eval.csv", "report.html", "events.out.tfevents.album"] {
        assert!(!file(folder.path(), &format!("run/{name}")).is_empty(), "{name}");
    }

    let e = json(folder.path(), &["eval", "run", "--episodes", "3", "--json"]);
    assert_eq!(e["weights_sha256"], r["weights_sha256"]);
    assert_eq!(e["episodes"].as_array().unwrap().len(), 3);
    assert!(e["success"].is_number());
    let again = json(folder.path(), &["eval", "run", "--episodes", "3", "--json", "--threads", "2"]);
    assert_eq!(again["episodes"], e["episodes"]);
    // Native environments render frames too.
    let filmed = json(folder.path(), &["eval", "run", "--episodes", "3", "--video", "2", "--json"]);
    assert_eq!(filmed["episodes"], e["episodes"]);
    let videos = filmed["videos"].as_array().unwrap();
    assert_eq!(videos.len(), 2);
    assert!(file(folder.path(), videos[0].as_str().unwrap()).starts_with(b"GIF89a"));
}

#[test]
fn weights_depend_on_the_seed_and_not_on_threads() {
    let folder = folder();
    let weights = |out: &str, more: &[&str]| json(folder.path(), &train(out, more))["weights_sha256"].clone();
    let one = weights("one", &[]);
    assert_eq!(one, weights("two", &["--threads", "2"]));
    assert_ne!(one, weights("other", &["--seed", "1"]));
}

#[test]
fn a_stopped_run_goes_on_to_the_same_end() {
    let folder = folder();
    let args = |out: &'static str| {
        let mut args = vec!["train", TASK, "--data", "data.npz", "--out", out, "--json", "--steps", "4000"];
        args.extend(["--set", "hidden=[8,8]", "--set", "batch_size=16", "--set", "log_every=100"]);
        args.extend(["--eval-every", "0", "--eval-episodes", "2", "--save-every", "1000", "--threads", "1"]);
        args
    };
    let whole = json(folder.path(), &args("whole"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_album"))
        .args(args("stopped"))
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Waits until it trains, then stops it.
    while std::fs::metadata(folder.path().join("stopped/train.csv")).map_or(0, |m| m.len()) < 200 {
        std::thread::sleep(Duration::from_millis(2));
    }
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(75));
    let resumed = json(folder.path(), &["resume", "stopped", "--json", "--threads", "2"]);
    assert_eq!(resumed["steps"], 4000);
    assert_eq!(resumed["weights_sha256"], whole["weights_sha256"]);
    for name in ["train.csv", "eval.csv", "value_maps.jsonl"] {
        let path = |run: &str| file(folder.path(), &format!("{run}/{name}"));
        assert_eq!(path("stopped"), path("whole"), "{name}");
    }
}

#[test]
fn refusals_leave_nothing_behind() {
    let folder = folder();
    let before = snapshot(folder.path());
    let refused =
        |more: &[&str], code: i32, words: &[&str]| fails(folder.path(), &train("run", more), code, words);
    refused(&["--set", "lambda_k=0"], 3, &["boundedness", "0.0125", "0.15", "--allow-unbounded"]);
    refused(&["--set", "gama=0.9"], 3, &["unknown key `gama`", "did you mean `gamma`"]);
    refused(&["--set", "gamma=2"], 3, &["gamma = 2", "between 0 and 1"]);
    refused(&["--set", "lambda_b=-1"], 3, &["lambda_b = -1", "nonnegative"]);
    let short = ["no episode is long enough", "the longest has 199 steps", "needs 200"];
    refused(&["--set", "k=200", "--set", "kstep_tail=drop"], 3, &short);
    refused(&["--config", "missing.toml"], 5, &["missing.toml"]);
    let task = ["train", "pointmaze-medum-navigate-singletask-task1-v0"];
    fails(folder.path(), &task, 3, &["did you mean", "pointmaze-medium-navigate-singletask-task1-v0"]);
    fails(folder.path(), &["train", TASK, "--data", "none.npz"], 5, &["none.npz"]);
    fails(
        folder.path(),
        &["train", "cube-single-play-singletask-v0", "--data", "data.npz"],
        3,
        &["cube-single"],
    );
    fails(folder.path(), &["resume", "run"], 5, &["run"]);
    fails(folder.path(), &["eval", "run"], 5, &["run"]);
    assert_eq!(snapshot(folder.path()), before);

    // The refusal can be overridden.
    json(folder.path(), &train("unbounded", &["--set", "lambda_k=0", "--allow-unbounded"]));
    // A directory that holds a run is not overwritten.
    let kept = file(folder.path(), "unbounded/result.json");
    let again = album(folder.path(), &train("unbounded", &["--allow-unbounded"]));
    assert_eq!(again.status.code(), Some(3), "{}", String::from_utf8_lossy(&again.stderr));
    assert_eq!(file(folder.path(), "unbounded/result.json"), kept);
}

#[test]
fn a_damaged_checkpoint_is_named_and_an_older_one_used() {
    let folder = folder();
    json(folder.path(), &train("run", &[]));
    let checkpoints = folder.path().join("run/checkpoints");
    let mut steps: Vec<_> = std::fs::read_dir(&checkpoints).unwrap().map(|e| e.unwrap().path()).collect();
    steps.sort();
    assert_eq!(steps.len(), 2);
    for step in &steps {
        let path = step.join("agent.safetensors");
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&path, bytes).unwrap();
    }
    fails(folder.path(), &["eval", "run"], 3, &["agent.safetensors"]);
}

/// The standard error of a command.
fn notes(folder: &Path, args: &[&str]) -> String {
    String::from_utf8(album(folder, args).stderr).unwrap()
}

#[test]
fn options_win_over_the_configuration_file_and_say_so() {
    let folder = folder();
    json(folder.path(), &train("first", &["--seed", "5"]));
    let other = "pointmaze-medium-navigate-singletask-task4-v0";
    let args = ["train", other, "--seed", "6", "--config", "first/config.toml", "--out", "second", "--json"];
    let output = album(folder.path(), &args);
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((result["task"].as_str(), result["seed"].as_u64()), (Some(other), Some(6)));
    let said = String::from_utf8(output.stderr).unwrap();
    for words in ["seed = 6 (command line) instead of 5 (first/config.toml)", "task = "] {
        assert!(said.contains(words), "{said}");
    }
    // Without options, the file decides.
    let same = json(folder.path(), &["train", "--config", "first/config.toml", "--out", "third", "--json"]);
    assert_eq!((same["task"].as_str(), same["seed"].as_u64()), (Some(TASK), Some(5)));
}

#[test]
fn held_out_episodes_are_logged_beside_training() {
    let folder = folder();
    json(folder.path(), &train("plain", &[]));
    json(folder.path(), &train("held", &["--holdout", "0.2"]));
    common::pointmaze_data(&folder.path().join("data-val.npz"));
    let with_file = json(folder.path(), &train("file", &[]));
    let header = |run: &str| {
        let text = String::from_utf8(file(folder.path(), &format!("{run}/train.csv"))).unwrap();
        text.lines().next().unwrap().to_owned()
    };
    assert!(!header("plain").contains("validation/"));
    for run in ["held", "file"] {
        for column in
            ["validation/critic/critic_loss", "validation/actor/bc_loss", "validation/critic/g_b_satisfied"]
        {
            assert!(header(run).contains(column), "{run}: {}", header(run));
        }
    }
    // A validation file changes only what is logged.
    let plain: serde_json::Value = serde_json::from_slice(&file(folder.path(), "plain/result.json")).unwrap();
    assert_eq!(with_file["weights_sha256"], plain["weights_sha256"]);
    fails(folder.path(), &train("bad", &["--holdout", "1"]), 3, &["holdout = 1", "below 1"]);
}

#[test]
fn short_runs_log_too() {
    let folder = folder();
    json(folder.path(), &train("run", &["--set", "log_every=5000"]));
    let rows = String::from_utf8(file(folder.path(), "run/train.csv")).unwrap().lines().count() - 1;
    assert_eq!(rows, 20);
}

/// Several runs are one JSON object, also if some of them had been finished before.
#[test]
fn resuming_a_finished_run_and_another_prints_one_object() {
    let folder = folder();
    let first = json(folder.path(), &train("a", &[]));
    json(folder.path(), &train("b", &["--seed", "1", "--set", "steps=40"]));
    let both = json(folder.path(), &["resume", "a", "b", "--steps", "60", "--json"]);
    let runs = both["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    assert_eq!((runs[0]["run"].as_str(), runs[1]["run"].as_str()), (Some("a"), Some("b")));
    assert_eq!(runs[0]["weights_sha256"], first["weights_sha256"]);
    assert_eq!((runs[1]["seed"].as_u64(), runs[1]["steps"].as_u64()), (Some(1), Some(60)));
    let again = json(folder.path(), &["resume", "a", "b", "--json"]);
    assert_eq!(again["runs"][1]["weights_sha256"], runs[1]["weights_sha256"]);
    assert_eq!(json(folder.path(), &["resume", "b", "--json"])["seed"], 1);
}

#[test]
fn a_finished_run_is_not_resumed() {
    let folder = folder();
    let first = json(folder.path(), &train("run", &[]));
    let before = file(folder.path(), "run/result.json");
    assert!(notes(folder.path(), &["resume", "run"]).contains("the run is finished"));
    assert_eq!(json(folder.path(), &["resume", "run", "--json"]), first);
    assert_eq!(file(folder.path(), "run/result.json"), before);
    // An edited setting is not mistaken for the one used in training.
    let path = folder.path().join("run/config.toml");
    let config = std::fs::read_to_string(&path).unwrap();
    let edited = config.replace("\nk = 10\n", "\nk = 11\n");
    assert_ne!(edited, config);
    std::fs::write(&path, edited).unwrap();
    fails(
        folder.path(),
        &["resume", "run"],
        3,
        &["belongs to another run", "config key `album.k` is 10 there"],
    );
    assert_eq!(file(folder.path(), "run/result.json"), before);
}

/// A new option must not lock anybody out of earlier runs.
#[test]
fn runs_from_before_a_setting_existed_are_evaluated_and_resumed() {
    let folder = folder();
    let whole = json(folder.path(), &train("whole", &["--set", "lr_decay=none"]));
    json(folder.path(), &train("run", &["--set", "lr_decay=none", "--set", "steps=40"]));
    // As the version before `initial_value` would have written it.
    let without = |config: &str| config.replace("initial_value = \"zero\"\n", "");
    let path = folder.path().join("run/config.toml");
    std::fs::write(&path, without(&std::fs::read_to_string(&path).unwrap())).unwrap();
    let checkpoints = folder.path().join("run/checkpoints");
    let Checkpoint { manifest, state, .. } = checkpoint::require_latest(&checkpoints).unwrap();
    let identity = Identity { config: without(&manifest.identity.config), ..manifest.identity.clone() };
    assert_ne!(identity, manifest.identity);
    checkpoint::save(&checkpoints, &identity, &manifest.progress, &state).unwrap();

    json(folder.path(), &["eval", "run", "--episodes", "1", "--json"]);
    let resumed = json(folder.path(), &["resume", "run", "--steps", "60", "--json"]);
    assert_eq!(resumed["weights_sha256"], whole["weights_sha256"]);
}

/// As after a kill between writing the result and the page, which comes last.
#[test]
fn a_run_whose_page_is_missing_or_older_is_resumed_to_write_it() {
    let folder = folder();
    let first = json(folder.path(), &train("run", &[]));
    let weights = first["weights_sha256"].as_str().unwrap();
    let page = folder.path().join("run/report.html");
    for older in [None, Some("the page of an earlier part")] {
        std::fs::remove_file(&page).unwrap();
        if let Some(text) = older {
            std::fs::write(&page, text).unwrap();
        }
        let again = json(folder.path(), &["resume", "run", "--json"]);
        assert_eq!(again["weights_sha256"], first["weights_sha256"]);
        assert!(std::fs::read_to_string(&page).unwrap().contains(weights));
    }
}

#[test]
fn the_critic_alone_prints_no_success() {
    let folder = folder();
    json(folder.path(), &train("run", &[]));
    let output = album(folder.path(), &["eval", "run", "--critic", "--episodes", "0"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && !text.contains("success") && text.contains("learned V"), "{text}");
    assert!(
        json(folder.path(), &["eval", "run", "--critic", "--episodes", "0", "--json"])["success"].is_null()
    );
}

#[test]
fn a_policy_needs_no_data() {
    let folder = folder();
    json(folder.path(), &train("run", &[]));
    let before = json(folder.path(), &["eval", "run", "--episodes", "2", "--json"]);
    std::fs::remove_file(folder.path().join("data.npz")).unwrap();
    let after = json(folder.path(), &["eval", "run", "--episodes", "2", "--json"]);
    assert_eq!(after["episodes"], before["episodes"]);
    fails(folder.path(), &["eval", "run", "--critic"], 5, &["data.npz"]);
}

#[test]
fn a_run_has_a_report() {
    let folder = folder();
    json(folder.path(), &train("run", &[]));
    let html = String::from_utf8(file(folder.path(), "run/report.html")).unwrap();
    for id in ["success", "value-maps", "trajectories", "constraints", "values", "metrics"] {
        assert!(html.contains(&format!("<figure id=\"{id}\"")), "{id}");
    }
    assert!(html.contains("<dd>20 episodes</dd>"));
    // The command on the page reproduces the run.
    assert!(html.contains("album train --config") && html.contains("album resume"));
}

#[test]
fn a_partial_recording_says_so() {
    let folder = folder();
    let official = "pointmaze-medium-navigate-v0.npz";
    std::fs::rename(folder.path().join("data.npz"), folder.path().join(official)).unwrap();
    let mut args = train("run", &["--holdout", "0.1"]);
    args[3] = official;
    let said = notes(folder.path(), &args);
    let html = String::from_utf8(file(folder.path(), "run/report.html")).unwrap();
    for text in [said, html] {
        assert!(text.contains("18 of 1,000 published episodes, 2 held out"), "{text}");
    }
}
