//! Loads the file of a task and prints its contents, the time and the memory it took.
//!
//! `cargo run --release -p album-data --example load_task -- TASK FILE.npz`
#![allow(clippy::print_stdout)]

use std::time::Instant;

use album_data::ogbench::{TaskName, load_task};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: load_task TASK FILE.npz";
    let task: TaskName = arguments.next().ok_or(usage)?.parse()?;
    let path = arguments.next().ok_or(usage)?;
    let start = Instant::now();
    let data = load_task(path, &task)?;
    let seconds = start.elapsed().as_secs_f64();
    let solved = (0..data.len()).filter(|&t| data.mask(t) == 0.0).count();
    let numbers = data.observation_dim() + data.action_dim() + 2;
    println!("{} transitions in {} episodes, loaded in {seconds:.2} s", data.len(), data.episodes().len());
    println!("the task is solved in {solved} of them");
    println!("arrays of {} kB", data.episodes().rows() * numbers * 4 / 1024);
    if let Some(kilobytes) = peak_memory() {
        println!("peak memory {kilobytes} kB");
    }
    Ok(())
}

/// The peak memory of this process, from Linux.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1).map(str::to_owned)
}
