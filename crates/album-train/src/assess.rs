//! Computes an agent's metrics without training: on held-out episodes, or on a fixed sample of its training
//! data.

use album_agents::{Agent, Metrics};
use album_data::{Batch, Dataset, Sampler, Segments};

use crate::error::TrainError;

/// Cuts data into batches as in training, at the same rows for every agent, seed and step, so that curves are
/// comparable within and between runs.
pub(crate) struct Assessor<'a> {
    dataset: &'a Dataset,
    segments: Segments,
    sampler: Sampler,
    batch: Batch,
    one: Metrics,
}

impl<'a> Assessor<'a> {
    pub(crate) fn new(agent: &dyn Agent, dataset: &'a Dataset) -> Result<Self, TrainError> {
        let segments = Segments::new(agent.segments())?;
        segments.fits(dataset)?;
        let batch = segments.batch(dataset, agent.batch_size());
        let sampler = Sampler::new(0, dataset.len());
        Ok(Assessor { dataset, segments, sampler, batch, one: Metrics::new() })
    }

    /// The agent's metrics over this many batches. Names ending in `max` or `min` are extremes, all others
    /// means.
    pub(crate) fn assess(&mut self, agent: &mut dyn Agent, batches: u64, metrics: &mut Metrics) {
        metrics.clear();
        for number in 0..batches {
            self.sampler.fill(number, self.batch.indices_mut());
            self.segments.gather(self.dataset, &mut self.batch);
            agent.assess(&self.batch, &mut self.one);
            combine(metrics, &self.one, number);
        }
    }
}

/// Merges the metrics of batch `number` into those of the earlier batches: extremes stay extremes, all others
/// are means.
fn combine(all: &mut Metrics, one: &Metrics, number: u64) {
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
