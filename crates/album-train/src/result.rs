//! The outcome of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::best::Best;
use crate::checkpoint::{Checkpoint, Manifest, Progress};
use crate::critic::{CriticStatistics, DataStatistics};
use crate::evaluate::EvaluationSummary;
use crate::identity::Identity;
use crate::state_file::weights_sha256;

/// The contents of `result.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The name of the task.
    pub task: String,
    /// The name of the algorithm.
    pub agent: String,
    /// The master seed.
    pub seed: u64,
    /// Number of updates done.
    pub steps: u64,
    /// Whether the run reached its end; a stopped run can be resumed.
    pub finished: bool,
    /// The success rate of the last evaluation.
    pub success: Option<f64>,
    /// The normalised mean return of the last evaluation, where two given returns map to 0 and 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// All evaluations, in order.
    pub evaluations: Vec<EvaluationSummary>,
    /// The learned values over the data at the end of the run, if the agent learns values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learned_values: Option<CriticStatistics>,
    /// The best values that the data supports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_values: Option<DataStatistics>,
    /// The checkpoint that the run ended with, if the best one was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<Best>,
    /// Number of training episodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_episodes: Option<usize>,
    /// Number of held-out episodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out_episodes: Option<usize>,
    /// Mean milliseconds per update, including sampling and logging.
    #[serde(deserialize_with = "crate::numbers::or_nan")]
    pub ms_per_step: f64,
    /// Seconds spent on the run, over all its sessions.
    #[serde(deserialize_with = "crate::numbers::or_nan")]
    pub wall_seconds: f64,
    /// Seconds spent on evaluations, including those in parallel with training.
    #[serde(default, deserialize_with = "crate::numbers::or_nan")]
    pub eval_seconds: f64,
    /// Number of trainable parameters of all networks.
    pub parameters: usize,
    /// SHA-256 of all weights, see [`weights_sha256`](crate::weights_sha256).
    pub weights_sha256: String,
    /// SHA-256 of the dataset's contents.
    pub dataset_sha256: String,
    /// The device of the last session, if not the CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Versions of album and of the environments' packages.
    pub versions: BTreeMap<String, String>,
}

impl RunResult {
    /// The outcome recorded in a checkpoint, for a run without a `result.json`.
    pub fn of(checkpoint: &Checkpoint, finished: bool, parameters: usize) -> Self {
        let Manifest { identity, progress, .. } = &checkpoint.manifest;
        Self::new(identity, progress, finished, parameters, weights_sha256(&checkpoint.state))
    }

    pub(crate) fn new(
        identity: &Identity,
        progress: &Progress,
        finished: bool,
        parameters: usize,
        weights_sha256: String,
    ) -> Self {
        RunResult {
            task: identity.task.clone(),
            agent: identity.agent.clone(),
            seed: identity.seed,
            steps: progress.step,
            finished,
            success: progress.evaluations.last().and_then(|evaluation| evaluation.success),
            evaluations: progress.evaluations.clone(),
            best: progress.best.clone(),
            score: None,
            learned_values: None,
            data_values: None,
            data_episodes: None,
            held_out_episodes: None,
            ms_per_step: 1e3 * progress.train_seconds / progress.step.max(1) as f64,
            wall_seconds: progress.wall_seconds,
            parameters,
            weights_sha256,
            dataset_sha256: identity.dataset.clone(),
            eval_seconds: progress.eval_seconds,
            device: None,
            versions: BTreeMap::from([
                ("album".into(), env!("CARGO_PKG_VERSION").into()),
                ("checkpoint".into(), crate::checkpoint::FORMAT.to_string()),
                ("platform".into(), format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS)),
            ]),
        }
    }

    /// Adds the score of the last evaluation, given the returns that map to 0 and 100.
    pub fn with_score(mut self, range: Option<[f64; 2]>) -> Self {
        if let (Some([low, high]), Some(last)) = (range, self.evaluations.last()) {
            self.score = Some(100.0 * (last.mean_return - low) / (high - low));
        }
        self
    }

    /// Adds the versions of the environments' packages.
    pub fn with_versions(mut self, environments: &BTreeMap<String, String>) -> Self {
        self.versions.extend(environments.clone());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An environment may return infinite rewards. JSON cannot represent them, but the file must still be
    /// readable.
    #[test]
    fn what_is_no_number_can_be_read_back() {
        let summary = EvaluationSummary {
            step: 7,
            success: None,
            success_interval: None,
            mean_return: f64::INFINITY,
            length: 3.0,
            final_reward: f64::NAN,
            episodes: 1,
            timesteps: 3,
        };
        let progress = Progress {
            step: 7,
            best: Some(Best { step: 7, criterion: "evaluation/return".into(), value: f64::INFINITY }),
            evaluations: vec![summary],
            ..Progress::default()
        };
        let text = serde_json::to_string(&progress).unwrap();
        let back: Progress = serde_json::from_str(&text).unwrap();
        assert_eq!(back.evaluations[0].length, 3.0);
        assert!(back.evaluations[0].mean_return.is_nan() && back.best.unwrap().value.is_nan());

        let values =
            CriticStatistics { v_max: f64::NAN, v_mean: 1.0, v_min: f64::NEG_INFINITY, g_b_satisfied: None };
        let back: CriticStatistics = serde_json::from_str(&serde_json::to_string(&values).unwrap()).unwrap();
        assert!(back.v_max.is_nan() && back.v_mean == 1.0);
    }
}
