//! Files that lost their end, or a byte in between, never pass for shorter or
//! different data.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::common;

use std::fs::OpenOptions;
use std::path::Path;

use album_base::rng;
use album_data::{Array, DataError, Npz, NpzWriter, read_npy};
use rand::RngExt;

fn read_all(path: &Path) -> Result<Vec<Array>, DataError> {
    let mut npz = Npz::open(path)?;
    let names = npz.names().to_vec();
    names.iter().map(|name| npz.read(name)).collect()
}

/// A small dataset of about `64 * rows` bytes that hardly deflates.
fn write_dataset(path: &Path, rows: usize, compressed: bool) {
    let mut noise = rng::stream(1, "dataset");
    let mut floats = |n: usize| -> Vec<f64> { (0..n).map(|_| noise.random()).collect() };
    let observations: Vec<f32> = floats(rows * 9).iter().map(|&x| x as f32).collect();
    let rewards = floats(rows);
    let actions: Vec<i64> = rewards.iter().map(|&x| (x * 1e15) as i64).collect();
    let ends: Vec<bool> = rewards.iter().map(|&x| x < 0.1).collect();
    let mut writer =
        (if compressed { NpzWriter::create(path) } else { NpzWriter::create_stored(path) }).unwrap();
    writer.array_f32("observations", &[rows, 9], &observations).unwrap();
    writer.array_i64("actions", &[rows], &actions).unwrap();
    writer.array_f64("rewards", &[rows], &rewards).unwrap();
    writer.array_bool("terminals", &[rows], &ends).unwrap();
    writer.finish().unwrap();
}

#[test]
fn every_prefix_of_an_archive_is_refused() {
    for compressed in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data.npz");
        write_dataset(&path, 1250, compressed);
        let size = std::fs::metadata(&path).unwrap().len();
        assert!((59_000..70_000).contains(&size), "{size}");
        assert!(read_all(&path).is_ok());
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        for length in (0..size).rev() {
            file.set_len(length).unwrap();
            assert!(read_all(&path).is_err(), "{length} of {size} bytes were read");
        }
    }
}

#[test]
fn every_prefix_of_an_array_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data.npy");
    let bytes = common::npy("'<i8'", "False", "(8000,)", &[7; 64_000]);
    std::fs::write(&path, &bytes).unwrap();
    assert!(read_npy(&path).is_ok());
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    for length in (0..bytes.len() as u64).rev() {
        file.set_len(length).unwrap();
        assert!(read_npy(&path).is_err(), "{length} bytes were read");
    }
}

/// A changed byte is noticed, or is one that says nothing about the data, such
/// as a date.
#[test]
fn every_changed_byte_is_noticed_or_harmless() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data.npz");
    for compressed in [false, true] {
        write_dataset(&path, 40, compressed);
        let honest = std::fs::read(&path).unwrap();
        let arrays = read_all(&path).unwrap();
        let mut accepted = 0;
        for at in 0..honest.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut bytes = honest.clone();
                bytes[at] ^= change;
                std::fs::write(&path, bytes).unwrap();
                if let Ok(read) = read_all(&path) {
                    assert_eq!(read, arrays, "byte {at}");
                    accepted += 1;
                }
            }
        }
        // Versions, dates and attributes: 8 + 18 bytes per array, if that.
        assert!(accepted < 4 * 30 * 3, "{accepted}");
    }
}

/// Whatever is done to a file, reading it returns.
#[test]
fn scrambled_archives_do_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data.npz");
    write_dataset(&path, 5, true);
    let honest = std::fs::read(&path).unwrap();
    let table = honest.windows(4).position(|w| w == b"PK\x01\x02").unwrap();
    let mut random = rng::stream(2, "scramble");
    for _ in 0..20_000 {
        let mut bytes = honest.clone();
        for _ in 0..random.random_range(1..6) {
            // Half of the changes go to the table of contents and the end record.
            let low = if random.random() { table } else { 0 };
            let at = random.random_range(low..bytes.len());
            match random.random_range(0..5) {
                0 => bytes[at] = random.random(),
                1 => bytes[at] = 0xff,
                2 => bytes[at] = 0,
                3 => drop(bytes.remove(at)),
                _ => {
                    let from = random.random_range(0..bytes.len() - 4);
                    let to = at.min(bytes.len() - 4);
                    bytes.copy_within(from..from + 4, to);
                }
            }
        }
        std::fs::write(&path, bytes).unwrap();
        let _ = read_all(&path);
    }
}
