//! `--device xla` and `album setup xla` from the outside.

use crate::common;
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Output};

const TASK: &str = "pointmaze-medium-navigate-singletask-task1-v0";

/// The plugin named by the environment variable.
fn plugin() -> Option<OsString> {
    let plugin = std::env::var_os("ALBUM_XLA_PLUGIN");
    if plugin.is_none() {
        album_testing::skip("xla", "ALBUM_XLA_PLUGIN does not name a plugin");
    }
    plugin
}

/// Runs `album` in a folder that is also its cache; without a named plugin, the one set up there is used.
fn album(folder: &Path, plugin: &str, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_album"))
        .args(args)
        .current_dir(folder)
        .env("ALBUM_CACHE", folder.join("cache"))
        .env("ALBUM_XLA_PLUGIN", plugin)
        .output()
        .unwrap()
}

fn json(folder: &Path, args: &[&str]) -> Value {
    let output = album(folder, "", args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn fails(folder: &Path, plugin: &str, args: &[&str], code: i32, words: &str) {
    let output = album(folder, plugin, args);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {message}");
    assert!(output.stdout.is_empty() && message.contains(words), "{args:?}: no `{words}` in: {message}");
}

fn train<'a>(out: &'a str, steps: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["train", TASK, "--data", "data.npz", "--out", out, "--json", "--steps", steps];
    args.extend(["--set", "hidden=[8,8]", "--set", "batch_size=16", "--set", "log_every=10"]);
    args.extend(["--set", "lr_decay=none", "--eval-episodes", "2", "--save-every", "20"]);
    args.extend_from_slice(more);
    args
}

#[test]
fn a_run_on_a_device_can_be_stopped_and_goes_on_there_and_elsewhere() {
    let Some(plugin) = plugin() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    common::pointmaze_data(&path.join("data.npz"));
    let set_up = json(path, &["setup", "xla", "--json", "--plugin", plugin.to_str().unwrap()]);
    assert!(!set_up["devices"].as_array().unwrap().is_empty(), "{set_up}");

    let whole = json(path, &train("whole", "60", &["--device", "xla:0"]));
    assert_eq!(whole["device"], set_up["devices"][0]);
    // Trained to step 40, then further, like an interrupted run. The learning rate is constant, so nothing
    // else differs.
    json(path, &train("stopped", "40", &["--device", "xla"]));
    for run in ["here", "elsewhere"] {
        Command::new("cp").args(["-r", "stopped", run]).current_dir(path).status().unwrap();
    }
    let here = json(path, &["resume", "here", "--steps", "60", "--device", "xla", "--json"]);
    assert_eq!(here["weights_sha256"], whole["weights_sha256"], "the same bits on the same device");
    let elsewhere = json(path, &["resume", "elsewhere", "--steps", "60", "--json"]);
    assert_eq!(elsewhere["steps"], 60);
    assert!(elsewhere["device"].is_null());

    // Weights learned on a device are close to those learned on the CPU.
    let native = json(path, &train("native", "60", &[]));
    assert_ne!(native["weights_sha256"], whole["weights_sha256"]);
    near(&column(path, "whole"), &column(path, "native"), 1e-3);
}

/// Several seeds as one program: the runs that each would be by itself.
#[test]
fn seeds_on_a_device_are_runs_of_their_own() {
    let Some(plugin) = plugin() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    common::pointmaze_data(&path.join("data.npz"));
    let run = |args: &[&str]| -> Value {
        let output = album(path, plugin.to_str().unwrap(), args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let seeds = run(&train("many", "40", &["--device", "xla", "--seed", "3", "--seeds", "2"]));
    let results = seeds["runs"].as_array().unwrap();
    assert_eq!((results[0]["seed"].as_u64(), results[1]["seed"].as_u64()), (Some(3), Some(4)));
    // By itself, and with the data on the device.
    let alone = run(&train("alone", "40", &["--device", "xla", "--seed", "4", "--device-data"]));
    let plain = run(&train("plain", "40", &["--device", "xla", "--seed", "4"]));
    assert_eq!(alone["weights_sha256"], plain["weights_sha256"], "where the data is changes no bit");
    near(&column(path, "many/seed4"), &column(path, "alone"), 1e-4);
    for file in ["config.toml", "eval.csv", "report.html", "checkpoints/step_000000040"] {
        assert!(path.join("many/seed4").join(file).exists(), "{file}");
    }
    // One goes on by itself, so that the two are at different steps; then both together.
    json(path, &["resume", "many/seed3", "--steps", "50", "--json"]);
    let both = run(&["resume", "many/seed3", "many/seed4", "--steps", "60", "--device", "xla", "--json"]);
    assert_eq!((both["runs"][0]["steps"].as_u64(), both["runs"][1]["steps"].as_u64()), (Some(60), Some(60)));
    run(&["resume", "alone", "--steps", "60", "--device", "xla", "--json"]);
    near(&column(path, "many/seed4"), &column(path, "alone"), 1e-4);
}

/// The loss in the log of a run.
fn column(path: &Path, run: &str) -> Vec<f64> {
    let text = std::fs::read_to_string(path.join(run).join("train.csv")).unwrap();
    let mut lines = text.lines();
    let names = lines.next().unwrap();
    let at = names.split(',').position(|name| name == "training/critic/critic_loss").unwrap();
    lines.map(|line| line.split(',').nth(at).unwrap().parse().unwrap()).collect()
}

fn near(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < tolerance * expected.abs().max(0.1), "{found} against {expected}");
    }
}

#[test]
fn costs_on_a_device_have_its_memory() {
    let folder = tempfile::tempdir().unwrap();
    let cost =
        ["bench", "cost", "--agents", "bc", "--rounds", "1", "--steps", "2", "--json", "--device", "xla"];
    fails(folder.path(), "", &cost, 3, "no XLA plugin is set up");
    let Some(plugin) = plugin() else { return };
    let output = album(folder.path(), plugin.to_str().unwrap(), &cost);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let costs: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(costs["device"].is_string(), "{costs}");
    let memory = &costs["agents"][0]["device_memory"];
    // bc's weights and moments alone, in MiB.
    let least = costs["agents"][0]["parameters"].as_f64().unwrap() * 12.0 / f64::from(1 << 20);
    assert!(memory["mib"].as_f64().unwrap() > least, "{costs}");
    assert!(["device", "compiler"].contains(&memory["counted_by"].as_str().unwrap()), "{costs}");
}

#[test]
fn what_is_no_device_is_refused_before_anything_happens() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    common::pointmaze_data(&path.join("data.npz"));
    let on = |device| train("run", "10", &["--device", device]);
    fails(path, "", &on("xla"), 3, "no XLA plugin is set up: `album setup xla` fetches one");
    fails(path, "", &on("cuda"), 2, "expected xla or xla:N");
    fails(path, "/does/not/exist.so", &on("xla"), 3, "not a library that can be loaded here");
    fails(path, "", &["setup", "xla", "--plugin", "gpu"], 2, "neither cpu, cuda12, cuda13 or tpu");
    std::fs::write(path.join("text.so"), "not a library").unwrap();
    fails(path, "", &["setup", "xla", "--plugin", "text.so"], 3, "not a library that can be loaded here");
    if let Some(plugin) = plugin() {
        fails(path, plugin.to_str().unwrap(), &on("xla:7"), 3, "there is no device xla:7; the plugin has");
    }
    assert!(!path.join("run").exists());
    assert!(!path.join("cache/xla-plugin.txt").exists(), "what does not work is not chosen");
}

#[test]
fn a_plugin_that_ends_its_process_ends_only_a_trial() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("bad.c"), "#include <stdlib.h>\nvoid *GetPjrtApi(void) { abort(); }\n").unwrap();
    let compiled =
        Command::new("cc").args(["-shared", "-fPIC", "-o", "bad.so", "bad.c"]).current_dir(path).status();
    if !compiled.is_ok_and(|status| status.success()) {
        return album_testing::skip("cc", "a C compiler makes the plugin of this test");
    }
    fails(path, "", &["setup", "xla", "--plugin", "bad.so"], 5, "the plugin ended the process that tried it");
    // An API table of another major version.
    let other = "#include <stddef.h>\nstruct { size_t n; void *e; size_t m; void *f; int major, minor; void *calls[200]; } api = {1640, 0, 24, 0, 7, 3};\n\
                 void *GetPjrtApi(void) { return &api; }\n";
    std::fs::write(path.join("other.c"), other).unwrap();
    Command::new("cc")
        .args(["-shared", "-fPIC", "-o", "other.so", "other.c"])
        .current_dir(path)
        .status()
        .unwrap();
    fails(
        path,
        "",
        &["setup", "xla", "--plugin", "other.so"],
        3,
        "a plugin of PJRT 7.3; this program speaks 0.81",
    );
}
