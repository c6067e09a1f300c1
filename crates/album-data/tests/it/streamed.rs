//! Columns that are read in parts are checked like whole arrays, wherever the damage is.
#![allow(clippy::unwrap_used)]

use crate::common;

use album_data::columns::{Import, import};
use album_data::ogbench::{TaskName, load_task};
use album_data::{DataError, Dataset};
use common::{Entry, archive, crc32, deflate, deflated, npy, plain};

const ROWS: usize = 60_000;
const COLUMNS: [&str; 4] = ["observations", "actions", "terminals", "qpos"];

/// A column's npy file. All have more than one part but the flags.
fn column(name: &str, fortran: bool) -> Vec<u8> {
    let number = |row: usize, axis: usize| ((row * 7 + axis * 3) % 1000) as f32 / 1000.0;
    if name == "terminals" {
        let flags: Vec<u8> = (0..ROWS).map(|row| u8::from(row % 100 == 99)).collect();
        return npy("'|b1'", "False", &format!("({ROWS},)"), &flags);
    }
    let (order, numbers): (_, Vec<f32>) = if fortran {
        ("True", (0..2 * ROWS).map(|i| number(i % ROWS, i / ROWS)).collect())
    } else {
        ("False", (0..2 * ROWS).map(|i| number(i / 2, i % 2)).collect())
    };
    let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
    npy("'<f4'", order, &format!("({ROWS}, 2)"), &bytes)
}

fn entries() -> Vec<Entry> {
    COLUMNS.iter().map(|name| deflated(&format!("{name}.npy"), &column(name, false))).collect()
}

/// Loads these entries as a task; an import must be of the same opinion.
fn load(entries: &[Entry]) -> Result<Dataset, DataError> {
    let dir = tempfile::tempdir().unwrap();
    let (path, target) = (dir.path().join("data.npz"), dir.path().join("data.columns"));
    std::fs::write(&path, archive(entries)).unwrap();
    let task: TaskName = "pointmaze-medium-navigate-singletask-task1-v0".parse().unwrap();
    let loaded = load_task(&path, &task);
    let environment = Some(task.environment());
    let what = Import { sources: &[path], target: &target, replace: false, environment };
    match (&loaded, import(&what, &mut |_, _| true)) {
        (Ok(data), Ok(_)) => assert_eq!(load_task(&target, &task).unwrap(), *data),
        (Err(loading), Err(importing)) => assert_eq!(loading.to_string(), importing.to_string()),
        (loaded, imported) => panic!("{loaded:?} but {imported:?}"),
    }
    assert_eq!(target.exists(), loaded.is_ok());
    loaded
}

#[test]
fn the_order_of_the_elements_does_not_matter() {
    let straight = load(&entries()).unwrap();
    let turned: Vec<Entry> =
        COLUMNS.iter().map(|name| deflated(&format!("{name}.npy"), &column(name, true))).collect();
    assert_eq!(load(&turned).unwrap(), straight);
    assert_eq!(straight.observation(404 * 99), [0.8, 0.803]); // row 40,400
}

#[test]
fn damage_is_found_in_every_column() {
    for (i, name) in COLUMNS.iter().enumerate() {
        let message = |damage: &dyn Fn(&mut Entry)| {
            let mut entries = entries();
            damage(&mut entries[i]);
            let message = load(&entries).unwrap_err().to_string();
            assert!(message.contains(&format!("data.npz: array `{name}`: ")), "{message}");
            message
        };
        let content = column(name, false);
        let cut = deflate(&content[..content.len() - 100]);
        let text = message(&|entry| {
            entry.compressed = cut.len() as u32;
            entry.stored.clone_from(&cut);
        });
        let bytes = content.len() - npy("''", "", "", &[]).len();
        assert!(text.contains("expected") && bytes > 100, "{text}");
        assert!(message(&|entry| entry.crc ^= 1).contains("CRC-32"));
        let longer = deflate(&[&content[..], &[0]].concat());
        let text = message(&|entry| {
            entry.compressed = longer.len() as u32;
            entry.stored.clone_from(&longer);
        });
        assert!(text.contains("inflates to more bytes"), "{text}");
        let text = message(&|entry| {
            entry.stored.push(0);
            entry.compressed += 1;
        });
        assert!(text.contains("bytes follow the end of the compressed stream"), "{text}");
        message(&|entry| {
            let middle = entry.stored.len() / 2;
            entry.stored.truncate(middle);
            entry.compressed = middle as u32;
        });
        // Stored without compression, one bit flipped.
        message(&|entry| {
            let mut bytes = content.clone();
            bytes[300] ^= 1;
            *entry = Entry { crc: crc32(&content), ..plain(&format!("{name}.npy"), &bytes) };
        });
    }
}

#[test]
fn odd_shapes_are_refused() {
    for (i, name) in COLUMNS.iter().enumerate() {
        for shape in
            ["()", "(0,)", "(0, 2)", "(60000, 0)", "(9223372036854775807, 0)", "(60000, 2, 1)", "(1, 1)"]
        {
            let mut entries = entries();
            let bytes = if shape == "()" || shape == "(1, 1)" {
                4
            } else if shape.ends_with(", 1)") {
                ROWS * 8
            } else {
                0
            };
            let content = npy("'<f4'", "False", shape, &vec![0; bytes]);
            entries[i] = deflated(&format!("{name}.npy"), &content);
            let message = load(&entries).unwrap_err().to_string();
            let refused =
                ["found shape", "dtype", "found no transition"].iter().any(|words| message.contains(words));
            assert!(refused, "{name} {shape}: {message}");
        }
    }
}
