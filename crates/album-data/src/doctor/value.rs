//! V*_D, the best value that the data itself supports.
//!
//! It is the optimal value of the empirical MDP: states that are equal number for number are one state, what
//! followed a state and an action is averaged over its occurrences, and the best recorded action counts. States that
//! the data reaches but never leaves are worth 0, and so is what follows a mask of 0. In continuous data states
//! hardly ever repeat; then a state has one action and the value is the discounted return of what was recorded
//! after it, the *return-to-go*. Where trajectories meet, the better continuation counts for both.

use serde::Serialize;

use crate::doctor::graph::Graph;

/// Largest, mean and least value over the states of all transitions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Values {
    /// The largest.
    pub max: f64,
    /// The mean.
    pub mean: f64,
    /// The least.
    pub min: f64,
}

impl Values {
    pub(super) fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let count = values.clone().count() as f64;
        Self {
            max: values.clone().fold(f64::NEG_INFINITY, f64::max),
            mean: values.clone().sum::<f64>() / count,
            min: values.fold(f64::INFINITY, f64::min),
        }
    }
}

/// The value of every state, and by how much it may be too low.
///
/// Values rise from a bound below all of them, one pair after the other, those that were recorded last first. So
/// one sweep does where no state repeats, and a few do where trajectories meet.
pub(super) fn optimal(graph: &Graph, gamma: f64) -> (Vec<f64>, f64) {
    const UPDATES: usize = 2_000_000_000;
    let least = graph.outcomes.iter().map(|outcome| outcome.reward).fold(0.0, f64::min) / (1.0 - gamma);
    let mut values = vec![0.0; graph.repeats.distinct_states];
    graph.pair_states.iter().for_each(|&state| values[state] = least);
    let mut error = f64::INFINITY;
    for _ in 0..(UPDATES / graph.outcomes.len().max(1)).clamp(10, 100_000) {
        let mut change = 0.0f64;
        for pair in (0..graph.pair_states.len()).rev() {
            let outcomes = &graph.outcomes[graph.pair_outcomes[pair]..graph.pair_outcomes[pair + 1]];
            let value: f64 = outcomes
                .iter()
                .map(|o| {
                    // A branch, so that one outcome is summed as the return-to-go is.
                    let follows = if o.follows == 0.0 { 0.0 } else { gamma * o.follows * values[o.next] };
                    o.share * (o.reward + follows)
                })
                .sum();
            let old = &mut values[graph.pair_states[pair]];
            if value > *old {
                change = change.max(value - *old);
                *old = value;
            }
        }
        error = gamma / (1.0 - gamma) * change;
        if error <= 1e-9 * least.abs().max(1.0) {
            break;
        }
    }
    (values, error)
}
