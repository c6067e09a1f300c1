//! Times the sampling and gathering of batches on random data of a million transitions.
//!
//! `cargo run --release -p album-data --example gather`
#![allow(clippy::print_stdout)]

use std::time::Instant;

use album_data::{Batch, Dataset, Rows, Sampler, SegmentConfig, Segments};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for (observation_dim, action_dim) in [(2, 2), (29, 8), (69, 21)] {
        let rows = 1000 * 1001;
        let dataset = Dataset::from_rows(Rows {
            observation_dim,
            action_dim,
            observations: (0..rows * observation_dim).map(|i| (i % 1000) as f32).collect(),
            actions: vec![0.5; rows * action_dim],
            rewards: vec![-1.0; rows],
            masks: vec![1.0; rows],
            terminals: (0..rows).map(|row| row % 1001 == 1000).collect(),
        })?;
        let sampler = Sampler::new(0, dataset.len());
        let segments = Segments::new(SegmentConfig::default())?;
        let mut batch = Batch::new(&dataset, 256);
        let steps = 20_000;
        let start = Instant::now();
        for step in 0..steps {
            sampler.fill(step, batch.indices_mut());
            segments.gather(&dataset, &mut batch);
        }
        let micros = start.elapsed().as_secs_f64() * 1e6 / steps as f64;
        let start = Instant::now();
        let hash = dataset.content_hash();
        println!(
            "obs {observation_dim}, act {action_dim}: {micros:.1} us per batch of 256 with K = 10; hash {} in {:.2} s",
            &hash[..8],
            start.elapsed().as_secs_f64()
        );
    }
    Ok(())
}
