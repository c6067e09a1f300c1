//! Hyperparameters shared by all algorithms.

use crate::agent::AgentError;
use crate::{Decay, Encoding};
use album_data::{Dataset, SegmentConfig};
use serde::{Deserialize, Serialize};

/// Networks, batches and extensions beyond the papers; part of every algorithm's configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Common {
    /// Widths of the hidden layers of all networks.
    pub hidden: Vec<usize>,
    /// Mini-batch size.
    pub batch_size: usize,
    /// Discount factor.
    pub gamma: f64,
    /// Beyond the papers: factor on all rewards.
    pub reward_scale: f64,
    /// Beyond the papers: learning-rate schedule over the run.
    pub lr_decay: Decay,
    /// Beyond the papers: standardise observations with the statistics of the data.
    pub standardize: bool,
    /// Beyond the papers: number of random Fourier features added to the observation (even; 0 for none).
    pub fourier_features: usize,
    /// Beyond the papers: standard deviation of their frequencies.
    pub fourier_scale: f64,
}

impl Default for Common {
    /// The sizes and the discount of the FQL code base, used for the paper's baselines.
    fn default() -> Self {
        Common {
            hidden: vec![512; 4],
            batch_size: 256,
            gamma: 0.99,
            reward_scale: 1.0,
            lr_decay: Decay::None,
            standardize: false,
            fourier_features: 0,
            fourier_scale: 1.0,
        }
    }
}

impl Common {
    /// Refuses values out of range.
    pub fn check(&self) -> Result<(), AgentError> {
        positive(&[("reward_scale", self.reward_scale)])?;
        nonnegative(&[("fourier_scale", self.fourier_scale)])?;
        open_unit(&[("gamma", self.gamma)])?;
        at_least_one(&[("batch_size", self.batch_size)])?;
        if self.hidden.contains(&0) {
            return fail("hidden", format!("{:?}", self.hidden), "layer widths of at least 1");
        }
        if self.fourier_features % 2 == 1 {
            return fail("fourier_features", self.fourier_features.to_string(), "an even number");
        }
        Ok(())
    }

    /// Batches of single transitions.
    pub fn one_step(&self) -> SegmentConfig {
        SegmentConfig { k: 1, gamma: self.gamma, ..SegmentConfig::default() }
    }

    /// The encoding of observations for the networks.
    pub fn encoding(&self, data: &Dataset, seed: u64) -> Encoding {
        if self.standardize || self.fourier_features > 0 {
            Encoding::new(data, self.standardize, self.fourier_features, self.fourier_scale, seed)
        } else {
            Encoding::identity(data.observation_dim())
        }
    }
}

/// Fails with the valid range of a hyperparameter.
pub fn fail<T>(key: &'static str, found: String, expected: &'static str) -> Result<T, AgentError> {
    Err(AgentError::Config { key, found, expected })
}

/// Refuses numbers that are not above 0.
pub fn positive(values: &[(&'static str, f64)]) -> Result<(), AgentError> {
    check(values, |x| x > 0.0 && x.is_finite(), "a positive number")
}

/// Refuses numbers below 0.
pub fn nonnegative(values: &[(&'static str, f64)]) -> Result<(), AgentError> {
    check(values, |x| x >= 0.0 && x.is_finite(), "a nonnegative number")
}

/// Refuses numbers outside (0, 1).
pub fn open_unit(values: &[(&'static str, f64)]) -> Result<(), AgentError> {
    check(values, |x| x > 0.0 && x < 1.0, "a number between 0 and 1")
}

/// Refuses rates outside (0, 1].
pub fn rate(values: &[(&'static str, f64)]) -> Result<(), AgentError> {
    check(values, |x| x > 0.0 && x <= 1.0, "a number above 0 and at most 1")
}

/// Refuses zero.
pub fn at_least_one(values: &[(&'static str, usize)]) -> Result<(), AgentError> {
    match values.iter().find(|(_, value)| *value == 0) {
        Some((key, value)) => fail(key, value.to_string(), "at least 1"),
        None => Ok(()),
    }
}

fn check(
    values: &[(&'static str, f64)],
    holds: impl Fn(f64) -> bool,
    expected: &'static str,
) -> Result<(), AgentError> {
    match values.iter().find(|(_, value)| !holds(*value)) {
        Some((key, value)) => fail(key, value.to_string(), expected),
        None => Ok(()),
    }
}
