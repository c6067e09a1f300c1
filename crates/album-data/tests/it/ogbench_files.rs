//! OGBench-layout files: rows to transitions, labels, and what is refused.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::path::Path;

use album_data::columns::{Import, import};
use album_data::ogbench::{ENVIRONMENTS, Recording, TaskName, load_task};
use album_data::{Array, Data, DataError, Dataset, Labels, NpzWriter, load};

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
    ]
}

fn write(path: &Path, arrays: &[(&str, Array)]) {
    let mut writer = NpzWriter::create(path).unwrap();
    for (name, array) in arrays {
        writer.array(name, array).unwrap();
    }
    writer.finish().unwrap();
}

fn own(path: &Path) -> Dataset {
    load(path, Labels::Own).unwrap().dataset
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
        "array `actions`: found shape [5, 2], expected [6, 2] for pointmaze-medium, since there are 6 `terminals`"
    );
    for width in [1, 3] {
        assert_eq!(
            message("qpos", array(&[6, width], Data::F32(vec![0.0; 6 * width]))),
            format!(
                "array `qpos`: found shape [6, {width}], expected [6, 2] for pointmaze-medium, since there are 6 \
                 `terminals`"
            )
        );
    }
    assert_eq!(
        message("observations", array(&[6, 3], Data::F32(vec![0.0; 18]))),
        "array `observations`: found shape [6, 3], expected [6, 2] for pointmaze-medium, since there are 6 \
         `terminals`"
    );
    let mut actions = vec![0.0; 12];
    (actions[7], actions[4]) = (-1.01, 7.0); // row 2 ends an episode: what stands there does not matter
    assert_eq!(
        message("actions", array(&[6, 2], Data::F32(actions))),
        "array `actions`: row 3, column 1: found -1.01, expected an action within [-1, 1]"
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

/// A file of two rows with the widths of an environment, or with other buttons.
fn write_like(path: &Path, name: &str, buttons: Option<usize>) {
    let e = ENVIRONMENTS.iter().find(|e| e.name == name).unwrap();
    let mut writer = NpzWriter::create(path).unwrap();
    let mut floats =
        |key: &str, width: usize| writer.array_f32(key, &[2, width], &vec![0.0; 2 * width]).unwrap();
    floats("observations", e.observation_dim);
    floats("actions", e.action_dim);
    floats("qpos", e.qpos_dim);
    let buttons = buttons.unwrap_or(e.buttons());
    if buttons > 0 {
        writer.array_i64("button_states", &[2, buttons], &vec![0; 2 * buttons]).unwrap();
    }
    writer.array_bool("terminals", &[2], &[false, true]).unwrap();
    writer.finish().unwrap();
}

#[test]
fn every_environment_takes_its_own_files_and_tells_others() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data.npz");
    for file in &ENVIRONMENTS {
        write_like(&path, file.name, None);
        for environment in &ENVIRONMENTS {
            let task: TaskName =
                format!("{}-{}-singletask-v0", environment.name, environment.data_kinds[0]).parse().unwrap();
            let same = |e: &album_data::ogbench::Environment| (e.observation_dim, e.qpos_dim, e.buttons());
            match load_task(&path, &task) {
                Ok(_) => assert_eq!(same(file), same(environment), "{}", environment.name),
                Err(DataError::OtherEnvironment { looks_like, .. }) => {
                    assert!(looks_like.contains(&file.name), "{looks_like:?} {}", file.name);
                    assert_ne!(same(file), same(environment));
                }
                Err(other) => panic!("{}: {other}", file.name),
            }
        }
    }
}

#[test]
fn another_environment_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data.npz");
    let message = |task: &str| {
        let message = load_task(&path, &task.parse().unwrap()).unwrap_err().to_string();
        message[message.find("data.npz: ").unwrap() + 10..].to_owned()
    };
    write_like(&path, "cube-double", None);
    assert_eq!(
        message("cube-single-play-singletask-v0"),
        "array `qpos`: found shape [2, 28], expected [2, 21] for cube-single, since there are 2 `terminals`; the file \
         looks like data of cube-double, not of cube-single"
    );
    write_like(&path, "cube-quadruple", None); // whose observations are as wide as those of puzzle-3x3
    assert!(
        message("puzzle-3x3-play-singletask-v0")
            .ends_with("looks like data of cube-quadruple, not of puzzle-3x3")
    );
    write_like(&path, "puzzle-3x3", Some(0));
    assert!(
        message("puzzle-3x3-play-singletask-v0")
            .starts_with("array `button_states`: not in the archive, which holds")
    );
    write_like(&path, "scene", Some(3));
    assert!(
        message("scene-play-singletask-v0")
            .contains("`button_states`: found shape [2, 3], expected [2, 2] for scene")
    );
}

#[test]
fn pickles_and_lies_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data.npz");
    write(&path, &arrays());
    let honest = std::fs::read(&path).unwrap();
    let message = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        load_task(&path, &task()).unwrap_err().to_string()
    };
    let with = |terminals: &[u8]| common::archive(&[common::deflated("terminals.npy", terminals)]);
    let pickled = message(&with(&common::npy("'|O'", "False", "(6,)", b"\x80\x04N.")));
    assert!(pickled.contains("array `terminals`: dtype |O") && pickled.contains("pickle"), "{pickled}");
    let lying = message(&with(&common::npy("'|b1'", "False", "(6000000000,)", &[0; 6])));
    assert!(lying.contains("array `terminals`: found 6 bytes, expected 6000000000"), "{lying}");
    let long = message(&with(&common::npy("'|b1'", "False", "(6,)", &[0; 7])));
    assert!(long.contains("array `terminals`: found 7 bytes, expected 6"), "{long}");
    for cut in [1, honest.len() / 2, honest.len() - 1] {
        let message = message(&honest[..cut]);
        assert!(message.contains("data.npz"), "{message}");
    }
}

#[test]
fn renamed_arrays_are_recognised() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data.npz");
    let arrays: Vec<(&str, Array)> = arrays()
        .into_iter()
        .map(|(name, array)| (if name == "observations" { "observation" } else { name }, array))
        .collect();
    write(&path, &arrays);
    let message = load_task(&path, &task()).unwrap_err().to_string();
    assert!(
        message.contains("array `observations`: not in the archive, which holds `observation`"),
        "{message}"
    );
    assert!(message.ends_with("; rename `observation` if it is meant"), "{message}");
}

#[test]
fn own_rows_may_leave_out_the_masks() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("own.npz");
    let mut arrays = arrays();
    let numbers = |data: &[f32]| Array::new(vec![data.len()], Data::F32(data.to_vec())).unwrap();
    arrays.push(("rewards", numbers(&[1.0, 2.0, 9.0, 3.0, 4.0, 9.0])));
    write(&path, &arrays);
    let data = own(&path);
    assert_eq!(
        [0, 1, 2, 3].map(|t| (data.reward(t), data.mask(t))),
        [(1.0, 1.0), (2.0, 1.0), (3.0, 1.0), (4.0, 1.0)]
    );
    arrays.push(("masks", numbers(&[1.0, 0.0, 9.0, 1.0, 1.0])));
    write(&path, &arrays);
    let message = load(&path, Labels::Own).unwrap_err().to_string();
    assert!(
        message.ends_with("array `masks`: found shape [5], expected [6], since there are 6 `terminals`"),
        "{message}"
    );
}

/// Four transitions: 0 -> 1 ended, 5 -> 6 -> 7 timed out, and 8 at the end of the file.
fn transitions(path: &Path, next: bool, timeouts: bool) {
    let mut writer = NpzWriter::create(path).unwrap();
    writer.array_f32("observations", &[4, 1], &[0.0, 5.0, 6.0, 8.0]).unwrap();
    writer.array_f32("actions", &[4, 1], &[0.1, 0.2, 0.3, 0.4]).unwrap();
    writer.array_f32("rewards", &[4], &[1.0, 2.0, 3.0, 4.0]).unwrap();
    writer.array_bool("terminals", &[4], &[true, false, false, false]).unwrap();
    if next {
        writer.array_f32("next_observations", &[4, 1], &[1.0, 6.0, 7.0, 9.0]).unwrap();
    }
    if timeouts {
        writer.array_bool("timeouts", &[4], &[false, false, true, false]).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn own_transitions_keep_their_ends_apart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("own.npz");
    for timeouts in [true, false] {
        transitions(&path, true, timeouts); // without time-outs, the jump from 7 to 8 ends the episode
        let data = own(&path);
        assert_eq!((data.len(), data.episodes().len()), (4, 3));
        assert_eq!([0, 1, 2, 3].map(|t| data.mask(t)), [0.0, 1.0, 1.0, 1.0]);
        assert_eq!([0, 1, 2, 3].map(|t| data.terminal(t)), [true, false, true, true]);
        assert_eq!([0, 1, 2, 3].map(|t| data.next_observation(t)[0]), [1.0, 6.0, 7.0, 9.0]);
        assert_eq!([0, 1, 2, 3].map(|t| data.reward(t)), [1.0, 2.0, 3.0, 4.0]);
    }
    // Where successors are unknown, only the transitions that ended or went on are left.
    transitions(&path, false, true);
    let data = own(&path);
    assert_eq!((data.len(), data.episodes().len()), (2, 3));
    assert_eq!([0, 1].map(|t| (data.observation(t)[0], data.mask(t))), [(0.0, 0.0), (5.0, 1.0)]);
    assert_eq!(data.next_observation(1), [6.0]);
}

#[test]
fn masks_of_transitions_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("own.npz");
    let mut writer = NpzWriter::create(&path).unwrap();
    writer.array_f32("observations", &[3, 1], &[0.0, 1.0, 5.0]).unwrap();
    writer.array_f32("next_observations", &[3, 1], &[1.0, 2.0, 6.0]).unwrap();
    writer.array_f32("actions", &[3, 1], &[0.1, 0.2, 0.3]).unwrap();
    writer.array_f32("rewards", &[3], &[1.0, 2.0, 3.0]).unwrap();
    writer.array_f32("masks", &[3], &[0.0, 1.0, 1.0]).unwrap();
    writer.array_bool("terminals", &[3], &[false, true, true]).unwrap();
    writer.finish().unwrap();
    let data = own(&path);
    // `terminals` only end episodes where the file says by itself what follows.
    assert_eq!([0, 1, 2].map(|t| data.mask(t)), [0.0, 1.0, 1.0]);
    assert_eq!([0, 1, 2].map(|t| data.terminal(t)), [false, true, true]);
}

#[test]
fn what_is_ignored_is_named_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("walk.npz");
    let mut arrays = arrays();
    for name in ["rewards", "masks", "mask"] {
        arrays.push((name, Array::new(vec![6], Data::F32(vec![1.0; 6])).unwrap()));
    }
    write(&path, &arrays);
    let unknown = "array `mask` is ignored: no dataset has an array of this name; did you mean `masks`?";
    assert_eq!(load(&path, Labels::Own).unwrap().warnings, [unknown]);
    let task = task();
    let warnings = load(&path, Labels::Task(&task)).unwrap().warnings;
    let reason = format!("is ignored: rewards and masks are those of the task {task}");
    assert_eq!(
        warnings,
        [format!("array `rewards` {reason}"), format!("array `masks` {reason}"), unknown.to_owned()]
    );
    // Rows that are lost are counted.
    transitions(&path, false, true);
    let warnings = load(&path, Labels::Own).unwrap().warnings;
    assert!(warnings[0].starts_with("2 transitions that were cut"), "{warnings:?}");
}

#[test]
fn a_task_labels_transitions_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("walk.npz");
    let mut writer = NpzWriter::create(&path).unwrap();
    let xy = [18.9, 20.0, 19.0, 20.0];
    writer.array_f32("observations", &[2, 2], &xy).unwrap();
    writer.array_f32("next_observations", &[2, 2], &[19.0, 20.0, 19.2, 20.0]).unwrap();
    writer.array_f32("qpos", &[2, 2], &xy).unwrap();
    writer.array_f32("actions", &[2, 2], &[0.5; 4]).unwrap();
    writer.array_bool("terminals", &[2], &[false, true]).unwrap();
    writer.finish().unwrap();
    // The last transition was dropped when its row was taken for a state.
    let data = load_task(&path, &task()).unwrap();
    assert_eq!((data.len(), data.next_observation(1)), (2, &[19.2, 20.0][..]));
    assert_eq!([0, 1].map(|t| (data.reward(t), data.mask(t))), [(-1.0, 1.0), (0.0, 0.0)]);
}

#[test]
fn imports_keep_rewards_masks_and_every_transition() {
    let dir = tempfile::tempdir().unwrap();
    let folder = |source: &Path| {
        let target = source.with_extension("columns");
        let what =
            Import { sources: &[source.to_path_buf()], target: &target, replace: true, environment: None };
        let imported = import(&what, &mut |_, _| true).unwrap().unwrap();
        (target, imported)
    };
    // A row for each state.
    let path = dir.path().join("rows.npz");
    let mut arrays = arrays();
    let numbers = |data: &[f32]| Array::new(vec![data.len()], Data::F32(data.to_vec())).unwrap();
    arrays.push(("rewards", numbers(&[1.0, 2.0, 9.0, 3.0, 4.0, 9.0])));
    arrays.push(("masks", numbers(&[1.0, 0.0, 9.0, 1.0, 1.0, 9.0])));
    arrays.push(("infos", numbers(&[0.0; 6])));
    arrays.push(("album_packages", numbers(&[0.0; 3])));
    write(&path, &arrays);
    let (columns, imported) = folder(&path);
    assert_eq!(imported.warnings, ["array `infos` is ignored: no dataset has an array of this name"]);
    assert_eq!((own(&columns), own(&columns).content_hash()), (own(&path), own(&path).content_hash()));
    assert_eq!(load_task(&columns, &task()).unwrap(), load_task(&path, &task()).unwrap());
    // A row for each transition, with successors and without.
    let path = dir.path().join("transitions.npz");
    for next in [true, false] {
        transitions(&path, next, true);
        let (columns, imported) = folder(&path);
        assert_eq!((imported.transitions, imported.warnings.len()), if next { (4, 0) } else { (2, 1) });
        assert_eq!((own(&columns), own(&columns).content_hash()), (own(&path), own(&path).content_hash()));
    }
}

#[test]
fn partial_recordings_are_told_from_whole_ones() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pointmaze-medium-navigate-v0.npz");
    write(&path, &arrays());
    let recording = Recording::read(&path, &task()).unwrap();
    assert_eq!((recording.episodes, recording.transitions, recording.complete), (2, 4, Some(false)));
    assert_eq!(recording.to_string(), "2 of 1000 episodes");
    let unknown = "humanoidmaze-large-navigate-singletask-v0".parse().unwrap();
    assert_eq!(Recording::read(&path, &unknown).unwrap().complete, None);
}
