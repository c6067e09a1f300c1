//! The update of every agent allocates nothing once its buffers have grown.
#![allow(clippy::unwrap_used)]

#[path = "it/support/mod.rs"]
mod support;

use album_agents::{AGENTS, Agent};
use album_testing::{Counting, allocations};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    let (numbers, choices) = (support::data(4, 41), support::discrete_data(4, 41, 5));
    let variants = [
        ("cac", "q_norm = true\nmax_q_backup = true\nema_after = 0\nema_every = 1"),
        ("deas", "q_agg = \"min\""),
        ("srpo", "normalize_guidance = true"),
        ("album", "standardize = true\nfourier_features = 4"),
    ];
    let discrete = AGENTS.iter().filter(|kind| kind.learns_discrete()).map(|kind| (kind.name, ""));
    let discrete = discrete
        .chain([("album", "ensemble = 2\ndiscrete_policy = \"awr\"")])
        .map(|(name, settings)| (name, settings, &choices));
    let all = AGENTS.iter().map(|kind| (kind.name, "")).chain(variants);
    let all = all.map(|(name, settings)| (name, settings, &numbers)).chain(discrete);
    let mut allocating = Vec::new();
    for (name, settings, data) in all {
        let mut agent = support::agent(name, &format!("batch_size = 16\n{settings}"), data, 100);
        let batches: Vec<_> = (0..4)
            .map(|i| {
                let indices: Vec<usize> = (0..16).map(|j| (41 * i + 7 * j) % data.len()).collect();
                support::batch(&agent, data, &indices)
            })
            .collect();
        let mut before = 0;
        for step in 0..12 {
            if step == 4 {
                before = allocations();
            }
            assert!(agent.update(&batches[step % 4], step as u64, None).is_finite());
        }
        let allocations = allocations() - before;
        if allocations > 0 {
            allocating.push(format!("{name} {settings:?}: {allocations} allocations in 8 updates"));
        }
    }
    assert!(allocating.is_empty(), "{allocating:#?}");
}
