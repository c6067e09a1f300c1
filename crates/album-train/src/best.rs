//! The best checkpoint of a run.

use album_agents::Metrics;
use serde::{Deserialize, Serialize};

use crate::evaluate::EvaluationSummary;

/// The best checkpoint so far, and the criterion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// Updates done at the checkpoint.
    pub step: u64,
    /// The compared metric, for example `validation/critic/critic_loss`.
    pub criterion: String,
    /// Value of the criterion.
    #[serde(deserialize_with = "crate::numbers::or_nan")]
    pub value: f64,
}

/// Losses in order of preference: a critic's objective says more than an actor's, whose weights change with
/// the critic.
const LOSSES: [&str; 3] = ["critic/critic_loss", "actor/actor_loss", "actor/bc_loss"];

impl Best {
    /// The score of an evaluation.
    pub(crate) fn of_evaluation(summary: &EvaluationSummary) -> Self {
        Best { step: summary.step, criterion: "evaluation/return".into(), value: summary.mean_return }
    }

    /// The score by held-out losses.
    pub(crate) fn of_held_out(step: u64, metrics: &Metrics) -> Option<Self> {
        let metric = |name: &str| metrics.iter().find(|metric| metric.0 == name).map(|metric| metric.1);
        let (name, value) = LOSSES.iter().find_map(|&name| Some((name, metric(name)?)))?;
        Some(Best { step, criterion: format!("validation/{name}"), value })
    }

    /// Whether this beats the previous best: a lower loss or a higher return.
    pub(crate) fn beats(&self, before: Option<&Best>) -> bool {
        let rank = |best: &Best| {
            if best.criterion.starts_with("validation/") { -best.value } else { best.value }
        };
        before.is_none_or(|before| rank(self) > rank(before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_loss_is_better_and_less_return_is_not() {
        let loss = |value: f64| Best::of_held_out(1, &vec![("critic/critic_loss".into(), value)]).unwrap();
        assert!(
            loss(1.0).beats(None) && loss(0.5).beats(Some(&loss(1.0))) && !loss(1.0).beats(Some(&loss(1.0)))
        );
        let score = |value| Best { step: 1, criterion: "evaluation/return".into(), value };
        assert!(score(2.0).beats(Some(&score(1.0))) && !score(0.0).beats(Some(&score(1.0))));
        assert_eq!(Best::of_held_out(1, &vec![("value/v_mean".into(), 0.0)]), None);
    }
}
