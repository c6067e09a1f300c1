//! A policy allocates nothing after its first call.
//!
//! A program of its own: the thread of the usual test harness allocates whenever it likes. Counting needs an allocator, and
//! that is the only unsafe code here; the crate itself has none.
#![allow(unsafe_code, clippy::unwrap_used)]

#[path = "it/support.rs"]
mod support;

use album_policy::Policy;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

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
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    let mut policy = Policy::new(support::policy(6)).unwrap();
    for rows in [64, 1] {
        let observations = vec![0.25; rows * 3];
        let mut actions = vec![0.0; rows * 4];
        policy.act(&observations, &mut actions).unwrap();
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        for _ in 0..10 {
            policy.act(&observations, &mut actions).unwrap();
        }
        assert_eq!(ALLOCATIONS.load(Ordering::Relaxed), before, "at {rows} rows");
    }
}
