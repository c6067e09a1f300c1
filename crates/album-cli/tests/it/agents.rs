//! `album agents`, `album train --agent`, `album bench cost` and `bench step`.

#![allow(clippy::unwrap_used)] // helpers of tests

use crate::common;

use album_data::ogbench::MazeSize;
use album_envs::navigate::{Recipe, record};
use common::{fails, json, snapshot};
use std::num::NonZero;

const TASK: &str = "pointmaze-medium-navigate-singletask-task1-v0";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let recipe = Recipe { episodes: 6, rows: 200, ..Recipe::train(MazeSize::Medium, 1) };
    record(&recipe, NonZero::<usize>::MIN).write(folder.path().join("data.npz"), &recipe).unwrap();
    folder
}

fn names() -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let listed = json(folder.path(), &["agents", "--json"]);
    listed["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| agent["name"].as_str().unwrap().to_owned())
        .collect()
}

fn train<'a>(agent: &'a str, out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args =
        vec!["train", TASK, "--agent", agent, "--data", "data.npz", "--out", out, "--json", "--steps", "12"];
    args.extend(["--set", "hidden=[8,8]", "--set", "batch_size=8", "--set", "log_every=4"]);
    args.extend(["--eval-every", "0", "--eval-episodes", "1", "--save-every", "6", "--threads", "1"]);
    args.extend_from_slice(more);
    args
}

#[test]
fn the_list_has_sizes_and_defaults() {
    let folder = tempfile::tempdir().unwrap();
    let listed = json(folder.path(), &["agents", "--json"]);
    // The paper's cost table.
    let expected = [
        ("album", 2_427_402, 2),
        ("rebrac", 4_862_996, 4),
        ("iql", 4_863_501, 5),
        ("fql", 4_871_700, 4),
        ("nfql", 4_871_700, 4),
        ("qc-fql", 5_002_836, 4),
        ("dqc", 6_692_879, 7),
        ("cgq", 10_054_840, 8),
    ];
    for (name, parameters, value_networks) in expected {
        let agent = listed["agents"].as_array().unwrap().iter().find(|agent| agent["name"] == name).unwrap();
        assert_eq!(agent["parameters"], parameters, "{name}");
        assert_eq!(agent["value_networks"], value_networks, "{name}");
        assert!(
            agent["defaults"]["gamma"].is_number()
                && agent["reference"].is_string()
                && agent["policy"].is_string()
        );
    }
}

#[test]
fn every_agent_trains_evaluates_and_resumes() {
    let folder = folder();
    for name in names() {
        let whole = json(folder.path(), &train(&name, &format!("{name}-whole"), &[]));
        assert_eq!((whole["agent"].as_str(), whole["steps"].as_u64()), (Some(name.as_str()), Some(12)));
        assert_eq!(whole["evaluations"].as_array().unwrap().len(), 1, "{name}");
        // As if killed after the first checkpoint.
        let run = folder.path().join(format!("{name}-whole"));
        std::fs::remove_dir_all(run.join("checkpoints/step_000000012")).unwrap();
        let resumed = json(folder.path(), &["resume", &format!("{name}-whole"), "--json", "--threads", "2"]);
        assert_eq!(resumed["weights_sha256"], whole["weights_sha256"], "{name}");
        assert_eq!(resumed["evaluations"], whole["evaluations"], "{name}");
    }
}

#[test]
fn mistakes_are_named_and_leave_nothing_behind() {
    let folder = folder();
    let before = snapshot(folder.path());
    let refused = |args: &[&str], message: &str| {
        fails(folder.path(), args, 3, &[message]);
        assert_eq!(snapshot(folder.path()), before, "{args:?}");
    };
    refused(&train("rebrack", "run", &[]), "there is no agent `rebrack`; did you mean `rebrac`?");
    refused(
        &train("iql", "run", &["--set", "expectile=1.5"]),
        "expectile = 1.5; expected a number between 0 and 1",
    );
    refused(&train("iql", "run", &["--set", "lambda_k=1"]), "unknown key `lambda_k`");
    refused(&train("rebrac", "run", &["--set", "actor_every=0"]), "actor_every = 0; expected at least 1");
    refused(&train("fql", "run", &["--set", "ensemble=0"]), "ensemble = 0; expected at least 1");
    refused(&train("qc-fql", "run", &["--set", "h=500"]), "no episode is long enough");
}

#[test]
fn a_run_is_not_resumed_as_another_agent() {
    let folder = folder();
    json(folder.path(), &train("iql", "run", &[]));
    let path = folder.path().join("run/config.toml");
    let config = std::fs::read_to_string(&path).unwrap();
    std::fs::write(
        &path,
        config.replace("agent = \"iql\"", "agent = \"hinge-iql\"").replace("[iql]", "[hinge-iql]"),
    )
    .unwrap();
    let before = snapshot(&folder.path().join("run"));
    fails(folder.path(), &["resume", "run"], 3, &["iql", "hinge-iql"]);
    let after = snapshot(&folder.path().join("run"));
    // Opening a run writes the process id into its lock.
    let changed: Vec<_> =
        (after.iter().filter(|file| !before.contains(file) && !file.0.ends_with("run.lock")))
            .map(|file| &file.0)
            .collect();
    assert!(changed.is_empty() && after.len() == before.len(), "{changed:?}");
}

#[test]
fn cost_is_measured_and_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["bench", "cost", "--agents", "album,rebrac*", "--rounds", "1", "--steps", "2", "--json"];
    let report = json(folder.path(), &args);
    let rows = report["agents"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!((rows[0]["agent"].as_str(), rows[1]["agent"].as_str()), (Some("album"), Some("rebrac*")));
    for row in rows {
        for key in ["parameters", "gflop_per_step", "value_networks", "peak_rss_mib"] {
            assert!(row[key].as_f64().unwrap() > 0.0, "{key}");
        }
        assert_eq!(row["times"][0]["threads"], 1, "{row}");
        assert!(row["times"][0]["ms_per_step"].as_f64().unwrap() > 0.0, "{row}");
    }
    // Twice the multiply-adds: Q forward and back, V on s and s', forward on s_K, the actor, and Q of its action.
    assert!((rows[0]["gflop_per_step"].as_f64().unwrap() - 6.1).abs() < 0.1, "{}", rows[0]["gflop_per_step"]);
    let svg = std::fs::read_to_string(folder.path().join("album-cost/pareto.svg")).unwrap();
    assert!(svg.contains("album") && svg.contains("Pareto frontier"));
    let svg = std::fs::read_to_string(folder.path().join("album-cost/cost.svg")).unwrap();
    assert!(svg.contains("Q/V nets") && svg.contains(">published<"));
    assert!(folder.path().join("album-cost/cost.csv").exists());
    fails(folder.path(), &["bench", "cost", "--agents", "albun"], 2, &["did you mean `album`"]);
}

#[test]
fn a_step_is_timed_in_both_precisions() {
    let folder = tempfile::tempdir().unwrap();
    let small = ["bench", "step", "--rounds", "2", "--batch", "8", "--width", "16", "--json"];
    for precision in ["f32", "bf16"] {
        let times = json(folder.path(), &[&small[..], &["--precision", precision]].concat());
        assert_eq!(times["precision"], precision);
        assert!(times["ms_per_step"].as_f64().unwrap() > 0.0);
    }
    fails(folder.path(), &["bench", "step", "--precision", "f16"], 2, &["f16", "expected f32 or bf16"]);
    fails(folder.path(), &["bench", "step", "--precision", "bf16", "--device", "xla"], 2, &["--device"]);
}
