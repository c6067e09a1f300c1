//! Valid files and folders of every kind, from which inputs start.

use std::fs;
use std::path::{Path, PathBuf};

use album::export::{Export, Format};
use album::{Overrides, Resources, Run, config};
use album_data::columns::import_source;
use album_data::table::{ColumnData, TableWriter};
use album_data::{NpzWriter, Source};
use album_train::StopFlag;

use crate::{Folder, scratch};

/// The files of album-data's tests, written by other libraries.
pub fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/album-data/tests/golden")
}

/// One of these files.
pub fn golden_file(name: &str) -> Vec<u8> {
    let path = golden().join(name);
    fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A copy of one of these folders.
pub fn golden_folder(name: &str) -> Folder {
    let target = scratch().join("golden").join(name);
    copy(&golden().join(name), &target);
    Folder::of(target)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).into_iter().flatten().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

/// Imported columns.
pub fn columns() -> Folder {
    let folder = scratch().join("log.columns");
    import_source(&Source::of(golden().join("log.csv")), &folder, true, &mut |_| true).expect("an import");
    Folder::of(folder)
}

/// Folders of arrays.
pub fn arrays() -> Folder {
    let folder = scratch().join("arrays");
    fs::create_dir_all(&folder).expect("a folder");
    for (name, bytes) in npys() {
        fs::write(folder.join(name), bytes).expect("an array");
    }
    Folder::of(folder)
}

/// Arrays of a small log, one file each.
pub fn npys() -> Vec<(String, Vec<u8>)> {
    let numbers = |n: usize| (0..n).flat_map(|i| (i as f32).to_le_bytes()).collect::<Vec<u8>>();
    let flags = |n: usize| (0..n).map(|i| u8::from(i + 1 == n)).collect::<Vec<u8>>();
    [
        ("observations.npy", npy("<f4", "(4, 2)", &numbers(8))),
        ("actions.npy", npy("<f4", "(4, 1)", &numbers(4))),
        ("rewards.npy", npy("<f4", "(4,)", &numbers(4))),
        ("terminals.npy", npy("|b1", "(4,)", &flags(4))),
    ]
    .map(|(name, bytes)| (name.to_owned(), bytes))
    .into()
}

/// An array as NumPy writes it.
pub fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), data].concat()
}

/// The five arrays of `album solve`.
pub fn tabular_npz() -> Vec<u8> {
    let path = scratch().join("tabular-seed.npz");
    let mut npz = NpzWriter::create(&path).expect("an archive");
    npz.array_i64("states", &[4], &[0, 1, 2, 0]).expect("an array");
    npz.array_i64("actions", &[4], &[0, 1, 0, 1]).expect("an array");
    npz.array_i64("next_states", &[4], &[1, 2, 0, 2]).expect("an array");
    npz.array_f64("rewards", &[4], &[0.0, -1.0, 1.5, 0.0]).expect("an array");
    npz.array_bool("terminals", &[4], &[false, false, true, false]).expect("an array");
    npz.finish().expect("an archive");
    fs::read(path).expect("an archive")
}

/// A log with labels, in every form of a table.
pub fn labelled() -> Vec<Vec<u8>> {
    let columns: Vec<(String, ColumnData)> = [
        ("episode", ColumnData::Int(vec![0, 0, 1, 1])),
        ("state", ColumnData::Int(vec![0, 1, 0, 2])),
        ("action", ColumnData::Int(vec![1, 0, 0, 1])),
        ("reward", ColumnData::Float(vec![0.0, 1.0, -0.5, 2.0])),
        ("terminal", ColumnData::Bool(vec![false, true, false, true])),
    ]
    .map(|(name, data)| (name.to_owned(), data))
    .into();
    ["csv", "parquet", "npz"]
        .map(|form| {
            let path = scratch().join(format!("labelled.{form}"));
            TableWriter::write(&path, &columns).and_then(TableWriter::commit).expect("a table");
            fs::read(path).expect("a table")
        })
        .into()
}

/// A run of a few steps on its own small log, with all its files.
pub fn run_directory(agent: &str) -> PathBuf {
    let folder = scratch().join(format!("run-{agent}"));
    if folder.exists() {
        return folder;
    }
    let log = scratch().join("log.csv");
    let mut text = String::from("episode,obs_0,obs_1,action_0,reward,terminated\n");
    for row in 0..64 {
        let (episode, step, x) = (row / 8, row % 8, (row * 37 % 64) as f32 / 64.0);
        text += &format!("{episode},{x},{},{},{},{}\n", 1.0 - x, x - 0.5, -x, u8::from(step == 7));
    }
    fs::write(&log, text).expect("a log");
    let overrides = Overrides {
        agent: Some(agent.to_owned()),
        data: Some(Source::of(&log)),
        set: [
            "steps=4",
            "log_every=1",
            "eval_every=2",
            "save_every=2",
            "hidden=[4, 4]",
            "batch_size=4",
            "holdout=0.3",
        ]
        .map(str::to_owned)
        .into(),
        ..Overrides::default()
    };
    let resolved = config::resolve(&overrides).expect("a configuration");
    let run = Run::begin(resolved.config, &folder, true, &resources()).expect("a run");
    run.train(StopFlag::default(), &mut |_| {}).expect("a trained run");
    folder
}

/// A single thread, because inputs are small.
pub fn resources() -> Resources {
    Resources { threads: 1, workers: 1, python: None }
}

/// The policy of that run, as a file.
pub fn policy(agent: &str) -> Vec<u8> {
    let out = scratch().join(format!("policy-{agent}.safetensors"));
    let export = Export { step: None, format: Format::Safetensors, out: out.clone(), check: None };
    album::export::export(&run_directory(agent), &export).expect("a policy");
    fs::read(out).expect("a policy")
}
