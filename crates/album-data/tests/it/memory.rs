//! Loading takes little more memory than the dataset, whatever the types in the file.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::process::Command;

use album_data::columns::{Import, import, import_source};
use album_data::ogbench::load_task;
use album_data::{NpzWriter, Source};

const ROWS: usize = 250_000;
const TASK: &str = "scene-play-singletask-task2-v0";

/// In a process of its own: loads the file in `ALBUM_TEST_LOAD`, or imports it, and prints the peak in kB.
#[test]
#[ignore = "the other test starts it"]
fn child() {
    let path = std::path::PathBuf::from(std::env::var_os("ALBUM_TEST_LOAD").unwrap());
    if std::env::var_os("ALBUM_TEST_READ").is_some() {
        assert!(Source::of(&path).read().unwrap().dataset.len() > ROWS);
    } else if path.extension().is_some_and(|extension| extension == "csv") {
        import_source(&Source::of(&path), &path.with_extension("columns"), false, &mut |_| true).unwrap();
    } else if std::env::var_os("ALBUM_TEST_IMPORT").is_some() {
        let target = path.with_extension("columns");
        let what = Import { sources: &[path], target: &target, replace: false, environment: None };
        import(&what, &mut |_, _| true).unwrap();
    } else {
        assert_eq!(load_task(&path, &TASK.parse().unwrap()).unwrap().len(), ROWS - ROWS / 1000);
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    eprintln!("peak {}", peak.trim());
}

#[test]
fn peaks() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("wide.npz");
    {
        // Twice as wide as they need to be; four times, for the buttons.
        let mut npz = NpzWriter::create(&path).unwrap();
        let floats = |width: usize| (0..ROWS * width).map(|i| (i % 4096) as f64 / 4096.0).collect::<Vec<_>>();
        npz.array_f64("observations", &[ROWS, 40], &floats(40)).unwrap();
        npz.array_f64("actions", &[ROWS, 5], &floats(5)).unwrap();
        npz.array_f64("qpos", &[ROWS, 25], &floats(25)).unwrap();
        npz.array_i64("button_states", &[ROWS, 2], &vec![1; ROWS * 2]).unwrap();
        let terminals: Vec<i64> = (0..ROWS).map(|row| i64::from(row % 1000 == 999)).collect();
        npz.array_i64("terminals", &[ROWS], &terminals).unwrap();
        npz.finish().unwrap();
    }
    let arrays = (ROWS * (40 + 5 + 2) * 4) as f64;
    let load = peak(&path, "LOAD");
    assert!(load <= 1.3 * arrays, "{load} for arrays of {arrays}");
    let import = peak(&path, "IMPORT");
    assert!(import < 16e6, "{import} to import {arrays}");
}

/// A log that is larger than the memory it is imported in.
#[test]
fn logs_pass_by_in_parts() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.csv");
    write_log(&path, ROWS);
    let (import, arrays) = (peak(&path, "IMPORT"), (ROWS * 43 * 4) as f64);
    assert!(import < 28e6 && arrays > 40e6, "{import} to import {arrays}");
}

/// A log in memory is little more than its arrays: 40 numbers of an observation, an action, a reward and a mask.
#[test]
fn reading_takes_little_more_than_the_arrays() {
    const ROWS: usize = 800_000;
    let dir = tempfile::tempdir().unwrap();
    let (text, arrays) = (dir.path().join("log.csv"), dir.path().join("log.npz"));
    write_log(&text, ROWS);
    {
        let mut npz = NpzWriter::create(&arrays).unwrap();
        npz.array_f32("observations", &[ROWS, 40], &vec![0.5; ROWS * 40]).unwrap();
        npz.array_f32("actions", &[ROWS, 1], &vec![0.5; ROWS]).unwrap();
        npz.array_f32("rewards", &[ROWS], &vec![1.0; ROWS]).unwrap();
        let ends: Vec<bool> = (0..ROWS).map(|row| row % 1000 == 999).collect();
        npz.array_bool("terminations", &[ROWS], &ends).unwrap();
        npz.finish().unwrap();
    }
    for path in [text, arrays] {
        let (read, arrays) = (peak(&path, "READ"), (ROWS * 43 * 4) as f64);
        assert!(read <= 1.3 * arrays, "{}: {read} for arrays of {arrays}", path.display());
    }
}

fn write_log(path: &std::path::Path, rows: usize) {
    let names: Vec<String> = (0..40).map(|i| format!("obs_{i}")).collect();
    let numbers: Vec<String> = (0..40).map(|i| format!("0.{i:03}")).collect();
    let numbers = numbers.join(",");
    let mut text = std::io::BufWriter::new(std::fs::File::create(path).unwrap());
    writeln!(text, "episode,{},action,reward,terminated", names.join(",")).unwrap();
    for row in 0..rows {
        writeln!(text, "{},{numbers},0.5,1,{}", row / 1000, u8::from(row % 1000 == 999)).unwrap();
    }
    text.flush().unwrap();
}

/// Bytes that a process of its own takes to `LOAD`, `IMPORT` or `READ` a file.
fn peak(path: &std::path::Path, how: &str) -> f64 {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["memory::child", "--exact", "--ignored", "--nocapture"]).env("ALBUM_TEST_LOAD", path);
    command.env(format!("ALBUM_TEST_{how}"), path);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let (_, peak) = text.split_once("peak ").unwrap_or_else(|| panic!("{text}"));
    peak.split_whitespace().next().unwrap().parse::<f64>().unwrap() * 1024.0
}
