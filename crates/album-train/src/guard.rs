//! Guards against NaN and infinity.

use album_agents::{AgentState, Metrics};
use album_data::Batch;

use crate::error::TrainError;
use crate::state_file;

/// A NaN or infinity that was found.
#[derive(Debug, PartialEq)]
pub(crate) struct Bad {
    what: String,
    value: f64,
}

impl Bad {
    pub(crate) fn at(self, step: u64, checkpoint: Option<u64>) -> TrainError {
        TrainError::NotFinite { step, what: self.what, value: self.value, checkpoint }
    }
}

/// Checks a whole batch at every step: a branch-free pass over some kilobytes.
pub(crate) fn batch(batch: &Batch) -> Result<(), Bad> {
    let parts = [
        ("a state", batch.states().data()),
        ("an action", batch.chunks().data()), // each chunk starts with the row's action
        ("a next action", batch.next_actions().data()),
        ("a reward", batch.rewards()),
        ("a K-step return", batch.returns_k()),
    ];
    for (what, numbers) in parts {
        if numbers.iter().fold(false, |bad, x| bad | !x.is_finite()) {
            let value = numbers.iter().find(|x| !x.is_finite()).copied().unwrap_or(f32::NAN);
            return Err(Bad { what: format!("{what} of the batch"), value: value.into() });
        }
    }
    Ok(())
}

/// Checks the loss of an update, at every step.
pub(crate) fn loss(loss: f64) -> Result<(), Bad> {
    if loss.is_finite() { Ok(()) } else { Err(Bad { what: "the loss".into(), value: loss }) }
}

/// Checks the metrics of an update: losses, values and gradient norms.
pub(crate) fn metrics(metrics: &Metrics) -> Result<(), Bad> {
    match metrics.iter().find(|(_, value)| !value.is_finite()) {
        Some((name, value)) => Err(Bad { what: name.to_string(), value: *value }),
        None => Ok(()),
    }
}

/// Checks everything that a checkpoint would contain.
pub(crate) fn state(state: &AgentState) -> Result<(), Bad> {
    match state_file::not_finite(state) {
        Some((what, value)) => Err(Bad { what, value: value.into() }),
        None => Ok(()),
    }
}
