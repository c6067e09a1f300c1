//! The necessary condition for bounded updates: if it fails, lowering all values together always decreases
//! the loss.
//!
//! The instances are datasets without absorbing states in which every action permutes the states and every
//! pair is equally frequent. There the mean of the update over all coordinates depends only on the common
//! shift, and with a large epigraph penalty no other direction is more restrictive, so the condition decides
//! whether full updates diverge.

use super::{Check, Effort, Group, Lines};
use crate::{
    Coefficients, EmpiricalMdp, Gradient, Relaxation, Rollout, TabularDataset, TabularError, boundedness,
};
use album_base::rng;
use rand::RngExt;
use rand::seq::SliceRandom;

pub(super) fn check(effort: &Effort<'_>) -> Result<Vec<Check>, TabularError> {
    let mut lines = Lines::new(Group::Boundedness);
    let sets = (effort.instances / 2).max(10);
    for (gradient, name) in [(Gradient::Detached, "detached"), (Gradient::Plain, "plain")] {
        let (mut slope_error, mut agree, mut violated) = (0.0f64, 0, 0);
        for i in 0..sets {
            let case = Case::draw(i as u64, gradient)?;
            let predicted = boundedness(&case.coefficients, case.gamma(), case.k, gradient);
            violated += usize::from(!predicted.holds());
            slope_error = slope_error.max((case.slope_far_below() - predicted.slope()).abs());
            agree += usize::from(case.drifts() != predicted.holds());
            effort.tell(&format!("{name} updates"), i + 1, sets);
        }
        lines.at_most(
            format!("{name}: slope of the update along the common shift, far below: error of the prediction"),
            slope_error,
            1e-10,
        );
        lines.exactly(
            format!("{name}: {sets} coefficient sets, {violated} of them violating: predicted and observed drift agree"),
            agree,
            sets,
        );
    }
    Ok(lines.checks)
}

struct Case {
    data: EmpiricalMdp,
    rollout: Rollout,
    coefficients: Coefficients,
    k: usize,
    gradient: Gradient,
}

impl Case {
    /// Draws a dataset and coefficients; odd cases violate the condition, even ones satisfy it, by 10 % or more.
    fn draw(seed: u64, gradient: Gradient) -> Result<Self, TabularError> {
        let mut rng = rng::stream(seed, "boundedness");
        let gamma: f64 = rng.random_range(0.5..0.95);
        let k = rng.random_range(2..8);
        let (states, actions) = (rng.random_range(3..7), rng.random_range(1..4));
        let mut data = TabularDataset::default();
        for action in 0..actions {
            let mut next: Vec<i64> = (0..states).collect();
            next.shuffle(&mut rng);
            for s in 0..states {
                data.push(s, action, rng.random_range(-1.0..1.0), next[s as usize], true);
            }
        }
        let data = EmpiricalMdp::new(&data, gamma)?;
        let rollout = Rollout::expected(&data.mdp, &data.behaviour, k)?;

        let (omega_q, omega_v) = (rng.random_range(0.05..0.5), rng.random_range(0.05..0.5));
        let right = omega_q + omega_v;
        let left =
            if seed % 2 == 1 { rng.random_range(0.0..0.9) } else { rng.random_range(1.1..3.0) } * right;
        let by_rollout = rng.random_range(0.0..1.0) * left;
        let unit = if gradient == Gradient::Detached { 2.0 } else { 2.0 * (1.0 - gamma.powf(k as f64)) };
        let lambda_k = by_rollout / unit;
        let mut lambda_b = (left - by_rollout) / (1.0 - gamma);
        if seed.is_multiple_of(2) {
            // Q alone must not diverge either: that takes lambda_B + lambda_K > omega_Q.
            lambda_b = lambda_b.max(1.1 * omega_q);
        }
        let lambda_e = 1.5 * right / (1.0 - gamma) + lambda_b;
        let coefficients = Coefficients { omega_q, omega_v, lambda_b, lambda_e, lambda_k };
        Ok(Case { data, rollout, coefficients, k, gradient })
    }

    fn gamma(&self) -> f64 {
        self.data.mdp.gamma()
    }

    fn relaxation(&self) -> Relaxation<'_> {
        Relaxation::of_data(&self.data, &self.rollout, self.coefficients)
    }

    /// The slope of the loss along the common shift, measured on the update with all hinges but g_E active:
    /// minus the sum of the update's components.
    fn slope_far_below(&self) -> f64 {
        let far = -1e4 / (1.0 - self.gamma());
        let q = vec![far; self.data.mdp.pairs()];
        let v = vec![far; self.data.mdp.decision_states()];
        let (g_q, g_v) = self.relaxation().subgradient(&q, &v, self.gradient);
        -(g_q.iter().sum::<f64>() + g_v.iter().sum::<f64>())
    }

    /// Whether full updates from 0 are still falling after a long time.
    fn drifts(&self) -> bool {
        const STEPS: usize = 20_000;
        let relaxation = self.relaxation();
        let mut q = vec![0.0; self.data.mdp.pairs()];
        let mut v = vec![0.0; self.data.mdp.decision_states()];
        let coordinates = (q.len() + v.len()) as f64;
        let mean = |q: &[f64], v: &[f64]| (q.iter().sum::<f64>() + v.iter().sum::<f64>()) / coordinates;
        // Each update moves a coordinate by about 0.02 times its coefficient.
        let rate = 0.02 * q.len() as f64;
        let mut halfway = 0.0;
        for step in 0..STEPS {
            if step == STEPS / 2 {
                halfway = mean(&q, &v);
            }
            relaxation.descend(&mut q, &mut v, rate, self.gradient);
        }
        // A violated condition predicts at least this decrease over the second half; a bounded update only
        // oscillates.
        let margin = 0.1 * (self.coefficients.omega_q + self.coefficients.omega_v);
        let predicted_fall = (STEPS / 2) as f64 * rate * margin / coordinates;
        halfway - mean(&q, &v) > 0.5 * predicted_fall
    }
}
