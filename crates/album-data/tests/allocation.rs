//! Drawing and gathering a batch allocates nothing.
#![allow(clippy::unwrap_used)]

use album_data::{Dataset, Rows, Sampler, SegmentConfig, Segments};
use album_testing::{Counting, allocations};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    let rows = 120;
    let dataset = Dataset::from_rows(Rows {
        observation_dim: 3,
        action_dim: 2,
        observations: vec![0.5; rows * 3],
        actions: vec![0.5; rows * 2],
        rewards: vec![-1.0; rows],
        masks: vec![1.0; rows],
        terminals: (0..rows).map(|row| row % 12 == 11).collect(),
    })
    .unwrap();
    let sampler = Sampler::new(0, dataset.len());
    for chunk in [1, 5] {
        let segments = Segments::new(SegmentConfig { chunk, ..SegmentConfig::default() }).unwrap();
        let mut batch = segments.batch(&dataset, 64);
        let before = allocations();
        for step in 0..10 {
            sampler.fill(step, batch.indices_mut());
            segments.gather(&dataset, &mut batch);
        }
        assert_eq!(allocations() - before, 0, "chunk {chunk}");
    }
}
