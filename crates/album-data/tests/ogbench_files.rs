//! OGBench-layout files: rows to transitions, labels, and what is refused.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use album_data::ogbench::{Label, Needs, TaskName, load_labelled, load_task};
use album_data::{Array, Data, NpzWriter};

/// Two walks through the medium pointmaze, of which the second meets the goal (20, 20).
fn arrays() -> Vec<(&'static str, Array)> {
    let xy = vec![0.0, 0.0, 0.2, 0.0, 0.4, 0.0, 18.9, 20.0, 19.0, 20.0, 19.2, 20.0f32];
    let array = |shape: &[usize], data| Array::new(shape.to_vec(), data).unwrap();
    vec![
        ("observations", array(&[6, 2], Data::F32(xy.clone()))),
        (
            "actions",
            array(&[6, 2], Data::F32(vec![1.0, 0.0, 1.0, 0.0, 9.0, 9.0, 0.5, 0.0, 1.0, 0.0, 9.0, 9.0])),
        ),
        ("terminals", array(&[6], Data::Bool(vec![false, false, true, false, false, true]))),
        ("qpos", array(&[6, 2], Data::F32(xy))),
        ("qvel", array(&[6, 2], Data::F32(vec![0.0; 12]))),
        ("button_states", array(&[6, 1], Data::I64(vec![0, 1, 0, 1, 0, 1]))),
    ]
}

fn write(path: &Path, arrays: &[(&str, Array)]) {
    let mut writer = NpzWriter::create(path, true).unwrap();
    for (name, array) in arrays {
        writer.array(name, array).unwrap();
    }
    writer.finish().unwrap();
}

fn task() -> TaskName {
    "pointmaze-medium-navigate-singletask-task1-v0".parse().unwrap()
}

#[test]
fn labels_are_those_of_the_state_before_the_action() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("walk.npz");
    write(&path, &arrays());
    let data = load_task(&path, &task()).unwrap();
    assert_eq!((data.len(), data.observation_dim(), data.action_dim()), (4, 2, 2));
    assert_eq!([0, 1, 2, 3].map(|t| data.reward(t)), [-1.0, -1.0, -1.0, 0.0]);
    assert_eq!([0, 1, 2, 3].map(|t| data.mask(t)), [1.0, 1.0, 1.0, 0.0]);
    assert_eq!([0, 1, 2, 3].map(|t| data.terminal(t)), [false, true, false, true]);
    assert_eq!(data.next_observation(1), [0.4, 0.0]);
    assert_eq!(data.action(0), [1.0 - 1e-5, 0.0]);
}

#[test]
fn a_function_sees_the_columns_it_asks_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("walk.npz");
    write(&path, &arrays());
    let needs = Needs { observation: 2, button_states: 1, ..Needs::default() };
    let data = load_labelled(&path, needs, |row| {
        assert!(row.qpos.is_empty());
        Label { reward: row.observation[0], mask: row.button_states[0] as f32 }
    })
    .unwrap();
    assert_eq!([0, 1, 2, 3].map(|t| data.reward(t)), [0.0, 0.2, 18.9, 19.0]);
    assert_eq!([0, 1, 2, 3].map(|t| data.mask(t)), [0.0, 1.0, 1.0, 0.0]);
}

#[test]
fn problems_name_file_key_and_row() {
    let dir = tempfile::tempdir().unwrap();
    let message = |key: &str, array: Option<Array>| {
        let mut arrays = arrays();
        match (array, arrays.iter().position(|(name, _)| *name == key).unwrap()) {
            (Some(array), i) => arrays[i].1 = array,
            (None, i) => drop(arrays.remove(i)),
        }
        let path = dir.path().join("bad.npz");
        write(&path, &arrays);
        let message = load_task(&path, &task()).unwrap_err().to_string();
        let end = message.find("bad.npz: ").unwrap() + "bad.npz: ".len();
        message[end..].to_owned()
    };
    let array = |shape: &[usize], data| Some(Array::new(shape.to_vec(), data).unwrap());
    assert!(message("qpos", None).starts_with("array `qpos`: not in the archive, which holds"));
    assert_eq!(
        message("actions", array(&[5, 2], Data::F32(vec![0.0; 10]))),
        "array `actions`: found shape [5, 2], expected [6, at least 1], since there are 6 `terminals`"
    );
    assert_eq!(
        message("qpos", array(&[6, 1], Data::F32(vec![0.0; 6]))),
        "array `qpos`: found shape [6, 1], expected [6, at least 2], since there are 6 `terminals`"
    );
    assert_eq!(
        message("observations", array(&[6, 3], Data::F32(vec![0.0; 18]))),
        "array `observations`: found shape [6, 3], expected 2 columns for pointmaze-medium"
    );
    assert_eq!(
        message("terminals", array(&[6], Data::F64(vec![0.0; 6]))),
        "array `terminals`: found dtype float64, expected bool, or an integer type holding only 0 and 1"
    );
    let mut xy = vec![0.0; 12];
    xy[7] = f32::NAN;
    assert_eq!(
        message("observations", array(&[6, 2], Data::F32(xy))),
        "array `observations`: row 3, column 1: found NaN, expected a finite number"
    );
    let mut xy = vec![0.0; 12];
    xy[2] = f32::NAN;
    assert_eq!(
        message("qpos", array(&[6, 2], Data::F32(xy))),
        "array `qpos`: row 1, column 0: found NaN, expected a finite number"
    );
    assert_eq!(
        message("terminals", array(&[6], Data::Bool(vec![false; 6]))),
        "array `terminals`: row 5: found false, expected true: the last row of the data ends an episode"
    );
}
