//! Devices that fail: a plugin that computes nothing and fails as it is told.

use crate::common;
use std::path::Path;
use std::process::{Command, Output};

const TASK: &str = "pointmaze-medium-navigate-singletask-task1-v0";

/// A folder with the plugin and some data; `None` where there is no C compiler.
fn folder() -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("stub.c"), include_str!("stub_plugin.c")).unwrap();
    let args = ["-shared", "-fPIC", "-o", "stub.so", "stub.c"];
    let compiled = Command::new("cc").args(args).current_dir(folder.path()).status();
    if !compiled.is_ok_and(|status| status.success()) {
        album_testing::skip("cc", "a C compiler makes the plugin of this test");
        return None;
    }
    common::pointmaze_data(&folder.path().join("data.npz"));
    Some(folder)
}

fn album(folder: &Path, stub: &str, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_album"))
        .args(args)
        .current_dir(folder)
        .env("ALBUM_CACHE", folder.join("cache"))
        .env("ALBUM_XLA_PLUGIN", folder.join("stub.so"))
        .env("TMPDIR", folder)
        .env("STUB", stub)
        .output()
        .unwrap()
}

fn fails(folder: &Path, stub: &str, args: &[&str], code: i32, words: &[&str]) -> String {
    let output = album(folder, stub, args);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{stub}: {message}");
    for words in words {
        assert!(message.contains(words), "{stub}: no `{words}` in: {message}");
    }
    message
}

fn train<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["train", TASK, "--data", "data.npz", "--out", "run", "--steps", "60"];
    args.extend([
        "--set",
        "hidden=[8,8]",
        "--set",
        "batch_size=16",
        "--eval-episodes",
        "0",
        "--save-every",
        "20",
    ]);
    args.extend(["--device", "xla"]);
    args.extend_from_slice(more);
    args
}

#[test]
fn out_of_memory_leaves_the_last_checkpoint() {
    let Some(folder) = folder() else { return };
    let path = folder.path();
    let words = ["out of memory while running a step", "RESOURCE_EXHAUSTED", "step 20"];
    fails(path, "after 25", &train(&[]), 5, &words);
    assert!(path.join("run/checkpoints/step_000000020").exists());
    let output = album(path, "", &["resume", "run", "--json"]);
    assert!(output.status.success(), "elsewhere: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn out_of_memory_at_once() {
    let Some(folder) = folder() else { return };
    fails(folder.path(), "upload", &train(&[]), 5, &["out of memory while copying to the device"]);
    fails(folder.path(), "upload", &["setup", "xla", "--plugin", "stub.so"], 5, &["out of memory"]);
}

#[test]
fn data_that_is_larger_than_the_device_is_not_sent_there() {
    let Some(folder) = folder() else { return };
    let words = ["on the device, which has 1 kB free", "without --device-data only batches are copied to it"];
    fails(folder.path(), "small", &train(&["--device-data"]), 3, &words);
    let output = album(folder.path(), "small", &["resume", "run", "--device", "xla"]);
    assert!(output.status.success(), "without it: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_program_that_does_not_compile_is_kept() {
    let Some(folder) = folder() else { return };
    let words = ["does not compile this step", "what is that?", "was saved to"];
    let message = fails(folder.path(), "compile", &train(&[]), 5, &words);
    let mut entries = folder.path().read_dir().unwrap().flatten();
    let program = entries
        .find(|entry| entry.path().extension().is_some_and(|extension| extension == "mlir"))
        .unwrap()
        .path();
    assert!(message.contains(program.to_str().unwrap()), "{message}");
    let text = std::fs::read_to_string(program).unwrap();
    assert!(text.contains("module @album") && text.contains("stablehlo.dot_general"), "{text}");
}

#[test]
fn a_plugin_without_devices() {
    let Some(folder) = folder() else { return };
    fails(folder.path(), "no devices", &train(&[]), 3, &["there is no device xla:0; the plugin has none"]);
    assert!(!folder.path().join("run").exists());
}

#[test]
fn a_precision_of_the_processor_is_refused_before_there_is_a_run() {
    let Some(folder) = folder() else { return };
    fails(folder.path(), "", &train(&["--precision", "bf16"]), 3, &["bf16 is for the processor"]);
    assert!(!folder.path().join("run").exists());
}

#[test]
fn a_plugin_that_crashes_is_found_out_by_setup() {
    let Some(folder) = folder() else { return };
    let setup = ["setup", "xla", "--plugin", "stub.so"];
    fails(folder.path(), "crash", &setup, 5, &["the plugin ended the process that tried it"]);
    // One that computes nothing is found out, too.
    fails(folder.path(), "", &setup, 5, &["a product of small integers is [0.0, 0.0, 0.0, 0.0]"]);
    assert!(!folder.path().join("cache/xla-plugin.txt").exists());
}

/// One run of several fails as the others do, and says which checkpoint is left.
#[test]
fn seeds_that_fail_together_can_be_resumed() {
    let Some(folder) = folder() else { return };
    let path = folder.path();
    fails(path, "after 25", &train(&["--seeds", "2"]), 5, &["out of memory", "step 20"]);
    for seed in ["run/seed0", "run/seed1"] {
        assert!(path.join(seed).join("checkpoints/step_000000020").exists(), "{seed}");
    }
    fails(path, "", &["resume", "run/seed0", "run/seed1"], 2, &["expected --device xla"]);
    let output = album(path, "", &["resume", "run/seed1", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fails(path, "", &train(&["--seeds", "2"]), 3, &["run/seed0"]);
}
