//! `album export` and `album act` as a user runs them.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::{album, fails, json, snapshot};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A run on a log with names, a category and bounds.
fn run(folder: &Path) {
    let mut log = "run,flow,mode,valve,reward,terminated,truncated\n".to_owned();
    for row in 0..400 {
        let (flow, valve) = ((row * 7 % 13) as f32 / 13.0, (row * 5 % 11) as f32 * 9.0);
        let mode = if row % 3 == 0 { "low" } else { "high" };
        let last = u8::from(row % 20 == 19);
        log.push_str(&format!("{},{flow},{mode},{valve},{},0,{last}\n", row / 20, -flow));
    }
    std::fs::write(folder.join("pump.csv"), log).unwrap();
    let columns = "episode=run,obs=flow+mode,action=valve,reward=reward";
    let train =
        ["train", "--data", "pump.csv", "--columns", columns, "--actions", "continuous", "--steps", "20"];
    let small =
        ["--action-bounds", "0,100", "--set", "hidden=[8,8]", "--set", "batch_size=16", "--out", "run"];
    json(folder, &[&train[..], &small, &["--json"]].concat());
}

fn act(folder: &Path, args: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_album"))
        .arg("act")
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

#[test]
fn from_a_run_to_actions_in_a_pipe() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    run(folder);
    let export =
        ["export", "run", "--out", "pump.safetensors", "--format", "safetensors", "--check", "50", "--json"];
    let exported = json(folder, &export);
    assert_eq!((&exported["file"], &exported["format"]), (&"pump.safetensors".into(), &"safetensors".into()));
    assert_eq!(exported["inputs"][0]["name"], "observation");
    assert_eq!(exported["outputs"][0]["name"], "action");
    assert!(exported["max_difference"].as_f64().unwrap() <= 1e-5, "{exported}");

    let policy = album_policy::Policy::load(folder.join("pump.safetensors")).unwrap();
    let manifest = policy.manifest();
    assert_eq!((&*manifest.task, &*manifest.agent, manifest.step), ("pump", "album", 20));
    assert_eq!(manifest.observations, ["flow", "mode=high", "mode=low"]);
    let result: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.join("run/result.json")).unwrap()).unwrap();
    assert_eq!(result["weights_sha256"], *manifest.weights_sha256);

    let input = "[0.5, 0, 1]\n{\"flow\": 0.5, \"mode\": \"low\"}\n";
    let output = act(folder, &["pump.safetensors"], input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Vec<f32>> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0], lines[1], "a category by name is its one-hot number");
    assert!((0.0..=100.0).contains(&lines[0][0]), "{lines:?}");

    let output = act(folder, &["pump.safetensors"], "[0.5, 0]\n[0.5, 0, 1]\n");
    assert_eq!(output.status.code(), Some(3));
    let lines = String::from_utf8(output.stdout).unwrap();
    assert!(lines.starts_with("{\"error\":\"found 2 numbers; expected 3\",\"line\":1}\n["), "{lines}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("1 of 2 observations"));
}

#[test]
fn onnx_with_and_without_onnxruntime() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    run(folder);
    let export = ["export", "run", "--out", "pump.onnx", "--format", "onnx", "--check", "64", "--json"];
    let with = |python: &Path| {
        let child = Command::new(env!("CARGO_BIN_EXE_album"))
            .args(export)
            .current_dir(folder)
            .env("ALBUM_PYTHON", python)
            .output()
            .unwrap();
        assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
        let exported: serde_json::Value = serde_json::from_slice(&child.stdout).unwrap();
        (exported, String::from_utf8_lossy(&child.stderr).into_owned())
    };
    // An interpreter without onnxruntime, which the exit code shows.
    let bare = folder.join("python");
    #[cfg(unix)]
    {
        album_testing::script(&bare, "exit 42");
        let (exported, said) = with(&bare);
        assert!(exported["max_difference"].is_null() && exported["opset"] == 17, "{exported}");
        assert!(said.contains("--check was skipped") && said.contains("onnxruntime"), "{said}");
        assert!(folder.join("pump.onnx").exists());
    }
    let Some(python) = common::python() else { return };
    let (exported, _) = with(&python);
    assert!(exported["max_difference"].as_f64().unwrap() <= 1e-5, "{exported}");
    assert!(exported["checked"]["by"].as_str().unwrap().starts_with("onnxruntime "), "{exported}");
}

#[test]
fn what_cannot_be_exported_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    run(folder);
    std::fs::write(folder.join("old.onnx"), "an older file").unwrap();
    let before = snapshot(folder);
    let export = |run: &'static str, out: &'static str| ["export", run, "--format", "onnx", "--out", out];
    fails(folder, &[&export("run", "old.onnx")[..], &["--step", "7"]].concat(), 3, &["7"]);
    fails(folder, &export("nowhere", "old.onnx"), 5, &["nowhere"]);
    fails(folder, &export("run", "no/folder/p.onnx"), 5, &["no/folder/p.onnx"]);
    fails(folder, &["export", "run", "--format", "pickle", "--out", "p"], 2, &["onnx, safetensors"]);
    // Flips one bit of the weights.
    let weights = folder.join("run/checkpoints/step_000000020/agent.safetensors");
    let mut bytes = std::fs::read(&weights).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&weights, &bytes).unwrap();
    fails(folder, &export("run", "old.onnx"), 3, &["step_000000020"]);
    assert_eq!(snapshot(folder), before);

    for (name, contents) in [("empty", &b""[..]), ("zip", b"PK\x03\x04 not a policy"), ("weights", &bytes)] {
        std::fs::write(folder.join(name), contents).unwrap();
        let output = act(folder, &[name], "[1]\n");
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{name}: {message}");
        assert!(message.contains("not a policy"), "{name}: {message}");
    }
    assert_eq!(act(folder, &["missing"], "").status.code(), Some(5));
    assert!(album(folder, &["act", "--help"]).status.success());
}
