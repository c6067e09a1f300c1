//! Loading a task's file, compared with NumPy reading the same arrays: time and peak memory, in turns.
//!
//! `ALBUM_PYTHON=python3 cargo run --release -p album-data --example load_speed -- FOLDER [ROUNDS]`
//!
//! Files of a million transitions of cube-single, compressed and uncompressed, are created in the folder if
//! missing. Every measurement runs in its own process, and excludes program start.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use album_data::ogbench::{TaskName, load_task};

const TASK: &str = "cube-single-play-singletask-task2-v0";

/// Smooth random walks, as compressible as recorded data.
const MAKE: &str = r#"
import sys
import numpy as np
rng = np.random.default_rng(0)
def walk(width):
    steps = rng.normal(size=(1000, 1001, width)).astype(np.float32) * np.float32(0.01)
    return np.cumsum(steps, axis=1, dtype=np.float32).reshape(-1, width)
terminals = np.zeros(1000 * 1001, bool)
terminals[1000::1001] = True
actions = np.clip(rng.normal(size=(len(terminals), 5)) * 0.5, -1, 1).astype(np.float32)
arrays = dict(observations=walk(28), actions=actions, terminals=terminals, qpos=walk(21), qvel=walk(20))
np.savez_compressed(sys.argv[1] + "/compressed.npz", **arrays)
np.savez(sys.argv[1] + "/plain.npz", **arrays)
"#;

const READ: &str = r#"
import resource, sys, time
import numpy as np
start = time.perf_counter()
with np.load(sys.argv[1]) as file:
    arrays = [file[name] for name in ("observations", "actions", "terminals", "qpos")]
seconds = time.perf_counter() - start
print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, sum(a.nbytes for a in arrays) // 1024)
"#;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [mode, file] if mode == "--once" => once(file),
        [folder] => compare(Path::new(folder), 9),
        [folder, rounds] => compare(Path::new(folder), rounds.parse()?),
        _ => Err("usage: load_speed FOLDER [ROUNDS]".into()),
    }
}

/// Loads a file and prints seconds, peak memory and the size of the arrays in kB.
fn once(file: &str) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let data = load_task(file, &TASK.parse::<TaskName>()?)?;
    let seconds = start.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next());
    let numbers = data.observation_dim() + data.action_dim() + 2;
    println!("{seconds} {} {}", peak.ok_or("no VmHWM")?, data.episodes().rows() * numbers * 4 / 1024);
    Ok(())
}

fn compare(folder: &Path, rounds: usize) -> Result<(), Box<dyn Error>> {
    let python = std::env::var_os("ALBUM_PYTHON").ok_or("ALBUM_PYTHON names no Python with NumPy")?;
    if !folder.join("plain.npz").exists() {
        numbers(Command::new(&python).args(["-c", MAKE]).arg(folder))?;
    }
    for name in ["compressed.npz", "plain.npz"] {
        let file = folder.join(name);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..rounds.max(1) {
            ours.push(numbers(Command::new(std::env::current_exe()?).arg("--once").arg(&file))?);
            theirs.push(numbers(Command::new(&python).args(["-c", READ]).arg(&file))?);
        }
        println!("{name}, medians of {} rounds in turns", ours.len());
        for (who, results) in [("album", &ours), ("numpy", &theirs)] {
            let median = |i: usize| {
                let mut column: Vec<f64> = results.iter().map(|result| result[i]).collect();
                column.sort_by(f64::total_cmp);
                column[column.len() / 2]
            };
            let (seconds, peak, arrays) = (median(0), median(1), median(2));
            println!(
                "  {who}: {seconds:.3} s, peak {peak:.0} kB, {:.2} of arrays of {arrays:.0} kB",
                peak / arrays
            );
        }
    }
    Ok(())
}

/// The numbers printed by a program.
fn numbers(command: &mut Command) -> Result<Vec<f64>, Box<dyn Error>> {
    let output = command.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    Ok(String::from_utf8(output.stdout)?.split_whitespace().map(str::parse).collect::<Result<_, _>>()?)
}
