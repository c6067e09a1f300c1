//! `album data generate`: names, refusals, interruptions. A fake interpreter hands out prepared chunks.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use crate::common;
#[path = "../../../album-envs/tests/it/fake/mod.rs"]
mod fake;

use album_data::ogbench::load_task;
use common::{album, fails, json, snapshot};
use fake::Fake;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const EPISODES: &str = "20";

struct Setting {
    dir: tempfile::TempDir,
    fake: Fake,
}

impl Setting {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let fake = Fake::new(&dir.path().join("fake"), 20, 1001, 5);
        Self { dir, fake }
    }

    fn out(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn arguments(out: &Path, python: &Path) -> Vec<String> {
        let words =
            ["data", "generate", "cube-single-play", "--episodes", EPISODES, "--workers", "2", "--json"];
        let mut arguments = words.map(str::to_owned).to_vec();
        arguments.extend(["--out".into(), out.to_str().unwrap().into()]);
        arguments.extend(["--python".into(), python.to_str().unwrap().into()]);
        arguments
    }

    fn finish(&self, out: &Path) -> serde_json::Value {
        let arguments = Self::arguments(out, &self.fake.python("good", ""));
        json(self.dir.path(), &arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Starts a recording and returns once its first chunk is written.
    fn start_slowly(&self, out: &Path) -> Child {
        // A process never finishes its second chunk.
        let python = self.fake.python("slow", r#"[ -n "$again" ] && exec sleep 20; again=1"#);
        let child = Command::new(env!("CARGO_BIN_EXE_album"))
            .args(Self::arguments(out, &python))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let chunk = out.join("cube-single-play-v0.parts-v1-seed0-rows1001/train-000000-5.npz");
        let start = Instant::now();
        while !chunk.exists() {
            assert!(start.elapsed() < Duration::from_secs(60), "no chunk");
            std::thread::sleep(Duration::from_millis(10));
        }
        child
    }

    /// Resumes after an interruption, and compares with an uninterrupted recording.
    fn goes_on(&self, out: &Path) {
        self.fake.asked();
        let report = self.finish(out);
        assert_eq!((&report["train"]["made"], &report["packages"]), (&true.into(), &"fake-1".into()));
        assert!(!self.fake.asked().contains(&"train-000000-5.npz".to_owned()));
        let whole = self.out("whole");
        self.finish(&whole);
        let contents =
            |folder: &Path| snapshot(folder).into_iter().map(|(_, bytes)| bytes).collect::<Vec<_>>();
        assert_eq!(contents(out).len(), 2);
        assert!(contents(out) == contents(&whole));
    }
}

#[test]
fn a_killed_recording_goes_on() {
    let setting = Setting::new();
    let out = setting.out("out");
    let mut child = setting.start_slowly(&out);
    child.kill().unwrap();
    child.wait().unwrap();
    setting.goes_on(&out);
}

#[test]
fn a_signal_stops_with_everything_saved() {
    let setting = Setting::new();
    let out = setting.out("out");
    let child = setting.start_slowly(&out);
    let kill = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&stderr);
    assert_eq!(status.code(), Some(75), "{message}");
    assert!(stdout.is_empty());
    assert!(
        message.contains("of 22 episodes kept") && message.contains("the same command resumes"),
        "{message}"
    );
    setting.goes_on(&out);
}

#[test]
fn the_report_and_files_that_are_there() {
    let setting = Setting::new();
    let out = setting.out("a folder/deeper");
    let report = setting.finish(&out);
    assert_eq!(report["dataset"], "cube-single-play-v0");
    assert_eq!((&report["train"]["episodes"], &report["validation"]["episodes"]), (&20.into(), &2.into()));
    assert_eq!(report["train"]["rows"], 1001);
    let path = out.join("cube-single-play-v0.npz");
    assert_eq!(report["train"]["path"], path.to_str().unwrap());
    let task = "cube-single-play-singletask-task3-v0".parse().unwrap();
    assert_eq!(load_task(&path, &task).unwrap().len(), 20_000);

    // The files are kept without any interpreter, under any of the dataset's names.
    let before = snapshot(&out);
    let out = out.to_str().unwrap();
    let task = "cube-single-play-singletask-task3-v0";
    let again =
        json(setting.dir.path(), &["data", "generate", task, "--episodes", EPISODES, "--out", out, "--json"]);
    assert_eq!((&again["train"]["made"], &again["validation"]["made"]), (&false.into(), &false.into()));

    // Another recipe does not overwrite them.
    let other = ["data", "generate", "cube-single-play", "--episodes", "30", "--out", out];
    fails(setting.dir.path(), &other, 3, &["cube-single-play-v0.npz", "30 training", "move the file away"]);
    assert_eq!(snapshot(Path::new(out)), before);
}

#[test]
fn names_and_refusals() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let out_name = out.to_str().unwrap();
    let refused = |name: &str, words: &[&str]| {
        fails(dir.path(), &["data", "generate", name, "--out", out_name], 3, words);
    };
    refused("cube-singel-play-v0", &["unknown dataset `cube-singel-play-v0`", "`cube-single-play-v0`"]);
    refused("breakout", &["unknown dataset `breakout`", "expected a name such as"]);
    for name in ["humanoidmaze-medium-stitch", "antsoccer-arena-navigate-singletask-v0"] {
        refused(name, &["expert policies that are not in the package", "album data fetch"]);
    }
    fails(dir.path(), &["data", "expert", "ant"], 2, &["--out"]);
    let missing =
        ["data", "generate", "antmaze-large-navigate", "--out", out_name, "--expert", "none.safetensors"];
    fails(dir.path(), &missing, 5, &["none.safetensors"]);
    let expert = ["data", "generate", "scene-play", "--out", out_name, "--expert", "ant.safetensors"];
    fails(dir.path(), &expert, 2, &["no expert is needed for scene-play-v0"]);
    refused(
        "pointmaze-large-stitch",
        &["no recipe for `stitch`", "album data fetch pointmaze-large-stitch-v0"],
    );
    fails(dir.path(), &["data", "generate", "scene-play", "--episodes", "0"], 2, &["--episodes"]);
    let python = ["data", "generate", "scene-play", "--out", out_name, "--python", "/no/such/python"];
    fails(dir.path(), &python, 3, &["/no/such/python", "--python"]);
    assert!(!out.exists());
}

#[test]
fn pointmaze_needs_no_interpreter() {
    let dir = tempfile::tempdir().unwrap();
    let args = [
        "data",
        "generate",
        "pointmaze-medium-navigate",
        "--episodes",
        "11",
        "--seed",
        "5",
        "--out",
        "out",
        "--json",
    ];
    let report = json(dir.path(), &args);
    assert_eq!((&report["train"]["episodes"], &report["validation"]["episodes"]), (&11.into(), &2.into()));
    let before = snapshot(&dir.path().join("out"));
    assert_eq!(before.len(), 2);
    assert_eq!(json(dir.path(), &args)["train"]["made"], false);
    let other = ["data", "generate", "pointmaze-medium-navigate", "--episodes", "11", "--out", "out"];
    fails(dir.path(), &other, 3, &["found a recording with seed 5", "of seed 0"]);
    assert_eq!(snapshot(&dir.path().join("out")), before);
    // The shared folder cannot be created: a file is in its place.
    std::fs::write(dir.path().join("file"), "").unwrap();
    let output = album(dir.path(), &["data", "generate", "pointmaze-medium-navigate", "--out", "file"]);
    assert_eq!(output.status.code(), Some(5));
}
