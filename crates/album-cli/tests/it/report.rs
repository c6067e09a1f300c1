//! `album report` from the outside, on run directories with chosen results.

#![allow(clippy::unwrap_used)] // helpers of tests

use crate::common;

use common::{album, json};
use std::path::Path;

/// A run of ALBUM on PointMaze as `album train` leaves it.
fn run(path: &Path, seed: u64, k: u64, success: f64) {
    std::fs::create_dir_all(path).unwrap();
    let task = "pointmaze-medium-navigate-singletask-v0";
    let config = format!(
        "agent = \"album\"\nseed = {seed}\ntask = \"{task}\"\n[album]\nhidden = [128, 128]\nreward_scale = 0.3\n\
         lr_decay = \"cosine\"\nstandardize = true\nfourier_features = 32\nfourier_scale = 3.0\nk = {k}\nactor_lr = 0.001\n\
         critic_lr = 0.001\nalpha_bc = 0.001\nsquash = \"clip\"\n\
         [train]\nsteps = 2000\n"
    );
    std::fs::write(path.join("config.toml"), config).unwrap();
    std::fs::write(path.join("eval.csv"), format!("evaluation/success,step\n0,1000\n{success},2000\n"))
        .unwrap();
    let result = serde_json::json!({
        "task": task, "agent": "album", "seed": seed, "steps": 2000, "finished": true, "success": success,
        "evaluations": [], "ms_per_step": 1.0, "wall_seconds": 2.0, "parameters": 1, "weights_sha256": "",
        "dataset_sha256": "", "versions": { "album": "0.1.0" }
    });
    std::fs::write(path.join("result.json"), format!("{result}\n")).unwrap();
}

#[test]
fn runs_are_grouped_by_their_settings() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..3 {
        run(&folder.path().join(format!("runs/a/{seed}")), seed, 10, 0.9);
        run(&folder.path().join(format!("runs/b/deeper/{seed}")), seed, 5, 0.4);
    }
    // A copy counts as the same run, and a damaged run is named; neither affects the others.
    run(&folder.path().join("runs/z-copy"), 0, 10, 0.9);
    run(&folder.path().join("runs/damaged"), 7, 10, 0.9);
    std::fs::write(folder.path().join("runs/damaged/result.json"), "{\n").unwrap();
    let r = json(folder.path(), &["report", "runs", "--out", "page", "--json"]);
    assert_eq!((&r["runs"], &r["finished"], &r["variants"]), (&6.into(), &6.into(), &2.into()), "{r}");
    let skipped = r["skipped"].to_string();
    assert!(skipped.contains("z-copy") && skipped.contains("the same run (seed 0)"), "{skipped}");
    assert!(skipped.contains("damaged") && skipped.contains("result.json"), "{skipped}");
    let csv = std::fs::read_to_string(folder.path().join("page/runs.csv")).unwrap();
    // The paper has K = 5, but on other tasks.
    let row = csv.lines().find(|line| line.contains("k = 5")).unwrap();
    assert!(
        row.starts_with("\"ALBUM, k = 5\",ALBUM,k=5,pointmaze-medium-navigate,1,success,3,3,40,"),
        "{row}"
    );
    assert!(!csv.contains("43.4"), "nobody asked for the paper's mean over other tasks: {csv}");
    let page = std::fs::read_to_string(folder.path().join("page/index.html")).unwrap();
    assert!(page.contains("All runs differ from their agents&#39; presets by steps = 2000."));
    assert!(page.contains("--agent album --seed 0 --set k=5 --set steps=2000"));
    assert!(!page.contains(folder.path().to_str().unwrap()), "the page names a place of this machine");
}

#[test]
fn mistakes_are_named_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let fails = |arguments: &[&str]| {
        let output = album(folder.path(), arguments);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(fails(&["report"]).0, Some(2));
    let (code, message) = fails(&["report", "nowhere"]);
    assert!(code == Some(5) && message.contains("nowhere"), "{message}");
    std::fs::create_dir_all(folder.path().join("empty/inside")).unwrap();
    let (code, message) = fails(&["report", "empty"]);
    assert!(code == Some(3) && message.contains("no run directory"), "{message}");
    run(&folder.path().join("run"), 0, 10, 1.0);
    std::fs::write(folder.path().join("notes"), "mine").unwrap();
    let (code, message) = fails(&["report", "run", "--out", "notes"]);
    assert!(code == Some(2) && message.contains("is a file"), "{message}");
    assert_eq!(std::fs::read_to_string(folder.path().join("notes")).unwrap(), "mine");
    std::fs::write(folder.path().join("run/config.toml"), "agent = \"albun\"\n").unwrap();
    let (code, message) = fails(&["report", "run"]);
    assert!(code == Some(3) && message.contains("nothing to report"), "{message}");
    assert!(!folder.path().join("album-report").exists());
}

/// Runs on user data have no published numbers, and get their own table.
#[test]
fn runs_on_own_data_stand_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = "episode,obs_x,action,reward,terminated\n".to_owned();
    for row in 0..40 {
        let (action, last) = (f64::from(row % 5) / 4.0 - 0.5, u8::from(row % 10 == 9));
        log += &format!("{},{},{action},1,{last}\n", row / 10, f64::from(row) / 8.0);
    }
    std::fs::write(folder.path().join("plant.csv"), log).unwrap();
    for (agent, seed) in [("album", "0"), ("album", "1"), ("bc", "0")] {
        let out = format!("runs/{agent}-{seed}");
        let small = ["--steps", "4", "--set", "hidden=[4]", "--set", "batch_size=4", "--threads", "1"];
        let args = ["train", "--data", "plant.csv", "--agent", agent, "--seed", seed, "--out", &out];
        let output = album(folder.path(), &[&args[..], &small].concat());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{told}");
        // After four steps the networks are untrained, whatever V is.
        assert!(!told.contains("diverges"), "{told}");
        // A value set by the user is not reported as chosen from the data.
        assert!(told.contains("chosen from the data: gamma = 0.9") && !told.contains("steps = "), "{told}");
    }
    let r = json(folder.path(), &["report", "runs", "--out", "page", "--json"]);
    assert_eq!((&r["runs"], &r["finished"], &r["variants"]), (&3.into(), &3.into(), &2.into()), "{r}");
    let csv = std::fs::read_to_string(folder.path().join("page/own-data.csv")).unwrap();
    let header = csv.lines().next().unwrap();
    assert!(header.starts_with("data,variant,seed,finished,run,V at initial states"), "{header}");
    let row = csv.lines().find(|line| line.contains("album-1")).unwrap();
    assert!(row.starts_with("plant,album,1,yes,album-1,"), "{row}");
    let page = std::fs::read_to_string(folder.path().join("page/index.html")).unwrap();
    assert!(page.contains("Your own data") && page.contains("own-data.tex"));
    assert!(!page.contains(folder.path().to_str().unwrap()), "the page names a place of this machine");
}
