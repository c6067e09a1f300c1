//! Maps of the learned V at several times during training.

use album_agents::Agent;
use album_data::View;
use album_envs::SampleGrid;
use serde::{Deserialize, Serialize};

/// A rectangle of observations whose values are recorded at every evaluation.
#[derive(Clone, Debug, PartialEq)]
pub struct ValuePoints {
    /// Rows of the rectangle; the first has the smallest `y`.
    pub rows: usize,
    /// Points in a row; the first has the smallest `x`.
    pub columns: usize,
    /// The observations, row by row; `None` where there is no state, as inside walls.
    pub observations: Vec<Option<Vec<f32>>>,
}

impl ValuePoints {
    /// For observations of this dimension that begin with the position; all other components are 0.
    pub fn positions(grid: &SampleGrid, dim: usize) -> Self {
        let observation = |point: &Option<[f64; 2]>| {
            point.map(|[x, y]| {
                let mut observation = vec![0.0; dim];
                observation[..2].copy_from_slice(&[x as f32, y as f32]);
                observation
            })
        };
        ValuePoints {
            rows: grid.rows,
            columns: grid.columns,
            observations: grid.points.iter().map(observation).collect(),
        }
    }
}

/// The values at [`ValuePoints`] after a number of updates, in units of the data's rewards: a line of
/// `value_maps.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValueMap {
    /// Updates done before.
    pub step: u64,
    /// Rows of the rectangle.
    pub rows: usize,
    /// Points in a row.
    pub columns: usize,
    /// The values, row by row; `None` where there is no state.
    pub values: Vec<Option<f32>>,
}

impl ValueMap {
    /// Records the map of an agent; `None` if it has no state values.
    pub fn record(agent: &mut dyn Agent, points: &ValuePoints, step: u64) -> Option<Self> {
        let observations: Vec<f32> = points.observations.iter().flatten().flatten().copied().collect();
        let rows = points.observations.iter().flatten().count();
        let cols = observations.len() / rows.max(1);
        let mut values = agent.value(View::new(&observations, rows, cols))?.into_iter();
        let values =
            points.observations.iter().map(|point| point.as_ref().and_then(|_| values.next())).collect();
        Some(ValueMap { step, rows: points.rows, columns: points.columns, values })
    }
}
