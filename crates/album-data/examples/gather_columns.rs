//! Times the gathering of batches from imported columns: memory-mapped, as a dataset does it, and with one
//! read per row.
//!
//! `cargo run --release -p album-data --example gather_columns -- TASK DIR.columns [BATCHES]`
//!
//! To start without the file in the system's cache: `dd of=DIR.columns/observations.f32 oflag=nocache conv=notrunc,fdatasync
//! count=0` (the same for `actions.f32`), or drop all caches.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::time::Instant;

#[cfg(unix)]
fn main() -> Result<(), Box<dyn Error>> {
    use album_data::ogbench::{TaskName, load_task};
    use album_data::{Batch, Sampler, SegmentConfig, Segments};
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    let mut arguments = std::env::args().skip(1);
    let usage = "usage: gather_columns TASK DIR.columns [BATCHES] [map|read]";
    let task: TaskName = arguments.next().ok_or(usage)?.parse()?;
    let folder = arguments.next().ok_or(usage)?;
    let batches: u64 = arguments.next().map_or(Ok(1000), |text| text.parse())?;
    let only = arguments.next();
    let start = Instant::now();
    let data = load_task(&folder, &task)?;
    println!("{} transitions, ready after {:.3} s", data.len(), start.elapsed().as_secs_f64());
    let start = Instant::now();
    let hash = data.content_hash();
    println!("hash {} after {:.3} s", &hash[..8], start.elapsed().as_secs_f64());
    let sampler = Sampler::new(0, data.len());
    let segments = Segments::new(SegmentConfig::default())?;
    let mut batch = Batch::new(&data, 256);
    let report = |what: &str, mut times: Vec<f64>| {
        let first = times[0];
        times.sort_by(f64::total_cmp);
        let (median, last) = (times[times.len() / 2], times[times.len() * 99 / 100]);
        println!("{what}: first batch {first:.3} ms, median {median:.3} ms, 99th percentile {last:.3} ms");
    };
    let read = || -> Result<Vec<f64>, Box<dyn Error>> {
        let open = |name: &str| File::open(format!("{folder}/{name}"));
        let (observations, actions) = (open("observations.f32")?, open("actions.f32")?);
        let (wide, narrow) = (4 * data.observation_dim(), 4 * data.action_dim());
        let (mut states, mut action) = (vec![0; 2 * wide], vec![0; narrow]);
        let (mut indices, mut times) = (vec![0; 256], Vec::new());
        for step in 0..batches {
            let start = Instant::now();
            sampler.fill(step, &mut indices);
            for &transition in &indices {
                let place = data.episodes().locate(transition);
                let at = |row: usize, width: usize| (row * width) as u64;
                observations.read_exact_at(&mut states, at(place.row, wide))?;
                observations.read_exact_at(&mut states[..wide], at(place.row + place.left.min(10), wide))?;
                actions.read_exact_at(&mut action, at(place.row, narrow))?;
            }
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        Ok(times)
    };
    let mut map = || {
        let mut times = Vec::new();
        for step in 0..batches {
            let start = Instant::now();
            sampler.fill(step, batch.indices_mut());
            segments.gather(&data, &mut batch);
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        times
    };
    if only.as_deref() != Some("read") {
        report("mapped", map());
    }
    if only.as_deref() != Some("map") {
        report("reads", read()?);
    }
    Ok(())
}

#[cfg(not(unix))]
fn main() -> Result<(), Box<dyn Error>> {
    println!("needs a Unix; started {:?}", Instant::now());
    Ok(())
}
