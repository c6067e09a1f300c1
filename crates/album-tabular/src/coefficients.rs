//! The coefficients of ALBUM's critic loss, and the condition that keeps its values bounded.

use crate::lblp::check_positive;
use crate::{Gradient, PerFamily, TabularError};
use serde::{Deserialize, Serialize};

/// Objective weights and penalty weights.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Coefficients {
    /// Weight of `E[Q]`.
    pub omega_q: f64,
    /// Weight of `E[V]`.
    pub omega_v: f64,
    /// Penalty on `y_1 - Q > 0`.
    pub lambda_b: f64,
    /// Penalty on `Q - V > 0`.
    pub lambda_e: f64,
    /// Penalty on `y_K - Q > 0` and `y_K - V > 0`.
    pub lambda_k: f64,
}

impl Default for Coefficients {
    /// The values of the paper.
    fn default() -> Self {
        Coefficients { omega_q: 0.1, omega_v: 0.05, lambda_b: 2.5, lambda_e: 2.5, lambda_k: 1.0 }
    }
}

impl Coefficients {
    /// The penalty of each family; the two rollout families share one.
    pub fn penalties(&self) -> PerFamily<f64> {
        PerFamily { b: self.lambda_b, e: self.lambda_e, kq: self.lambda_k, kv: self.lambda_k }
    }

    /// Positive objective weights, nonnegative penalties.
    pub fn check(&self) -> Result<(), TabularError> {
        check_positive("omega_Q", self.omega_q)?;
        check_positive("omega_V", self.omega_v)?;
        for (name, value) in
            [("lambda_B", self.lambda_b), ("lambda_E", self.lambda_e), ("lambda_K", self.lambda_k)]
        {
            if !(value >= 0.0 && value.is_finite()) {
                return Err(TabularError::Coefficient { name, value, expected: "nonnegative number" });
            }
        }
        Ok(())
    }
}

/// The necessary condition for bounded updates: `left >= right`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Boundedness {
    /// What pushes the values up when all are lowered together.
    pub left: f64,
    /// What pulls them down: `omega_Q + omega_V`.
    pub right: f64,
}

impl Boundedness {
    /// Whether the condition holds.
    pub fn holds(&self) -> bool {
        self.left >= self.right
    }

    /// The slope of the loss when all values are lowered together and every hinge is active. If it is
    /// negative, they diverge to minus infinity.
    pub fn slope(&self) -> f64 {
        self.left - self.right
    }
}

/// Evaluates the condition before training starts.
///
/// * detached rollout targets (ALBUM): `lambda_B (1 - gamma) + 2 lambda_K >= omega_Q + omega_V`
/// * plain gradient: `lambda_B (1 - gamma) + 2 lambda_K (1 - gamma^K) >= omega_Q + omega_V`
///
/// ```
/// use album_tabular::{Coefficients, Gradient, boundedness};
/// let paper = boundedness(&Coefficients::default(), 0.995, 10, Gradient::Detached);
/// assert!((paper.left - 2.0125).abs() < 1e-12 && (paper.right - 0.15).abs() < 1e-12);
/// assert!(paper.holds());
/// ```
pub fn boundedness(c: &Coefficients, gamma: f64, k: usize, gradient: Gradient) -> Boundedness {
    let rollout = match gradient {
        Gradient::Detached => 1.0,
        Gradient::Plain => 1.0 - gamma.powf(k as f64),
    };
    Boundedness {
        left: c.lambda_b * (1.0 - gamma) + 2.0 * c.lambda_k * rollout,
        right: c.omega_q + c.omega_v,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_rollout_term_the_papers_coefficients_violate_both_conditions() {
        let c = Coefficients { lambda_k: 0.0, ..Coefficients::default() };
        for gradient in [Gradient::Detached, Gradient::Plain] {
            let b = boundedness(&c, 0.995, 10, gradient);
            assert!(!b.holds() && b.slope() < 0.0);
        }
    }

    #[test]
    fn k_and_gamma_matter_only_without_stop_gradient() {
        let c = Coefficients::default();
        let at = |k, gradient| boundedness(&c, 0.9, k, gradient);
        assert_eq!(at(1, Gradient::Detached), at(50, Gradient::Detached));
        assert!(at(1, Gradient::Plain).left < at(50, Gradient::Plain).left);
    }

    #[test]
    fn coefficients_outside_their_domain_are_named() {
        let c = Coefficients { lambda_e: -1.0, ..Coefficients::default() };
        assert_eq!(c.check().unwrap_err().to_string(), "lambda_E is -1; expected a nonnegative number");
        let c = Coefficients { omega_v: f64::NAN, ..Coefficients::default() };
        assert_eq!(c.check().unwrap_err().to_string(), "omega_V is NaN; expected a positive number");
    }
}
