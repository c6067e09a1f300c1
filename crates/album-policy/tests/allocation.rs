//! A policy allocates nothing after its first call.
#![allow(clippy::unwrap_used)]

#[path = "it/support.rs"]
mod support;

use album_policy::Policy;
use album_testing::{Counting, allocations};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    let mut policy = Policy::new(support::policy(6)).unwrap();
    for rows in [64, 1] {
        let observations = vec![0.25; rows * 3];
        let mut actions = vec![0.0; rows * 4];
        policy.act(&observations, &mut actions).unwrap();
        let before = allocations();
        for _ in 0..10 {
            policy.act(&observations, &mut actions).unwrap();
        }
        assert_eq!(allocations(), before, "at {rows} rows");
    }
}
