//! `album data inspect` and `album data list`, as users run them.
#![allow(clippy::unwrap_used)]

use crate::common;

use album_data::NpzWriter;
use common::{album, fails, json, snapshot};
use std::path::Path;

/// Two walks of 12 steps through the medium PointMaze; the first one passes the goal (20, 20) of task 1.
fn write_maze(path: &Path) {
    let rows = 26;
    let xy: Vec<f32> =
        (0..rows).flat_map(|i| [if i < 13 { 10.0 + i as f32 } else { i as f32 / 10.0 }, 20.0]).collect();
    let actions: Vec<f32> = (0..2 * rows).map(|i| (i % 7) as f32 / 8.0).collect();
    let mut writer = NpzWriter::create(path).unwrap();
    writer.array_f32("observations", &[rows, 2], &xy).unwrap();
    writer.array_f32("actions", &[rows, 2], &actions).unwrap();
    writer.array_f32("qpos", &[rows, 2], &xy).unwrap();
    let terminals: Vec<bool> = (0..rows).map(|i| i % 13 == 12).collect();
    writer.array_bool("terminals", &[rows], &terminals).unwrap();
    writer.finish().unwrap();
}

#[test]
fn a_file_with_a_known_name_needs_no_task() {
    let folder = tempfile::tempdir().unwrap();
    write_maze(&folder.path().join("pointmaze-medium-navigate-v0.npz"));
    let report = json(folder.path(), &["data", "inspect", "pointmaze-medium-navigate-v0.npz", "--json"]);
    assert_eq!(report["task"], "pointmaze-medium-navigate-singletask-v0");
    assert_eq!((report["transitions"].as_u64(), report["episodes"].as_u64()), (Some(24), Some(2)));
    assert_eq!(report["mask_zeros"], 3); // 19, 20, 21
    assert_eq!(report["reward_sum"], -21.0);
    assert_eq!(report["goal_episode_share"], 0.5);
    assert_eq!(report["v_star"]["max"], 0.0);
    let never = -(1.0 - 0.995f64.powi(12)) / (1.0 - 0.995);
    assert!((report["v_star"]["min"].as_f64().unwrap() - never).abs() < 1e-9);
    assert!(report["warnings"].as_array().unwrap().iter().all(|w| w["code"] == "constant_observations"));

    let args =
        ["data", "inspect", "pointmaze-medium-navigate-v0.npz", "--task", "2", "--gamma", "0.5", "--json"];
    let report = json(folder.path(), &args);
    assert_eq!(report["task"], "pointmaze-medium-navigate-singletask-task2-v0");
    assert_eq!((report["mask_zeros"].as_u64(), report["gamma"].as_f64()), (Some(0), Some(0.5)));
    assert!(report["warnings"].as_array().unwrap().iter().any(|w| w["code"] == "goal_never_reached"));
}

#[test]
fn a_dataset_is_found_by_its_name_where_training_looks_for_it() {
    let [here, cache] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    write_maze(&cache.path().join("cube-single-play-v0.npz"));
    let inspect = |name: &str| {
        let mut command = std::process::Command::new(common::program());
        command.args(["data", "inspect", name, "--json"]).current_dir(here.path());
        command.env("ALBUM_CACHE", cache.path()).env("HOME", here.path()).output().unwrap()
    };
    let found = inspect("cube-single-play-v0");
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
    let report: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(report["file"], cache.path().join("cube-single-play-v0.npz").to_str().unwrap());
    let missing = inspect("scene-play-v0");
    let message = String::from_utf8_lossy(&missing.stderr);
    assert_eq!(missing.status.code(), Some(3), "{message}");
    assert!(message.contains("album data generate scene-play-v0"), "{message}");
}

#[test]
fn the_text_fits_a_narrow_terminal() {
    let folder = tempfile::tempdir().unwrap();
    write_maze(&folder.path().join("pointmaze-medium-navigate-v0.npz"));
    for args in
        [&["data", "inspect", "pointmaze-medium-navigate-v0.npz", "--task", "3"][..], &["data", "list"]]
    {
        let output = album(folder.path(), args);
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        for line in text.lines() {
            assert!(line.chars().count() <= 80 || line.contains('/'), "{line}"); // paths are not wrapped
        }
        assert!(
            text.contains("1 warning") || text.contains("WARNINGS") || text.contains("PointMaze"),
            "{text}"
        );
    }
}

#[test]
fn without_a_task_only_the_contents_are_told() {
    let folder = tempfile::tempdir().unwrap();
    write_maze(&folder.path().join("mine.npz"));
    let report = json(folder.path(), &["data", "inspect", "mine.npz", "--json"]);
    assert!(report["v_star"].is_null() && report["task"].is_null());
    let warnings = report["warnings"].as_array().unwrap();
    let message = warnings.iter().find(|w| w["code"] == "no_labels").unwrap()["message"].as_str().unwrap();
    assert!(message.contains("--task pointmaze-medium-navigate-singletask-v0"), "{message}");
    // A file name that does not match the contents causes a warning.
    write_maze(&folder.path().join("cube-single-play-v0.npz"));
    let report = json(folder.path(), &["data", "inspect", "cube-single-play-v0.npz", "--json"]);
    assert_eq!(report["warnings"][0]["code"], "other_environment");
    assert!(
        report["warnings"][0]["message"].as_str().unwrap().contains("looks like data of pointmaze-medium")
    );
}

#[test]
fn own_rewards_are_used() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = NpzWriter::create(folder.path().join("own.npz")).unwrap();
    writer.array_f32("observations", &[3, 1], &[0.0, f32::NAN, 2.0]).unwrap();
    writer.array_f32("actions", &[3, 1], &[0.0, 0.5, 0.0]).unwrap();
    writer.array_f32("rewards", &[3], &[1.0, 2.0, 0.0]).unwrap();
    writer.array_bool("terminals", &[3], &[false, false, true]).unwrap();
    writer.finish().unwrap();
    fails(
        folder.path(),
        &["data", "inspect", "own.npz"],
        2,
        &["`terminals`", "--ends terminal or --ends timeout"],
    );
    let args = ["data", "inspect", "own.npz", "--ends", "timeout", "--gamma", "0.5", "--json"];
    let report = json(folder.path(), &args);
    assert_eq!((report["own_rewards"].as_bool(), report["v_star"]["max"].as_f64()), (Some(true), Some(2.0)));
    assert_eq!(report["non_finite"][0]["row"], 1);
}

#[test]
fn what_cannot_be_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let inspect = |args: &[&str], code: i32, words: &[&str]| {
        let before = snapshot(folder.path());
        fails(folder.path(), &[&["data", "inspect"], args].concat(), code, words);
        assert_eq!(snapshot(folder.path()), before);
    };
    write_maze(&folder.path().join("mine.npz"));
    inspect(&["mine.npz", "--task", "1"], 2, &["the whole name of the task"]);
    inspect(&["mine.npz", "--task", "6"], 2, &["expected 1 to 5"]);
    inspect(&["mine.npz", "--gamma", "1"], 2, &["--gamma is 1"]);
    inspect(&["mine.npz", "--gamma", "nan"], 2, &["--gamma is NaN"]);
    inspect(
        &["mine.npz", "--task", "cube-singel-play-singletask-v0"],
        3,
        &["did you mean `cube-single-play-singletask-v0`"],
    );
    inspect(
        &["mine.npz", "--task", "antmaze-large-navigate-singletask-v0"],
        3,
        &["`qpos`", "for antmaze-large", "looks like data of pointmaze-medium"],
    );
    inspect(&["nowhere.npz"], 5, &["nowhere.npz"]);

    let bytes = std::fs::read(folder.path().join("mine.npz")).unwrap();
    std::fs::write(folder.path().join("cut.npz"), &bytes[..bytes.len() / 2]).unwrap();
    inspect(&["cut.npz"], 3, &["cut.npz", "cut off"]);
    std::fs::write(folder.path().join("pickle.npz"), b"\x80\x04\x95\x10").unwrap();
    inspect(&["pickle.npz"], 3, &["pickle"]);
    let mut writer = NpzWriter::create(folder.path().join("short.npz")).unwrap();
    writer.array_f32("observation", &[2, 1], &[0.0; 2]).unwrap();
    writer.array_bool("terminals", &[2], &[false, true]).unwrap();
    writer.finish().unwrap();
    inspect(&["short.npz"], 3, &["`observations`", "rename `observation` if it is meant"]);
    inspect(&["short.npz", "--task", "cube-single-play-singletask-v0"], 3, &["`qpos`", "not in the archive"]);
}

#[test]
fn all_datasets_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let list = json(folder.path(), &["data", "list", "--json"]);
    let datasets = list["datasets"].as_array().unwrap();
    assert_eq!(datasets.len(), 42);
    assert!(datasets[..10].iter().all(|d| d["group"] == "paper" && d["alpha_bc"].is_f64()));
    let cube = datasets.iter().find(|d| d["name"] == "cube-single-play-v0").unwrap();
    assert_eq!((cube["alpha_bc"].as_f64(), cube["default_task"].as_u64()), (Some(0.3), Some(2)));
    assert_eq!((cube["observation_dim"].as_u64(), cube["horizon"].as_u64()), (Some(28), Some(200)));
    assert_eq!(cube["get"], serde_json::json!(["generate", "fetch"]));
    assert_eq!(datasets[10]["name"], "pointmaze-medium-navigate-v0");
    assert_eq!(datasets[10]["get"][0], "first_use");
}

#[test]
fn a_partial_recording_is_listed_as_one() {
    let folder = tempfile::tempdir().unwrap();
    write_maze(&folder.path().join("pointmaze-medium-navigate-v0.npz"));
    let run = |json: bool| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_album"));
        command.args(["data", "list"]).args(json.then_some("--json")).env("ALBUM_CACHE", folder.path());
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let list: serde_json::Value = serde_json::from_str(&run(true)).unwrap();
    let recording = &list["datasets"][10]["recording"];
    assert_eq!((recording["episodes"].as_u64(), recording["complete"].as_bool()), (Some(2), Some(false)));
    assert!(list["datasets"][0]["recording"].is_null());
    assert!(run(false).contains("2/1000"), "{}", run(false));
}

#[test]
fn a_log_says_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let log = "run,step,obs_x,obs_gear,u,r,terminated\n\
               a,0,0.5,low,-40,0,0\na,1,1.5,high,60,1,1\nb,0,0.0,low,10,0,0\nb,1,2.0,low,20,0,0\n";
    std::fs::write(folder.path().join("log.csv"), log).unwrap();
    fn inspect<'a>(args: &[&'a str]) -> Vec<&'a str> {
        [&["data", "inspect", "log.csv", "--columns", "episode=run"], args].concat()
    }
    fails(folder.path(), &inspect(&[]), 2, &["whole numbers from -40 to 60", "--actions discrete"]);
    let report = json(folder.path(), &inspect(&["--actions", "continuous", "--json"]));
    assert_eq!((&report["format"], &report["episodes"]), (&"csv".into(), &2.into()));
    assert_eq!(report["observation"]["names"], serde_json::json!(["obs_x", "obs_gear=high", "obs_gear=low"]));
    let action =
        serde_json::json!({"dim": 1, "names": ["u"], "kind": "continuous", "low": [-40.0], "high": [60.0]});
    assert_eq!(report["action"], action);
    assert_eq!(report["ends"], serde_json::json!({"terminal": 1, "timeout": 1}));
    assert!(report["guesses"].as_array().unwrap().iter().any(|guess| guess == "reward=r"), "{report}");
    let text = album(folder.path(), &inspect(&["--action-bounds", "-100,100", "--actions", "continuous"]));
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("u -100 to 100") && text.contains("1 by the end of the task, 1 cut"), "{text}");

    let import =
        ["data", "import", "log.csv", "--columns", "episode=run", "--actions", "discrete", "--out", "no"];
    fails(folder.path(), &import, 3, &["discrete actions from -40 to 60"]);
    assert!(!folder.path().join("no").exists());
    let import = [
        "data",
        "import",
        "log.csv",
        "--columns",
        "episode=run",
        "--actions",
        "continuous",
        "--out",
        "columns",
        "--json",
    ];
    let report = json(folder.path(), &import);
    assert_eq!((&report["transitions"], &report["description"]["format"]), (&3.into(), &"csv".into()));
    let report = json(folder.path(), &["data", "inspect", "columns", "--json"]);
    assert_eq!((&report["action"], &report["format"]), (&action, &"columns".into()));
    fails(
        folder.path(),
        &["data", "inspect", "log.csv", "--columns", "obs=speed"],
        3,
        &["no column `speed`"],
    );
    fails(
        folder.path(),
        &["data", "inspect", "log.csv", "--columns", "reword=r"],
        2,
        &["did you mean `reward`"],
    );
}

/// Minari ids are resolved in the folder that MINARI_DATASETS_PATH names, else under the home directory.
#[test]
fn a_minari_id_is_found_in_the_users_cache() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../album-data/tests/golden/minari");
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join(".minari/datasets/album/hdf5-v0/data");
    std::fs::create_dir_all(&data).unwrap();
    for name in ["metadata.json", "main_data.hdf5"] {
        std::fs::copy(golden.join("album/hdf5-v0/data").join(name), data.join(name)).unwrap();
    }
    let inspect = |id: &str, cache: Option<&Path>| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_album"));
        command.args(["data", "inspect", id, "--json"]).current_dir(home.path());
        command.env("HOME", home.path()).env_remove("MINARI_DATASETS_PATH");
        command.envs(cache.map(|cache| ("MINARI_DATASETS_PATH", cache))).output().unwrap()
    };
    for (id, cache) in [("album/hdf5-v0", None), ("album/parquet-v0", Some(golden.as_path()))] {
        let output = inspect(id, cache);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{id}: {told}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(
            (report["format"].as_str(), report["episodes"].as_u64()),
            (Some("minari"), Some(2)),
            "{id}"
        );
        assert_eq!(report["action"]["low"][0], -4.0, "{id}");
        assert!(report["bytes"].as_u64() > Some(1000), "{id}: {}", report["bytes"]);
    }
    // An id that is not in the cache is reported as a missing file.
    let output = inspect("album/parquet-v0", None);
    assert_eq!(output.status.code(), Some(5), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The parquet crate panics on some damaged pages; that must be an ordinary error without a thread message.
#[test]
fn a_damaged_file_is_one_message() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../album-data/tests/golden/lists.parquet");
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = std::fs::read(golden).unwrap();
    (bytes[1225], bytes[1336]) = (163, 0);
    std::fs::write(folder.path().join("log.parquet"), bytes).unwrap();
    let output = album(folder.path(), &["data", "inspect", "log.parquet"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(told.starts_with("error: ") && told.contains("damaged Parquet file"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
}
