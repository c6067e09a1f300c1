//! Records a `navigate` dataset, loads it again and prints how long each took.
//!
//! `cargo run --release -p album-envs --example record_pointmaze -- TASK FILE.npz [SEED] [THREADS]`
#![allow(clippy::print_stdout)]

use std::num::NonZero;
use std::time::Instant;

use album_data::ogbench::{TaskName, load_task};
use album_envs::navigate::{Recipe, cached};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: record_pointmaze TASK FILE.npz [SEED] [THREADS]";
    let task: TaskName = arguments.next().ok_or(usage)?.parse()?;
    let path = arguments.next().ok_or(usage)?;
    let seed = arguments.next().map_or(Ok(0), |text| text.parse())?;
    let threads = match arguments.next() {
        Some(text) => text.parse()?,
        None => std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN),
    };
    let size = task.environment().point_maze().ok_or_else(|| format!("{task}: expected a pointmaze task"))?;

    let start = Instant::now();
    let made = cached(&path, &Recipe::train(size, seed), threads)?;
    println!("{} in {:.2} s", if made { "recorded" } else { "found" }, start.elapsed().as_secs_f64());
    let before = peak_memory();

    let start = Instant::now();
    let data = load_task(&path, &task)?;
    println!("loaded {} transitions in {:.2} s", data.len(), start.elapsed().as_secs_f64());
    let solved = (0..data.len()).filter(|&t| data.mask(t) == 0.0).count();
    println!("solved in {solved} of them, content hash {}", data.content_hash());
    let columns = data.observation_dim() + data.action_dim() + 2;
    println!("arrays of {} kB", data.episodes().rows() * columns * 4 / 1024);
    if let (Some(before), Some(after)) = (before, peak_memory()) {
        println!("peak memory {before} kB before loading, {after} kB after");
    }
    Ok(())
}

/// The peak memory of this process on Linux.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1).map(str::to_owned)
}
