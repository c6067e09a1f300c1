//! Whether a file is what its name says.

use album::Error as Failure;
use album_data::ogbench::Environment;
use album_data::{DataError, Npz, Place};
use album_train::StopFlag;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Reads every array that training needs, up to its checksum, and compares the shapes with the environment's.
///
/// Inflating takes seconds where the download took minutes, and it is the only way to notice bytes that were damaged
/// or that belong to two versions of a file.
pub fn contents(path: &Path, environment: &Environment) -> Result<(), DataError> {
    let mut npz = Npz::open(path)?;
    let terminals = npz.read("terminals")?.shape;
    let wrong = |key: &str, found: &[usize], expected: String| DataError::WrongShape {
        place: Place::file(path).array(key),
        found: found.to_vec(),
        expected,
    };
    let &[rows] = &terminals[..] else {
        return Err(wrong("terminals", &terminals, "one flag per row".to_owned()));
    };
    let columns = [
        ("observations", environment.observation_dim),
        ("actions", environment.action_dim),
        ("qpos", environment.qpos_dim),
        ("button_states", environment.buttons()),
    ];
    for (key, width) in columns.into_iter().filter(|(_, width)| *width > 0) {
        let found = npz.read(key)?.shape;
        if found != [rows, width] {
            return Err(wrong(key, &found, format!("[{rows}, {width}] for {}", environment.name)));
        }
    }
    Ok(())
}

/// The SHA-256 of a file.
pub fn sha256(path: &Path, stop: &StopFlag) -> Result<String, Failure> {
    let mut file = File::open(path).map_err(Failure::io(path))?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        if stop.is_set() {
            return Err(Failure::Stopped("stopped; the same command goes on".to_owned()));
        }
        match file.read(&mut buffer).map_err(Failure::io(path))? {
            0 => break,
            n => hasher.update(&buffer[..n]),
        }
    }
    Ok(album_base::hex::hex(&hasher.finalize()))
}
