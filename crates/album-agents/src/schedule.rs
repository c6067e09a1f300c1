//! Learning-rate schedules.

use serde::{Deserialize, Serialize};

/// The learning-rate schedule over a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decay {
    /// Constant (the paper).
    #[default]
    None,
    /// Cosine decay to 0.
    Cosine,
}

impl Decay {
    /// The factor at `step` of `total`.
    ///
    /// ```
    /// use album_agents::Decay;
    /// assert_eq!(Decay::None.factor(7, 10), 1.0);
    /// assert_eq!(Decay::Cosine.factor(0, 10), 1.0);
    /// assert!((Decay::Cosine.factor(5, 10) - 0.5).abs() < 1e-12);
    /// ```
    pub fn factor(self, step: u64, total: u64) -> f64 {
        match self {
            Decay::None => 1.0,
            Decay::Cosine => {
                let share = (step as f64 / total.max(1) as f64).min(1.0);
                0.5 * (1.0 + (std::f64::consts::PI * share).cos())
            }
        }
    }
}
