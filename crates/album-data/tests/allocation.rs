//! Drawing and gathering a batch allocate nothing.
//!
//! A program of its own: the thread of the usual test harness allocates whenever it likes.
#![allow(unsafe_code, clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use album_data::{Dataset, Rows, Sampler, SegmentConfig, Segments};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(ptr, layout, size) }
    }
}

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
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        for step in 0..10 {
            sampler.fill(step, batch.indices_mut());
            segments.gather(&dataset, &mut batch);
        }
        assert_eq!(ALLOCATIONS.load(Ordering::Relaxed) - before, 0, "chunk {chunk}");
    }
}
