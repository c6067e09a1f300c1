//! The training loop: how long, how often, on what.

use crate::error::Error;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// The training loop. Periods are in steps; 0 means never.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainConfig {
    /// Gradient steps.
    pub steps: u64,
    /// Steps between logged metrics.
    pub log_every: u64,
    /// Steps between evaluations; there is always one at the end.
    pub eval_every: u64,
    /// Episodes per evaluation.
    pub eval_episodes: usize,
    /// Steps between checkpoints; there is always one at the end.
    pub save_every: u64,
    /// How many of the latest checkpoints are kept.
    pub keep: usize,
    /// Whether to keep the best checkpoint too, by evaluations or held-out loss, and finish the run with it.
    pub keep_best: bool,
    /// Stop early once the best checkpoint is this many steps old; 0 for never.
    pub patience: u64,
    /// Fraction of the episodes held out and logged as `validation/*`; 0 uses the validation file beside the
    /// data, if there is one.
    pub holdout: f64,
    /// Which transitions an update sees. Left out of files where it is the default, so that older runs stay what they are.
    #[serde(skip_serializing_if = "Sampling::is_default")]
    pub sampling: Sampling,
    /// The precision of the factors of matrix products in training.
    #[serde(skip_serializing_if = "Precision::is_f32")]
    pub precision: Precision,
}

impl Default for TrainConfig {
    /// The paper's schedule.
    fn default() -> Self {
        TrainConfig {
            steps: 1_000_000,
            log_every: 5_000,
            eval_every: 100_000,
            eval_episodes: 50,
            save_every: 100_000,
            keep: 2,
            keep_best: false,
            patience: 0,
            holdout: 0.0,
            sampling: Sampling::default(),
            precision: Precision::F32,
        }
    }
}

/// What updates see equally often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sampling {
    /// Every transition.
    #[default]
    Transitions,
    /// Every pair of a state and an action, however often it was recorded.
    Pairs,
}

impl Sampling {
    fn is_default(&self) -> bool {
        *self == Sampling::default()
    }

    pub(crate) fn to_value(self) -> Result<toml::Value, Error> {
        toml::Value::try_from(self).map_err(|e| Error::Config(e.to_string()))
    }
}

/// The precision of the factors of matrix products in training. Sums, weights and everything else are single precision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Single precision.
    #[default]
    F32,
    /// Rounded to bfloat16.
    Bf16,
}

impl Precision {
    // Left out of files, so that runs from before there was a choice are the same runs.
    fn is_f32(&self) -> bool {
        *self == Precision::F32
    }
}

impl FromStr for Precision {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "f32" => Ok(Precision::F32),
            "bf16" => Ok(Precision::Bf16),
            _ => Err(Error::Usage(format!("found precision {text}; expected f32 or bf16"))),
        }
    }
}

impl From<Precision> for album_nn::Precision {
    fn from(precision: Precision) -> Self {
        match precision {
            Precision::F32 => album_nn::Precision::F32,
            Precision::Bf16 => album_nn::Precision::Bf16,
        }
    }
}
