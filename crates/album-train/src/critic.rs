//! What a critic says about the data it was trained on.

use std::collections::BTreeMap;

use album_agents::{Agent, Metrics};
use album_data::{Dataset, Sampler, Segments};

use crate::error::TrainError;

/// Transitions that the statistics are over, where the data has as many.
pub const SAMPLE: usize = 100_000;

/// The metrics of an agent over a fixed sample of the data: the same one for every agent and run. Names that end in
/// `max` or `min` are the extremes, all others means.
pub fn critic_statistics(
    agent: &mut dyn Agent,
    dataset: &Dataset,
) -> Result<BTreeMap<String, f64>, TrainError> {
    let segments = Segments::new(agent.segments())?;
    let size = agent.batch_size();
    let batches = SAMPLE.min(dataset.len()).div_ceil(size);
    let sampler = Sampler::new(0, dataset.len());
    let mut batch = segments.batch(dataset, size);
    let mut metrics = Metrics::new();
    let mut statistics: BTreeMap<String, f64> = BTreeMap::new();
    for number in 0..batches {
        sampler.fill(number as u64, batch.indices_mut());
        segments.gather(dataset, &mut batch);
        agent.assess(&batch, &mut metrics);
        for &(name, value) in &metrics {
            let entry = statistics.entry(name.to_owned());
            if name.ends_with("max") {
                entry.and_modify(|most| *most = most.max(value)).or_insert(value);
            } else if name.ends_with("min") {
                entry.and_modify(|least| *least = least.min(value)).or_insert(value);
            } else {
                *entry.or_insert(0.0) += value / batches as f64;
            }
        }
    }
    Ok(statistics)
}
