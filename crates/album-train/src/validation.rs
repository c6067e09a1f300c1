//! The metrics of an agent on data that it does not learn from.

use album_agents::{Agent, Metrics};
use album_data::{Batch, Dataset, Sampler, Segments};

use crate::error::TrainError;

/// Batches that one row of validation metrics is averaged over.
const BATCHES: u64 = 4;

/// Held-out episodes, cut into the same batches as the training data.
pub(crate) struct Validation<'a> {
    dataset: &'a Dataset,
    segments: Segments,
    sampler: Sampler,
    batch: Batch,
    one: Metrics,
}

impl<'a> Validation<'a> {
    pub(crate) fn new(agent: &dyn Agent, dataset: &'a Dataset) -> Result<Self, TrainError> {
        let segments = Segments::new(agent.segments())?;
        segments.fits(dataset)?;
        let batch = segments.batch(dataset, agent.batch_size());
        // The same rows at every step and for every seed: curves of one run, and of two, can be compared.
        let sampler = Sampler::new(0, dataset.len());
        Ok(Validation { dataset, segments, sampler, batch, one: Metrics::new() })
    }

    /// Losses, behaviour-cloning error and constraint satisfaction on the held-out episodes.
    pub(crate) fn assess(&mut self, agent: &mut dyn Agent, metrics: &mut Metrics) {
        metrics.clear();
        for number in 0..BATCHES {
            self.sampler.fill(number, self.batch.indices_mut());
            self.segments.gather(self.dataset, &mut self.batch);
            agent.assess(&self.batch, &mut self.one);
            combine(metrics, &self.one, number);
        }
    }
}

/// Adds the metrics of batch `number` to those of the batches before it: extremes stay extremes, all others are means.
pub(crate) fn combine(all: &mut Metrics, one: &Metrics, number: u64) {
    if number == 0 {
        all.clone_from(one);
        return;
    }
    let weight = 1.0 / (number + 1) as f64;
    for ((name, total), (_, value)) in all.iter_mut().zip(one) {
        *total = match name {
            name if name.ends_with("max") => total.max(*value),
            name if name.ends_with("min") => total.min(*value),
            _ => *total + weight * (*value - *total),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_stay_extremes() {
        let mut all = Metrics::new();
        for (number, x) in [3.0, 1.0, 5.0].into_iter().enumerate() {
            let one: Metrics = vec![("loss".into(), x), ("v_max".into(), x), ("v_min".into(), x)];
            combine(&mut all, &one, number as u64);
        }
        let values: Vec<f64> = all.iter().map(|metric| metric.1).collect();
        assert_eq!(values, [3.0, 5.0, 1.0]);
    }
}
