//! Statistics of a critic on its training data.

use std::collections::BTreeMap;

use album_agents::{Agent, Metrics};
use album_data::{Dataset, View};
use album_tabular::in_sample_values;
use serde::{Deserialize, Serialize};

use crate::assess::Assessor;
use crate::error::TrainError;

/// Maximum number of transitions sampled for the statistics.
pub const SAMPLE: usize = 100_000;

/// The metrics of an agent over a fixed sample of the data, the same for every agent and run. Names ending in
/// `max` or `min` are extremes, all others means. Values are in units of the data's rewards.
pub fn critic_statistics(
    agent: &mut dyn Agent,
    dataset: &Dataset,
) -> Result<BTreeMap<String, f64>, TrainError> {
    let batches = SAMPLE.min(dataset.len()).div_ceil(agent.batch_size());
    let mut metrics = Metrics::new();
    Assessor::new(agent, dataset)?.assess(agent, batches as u64, &mut metrics);
    Ok(metrics.into_iter().map(|(name, value)| (name.into_owned(), value)).collect())
}

/// The learned values over the data, in units of its rewards.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CriticStatistics {
    /// The largest V over all states.
    #[serde(deserialize_with = "crate::numbers::or_nan")]
    pub v_max: f64,
    /// The mean V.
    #[serde(deserialize_with = "crate::numbers::or_nan")]
    pub v_mean: f64,
    /// The smallest V over all states.
    #[serde(deserialize_with = "crate::numbers::or_nan")]
    pub v_min: f64,
    /// Fraction of a fixed sample with y_1 <= Q, for critics with such constraints.
    pub g_b_satisfied: Option<f64>,
}

impl CriticStatistics {
    /// Measures an agent; `None` if it logs no state values.
    pub fn of(agent: &mut dyn Agent, dataset: &Dataset) -> Result<Option<Self>, TrainError> {
        let statistics = critic_statistics(agent, dataset)?;
        let value = |name: &str| statistics.get(name).copied();
        let (Some(v_max), Some(v_mean), Some(v_min)) =
            (value("value/v_max"), value("value/v_mean"), value("value/v_min"))
        else {
            return Ok(None);
        };
        // A sample misses the extremes, so a state-value network is evaluated at every state.
        let (v_max, v_mean, v_min) = value_range(agent, dataset).unwrap_or((v_max, v_mean, v_min));
        let g_b_satisfied = statistics.get("critic/g_b_satisfied").copied();
        Ok(Some(CriticStatistics { v_max, v_mean, v_min, g_b_satisfied }))
    }
}

/// The largest, mean and smallest V over every state of the data; `None` if the agent has no state values.
fn value_range(agent: &mut dyn Agent, dataset: &Dataset) -> Option<(f64, f64, f64)> {
    const ROWS: usize = 4096;
    let (mut most, mut least, mut sum) = (f64::NEG_INFINITY, f64::INFINITY, 0.0);
    let mut states = Vec::new();
    for first in (0..dataset.len()).step_by(ROWS) {
        states.clear();
        for row in first..(first + ROWS).min(dataset.len()) {
            states.extend_from_slice(dataset.observation(row));
        }
        let dim = dataset.observation_dim();
        for value in agent.value(View::new(&states, states.len() / dim, dim))?.into_iter().map(f64::from) {
            (most, least) = (most.max(value), least.min(value));
            sum += value;
        }
    }
    (!dataset.is_empty()).then(|| (most, sum / dataset.len() as f64, least))
}

/// V*_D over all transitions, as [`in_sample_values`] defines it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataStatistics {
    /// The largest V*_D.
    #[serde(deserialize_with = "crate::numbers::or_nan")]
    pub v_max: f64,
    /// The mean V*_D.
    #[serde(deserialize_with = "crate::numbers::or_nan")]
    pub v_mean: f64,
    /// The smallest V*_D.
    #[serde(deserialize_with = "crate::numbers::or_nan")]
    pub v_min: f64,
    /// Fraction of trajectories that reach the goal.
    #[serde(deserialize_with = "crate::numbers::or_nan")]
    pub trajectories_reaching_goal: f64,
}

impl DataStatistics {
    /// Computes the values and counts the trajectories that reach the goal.
    pub fn of(data: &Dataset, gamma: f64) -> Result<Self, TrainError> {
        let v_star = in_sample_values(data, gamma).map_err(Box::new)?.summary;
        let episodes = data.episodes();
        let reaches_goal = |&episode: &usize| {
            let first = episodes.start(episode);
            (first..first + episodes.length(episode)).any(|t| data.mask(t) == 0.0)
        };
        let reached = (0..episodes.len()).filter(reaches_goal).count();
        Ok(DataStatistics {
            v_max: v_star.max,
            v_mean: v_star.mean,
            v_min: v_star.min,
            trajectories_reaching_goal: reached as f64 / episodes.len() as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use album_data::Rows;

    #[test]
    fn what_the_data_supports() {
        // Two trajectories of three states; the second reaches its goal in its second state.
        let data = Dataset::from_rows(Rows {
            observation_dim: 1,
            action_dim: 1,
            observations: vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
            actions: vec![0.0; 6],
            rewards: vec![-1.0, -1.0, 0.0, -1.0, 0.0, 0.0],
            masks: vec![1.0, 1.0, 1.0, 1.0, 0.0, 1.0],
            terminals: vec![false, false, true, false, false, true],
        })
        .unwrap();
        let values = DataStatistics::of(&data, 0.5).unwrap();
        // -1.5, -1 and -1, 0.
        assert_eq!((values.v_max, values.v_min, values.v_mean), (0.0, -1.5, -0.875));
        assert_eq!(values.trajectories_reaching_goal, 0.5);
    }
}
