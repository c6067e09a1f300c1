//! Reads every array of an npz file and prints the time it took.
//!
//! `cargo run --release -p album-data --example read_npz -- FILE.npz [ROUNDS]`
#![allow(clippy::print_stdout)]

use std::time::Instant;

use album_data::{Array, DataError, Npz};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: read_npz FILE.npz [ROUNDS]")?;
    let rounds = match arguments.next() {
        Some(text) => text.parse()?,
        None => 1,
    };
    for round in 0..rounds {
        let start = Instant::now();
        let arrays = read_all(&path)?;
        let seconds = start.elapsed().as_secs_f64();
        if round == 0 {
            for array in &arrays {
                println!("{}: {} {:?}", array.place, array.dtype(), array.shape);
            }
        }
        let bytes: usize = arrays.iter().map(|a| a.len() * a.dtype().size()).sum();
        println!("{bytes} bytes in {seconds:.4} s");
    }
    if let Some(kilobytes) = peak_memory() {
        println!("peak memory {kilobytes} kB");
    }
    Ok(())
}

fn read_all(path: &str) -> Result<Vec<Array>, DataError> {
    let mut npz = Npz::open(path)?;
    let names = npz.names().to_vec();
    names.iter().map(|name| npz.read(name)).collect()
}

/// The peak memory of this process, from Linux.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1).map(str::to_owned)
}
