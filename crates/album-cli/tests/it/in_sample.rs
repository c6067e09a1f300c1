//! V*_D has one definition: `data inspect`, `eval --critic` and `result.json` (the source of the tables)
//! agree.
#![allow(clippy::unwrap_used)]

use crate::common;

use album_data::NpzWriter;
use common::json;
use std::path::Path;

const TASK: &str = "pointmaze-medium-navigate-singletask-task1-v0";

/// Two walks through the medium PointMaze. The second passes the goal (20, 20) of task 1; with `meet`, it
/// starts in a state on the first walk.
fn write(path: &Path, meet: bool) {
    let start = if meet { 4.0 } else { 4.5 };
    let x = (0..20).map(|i| i as f32 - 1.0).chain((0..20).map(|i| start + i as f32));
    let xy: Vec<f32> = x.flat_map(|x| [x, 20.0]).collect();
    let actions: Vec<f32> = (0..80).map(|i| (i % 9) as f32 / 10.0).collect();
    let terminals: Vec<bool> = (0..40).map(|row| row % 20 == 19).collect();
    let mut writer = NpzWriter::create(path).unwrap();
    writer.array_f32("observations", &[40, 2], &xy).unwrap();
    writer.array_f32("actions", &[40, 2], &actions).unwrap();
    writer.array_f32("qpos", &[40, 2], &xy).unwrap();
    writer.array_bool("terminals", &[40], &terminals).unwrap();
    writer.finish().unwrap();
}

#[test]
fn one_definition_of_v_star() {
    for meet in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        write(&folder.join("data.npz"), meet);
        let mut train = vec!["train", TASK, "--data", "data.npz", "--out", "run", "--json", "--steps", "4"];
        train.extend(["--set", "hidden=[8]", "--set", "batch_size=4", "--set", "gamma=0.9"]);
        train.extend(["--set", "reward_scale=0.5", "--eval-every", "0"]);
        let result = json(folder, &train);
        let eval = json(folder, &["eval", "run", "--episodes", "1", "--critic", "--json"]);
        let inspect = ["data", "inspect", "data.npz", "--task", TASK, "--gamma", "0.9", "--json"];
        let report = json(folder, &inspect);
        // By hand: the first walk has 19 steps at -1; the goal's neighbourhood begins at x = 19.
        let steps = |n: i32| -(1.0 - 0.9f64.powi(n)) / 0.1;
        let least = if meet { steps(20) } else { steps(19) };
        for key in ["min", "mean", "max"] {
            let number = |value: &serde_json::Value| value.as_f64().unwrap();
            let found = number(&report["v_star"][key]);
            for other in [&eval["critic"]["v_star"][key], &result["data_values"][format!("v_{key}")]] {
                assert!((found - number(other)).abs() < 1e-6, "{key}: {found} against {other}");
            }
            if key == "min" {
                assert!((found - least).abs() < 1e-6, "{found} against {least}");
            }
        }
        let returns = report["return_to_go"]["mean"].as_f64().unwrap();
        assert_eq!((report["v_star"]["mean"].as_f64().unwrap() - returns).abs() > 1e-3, meet);
    }
}
