//! The K-step repair iteration, which approaches `(Q*_D, V*_D)` from below:
//!
//! ```text
//! Q_(n+1)(s,a) = max { L_1[V_n], L_K[V_n] }(s,a)      V_(n+1)(s) = max_a Q_(n+1)(s,a)
//! ```
//!
//! where `L_k[V]` is the k-step target along a recorded trajectory. With K = 1 it is value iteration. The error obeys
//! `(Q* - Q_(n+1))(s,a) = min_k [delta_k + gamma^k e_n(s^(k))]`, so it contracts at `gamma^K` until the suboptimality
//! `delta_K` of the recorded K-step path becomes visible, and at `gamma` from then on.

use crate::{EmpiricalMdp, Mdp, Rollout, TabularError};

/// The repair iteration of one dataset and one K.
#[derive(Debug)]
pub struct Repair<'a> {
    mdp: &'a Mdp,
    k_step: Rollout,
}

impl<'a> Repair<'a> {
    /// Prepares the recorded K-step targets. The transitions must be deterministic.
    pub fn new(data: &'a EmpiricalMdp, k: usize) -> Result<Self, TabularError> {
        if let Some(pair) = data.mdp.first_stochastic() {
            return Err(TabularError::Stochastic { pair });
        }
        Ok(Repair { mdp: &data.mdp, k_step: Rollout::recorded(data, k)? })
    }

    /// One update of all values.
    pub fn step(&self, v: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let y_k = self.k_step.targets(v);
        let q: Vec<f64> = (0..y_k.len()).map(|pair| self.mdp.y_1(pair, v).max(y_k[pair])).collect();
        let v = self.mdp.max_over_actions(&q);
        (q, v)
    }

    /// `delta_K(s,a) = Q*_D(s,a) - L_K[V*_D](s,a)`: the suboptimality of the recorded K-step path.
    pub fn delta_k(&self, q_star: &[f64], v_star: &[f64]) -> Vec<f64> {
        q_star.iter().zip(self.k_step.targets(v_star)).map(|(q, y_k)| q - y_k).collect()
    }

    /// The propagation identity's prediction of `Q*_D - Q_(n+1)` at every pair from `e_n = V*_D - V_n`.
    pub fn predicted_errors(&self, delta_k: &[f64], e_n: &[f64]) -> Vec<f64> {
        // L_k is affine in V, so the linear part applied to e_n is gamma^k e_n(s^(k)).
        let (with_rewards, rewards) = (self.k_step.targets(e_n), self.k_step.offsets());
        (0..self.mdp.pairs())
            .map(|pair| {
                let one_step = self.mdp.y_1(pair, e_n) - self.mdp.reward()[pair];
                one_step.min(delta_k[pair] + with_rewards[pair] - rewards[pair])
            })
            .collect()
    }

    /// `max |V*_D - V_n|` for n = 0, 1, ... from `V_0 = r_min / (1 - gamma)`, until it is at most `target` or
    /// `most` updates are done.
    pub fn error_curve(&self, v_star: &[f64], target: f64, most: usize) -> Vec<f64> {
        let mut v = vec![self.mdp.underestimate(); v_star.len()];
        let mut curve = vec![crate::max_difference(&v, v_star)];
        while curve.len() <= most && curve[curve.len() - 1] > target {
            v = self.step(&v).1;
            curve.push(crate::max_difference(&v, v_star));
        }
        curve
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{random_dataset, random_mdp};
    use crate::value_iteration;

    #[test]
    fn one_step_repair_is_value_iteration_and_more_steps_are_never_slower() {
        let mdp = random_mdp(11, 40, 3, 1, 0.95);
        let data = EmpiricalMdp::new(&random_dataset(11, &mdp, 60, 30), 0.95).unwrap();
        let (_, v_star) = value_iteration(&data.mdp, 1e-13);
        let mut curves = Vec::new();
        for k in [1, 2, 5, 10] {
            curves.push(Repair::new(&data, k).unwrap().error_curve(&v_star, 1e-9, 2000));
        }
        for curve in &curves[1..] {
            assert!(curve.len() <= curves[0].len());
            assert!(curve.iter().zip(&curves[0]).all(|(k, one)| *k <= one + 1e-12));
        }
        let rate = curves[0][101] / curves[0][100];
        assert!(rate <= 0.95 + 1e-9, "{rate}");
    }

    #[test]
    fn stochastic_data_is_refused() {
        let mdp = random_mdp(1, 10, 2, 3, 0.9);
        let data = EmpiricalMdp::new(&random_dataset(1, &mdp, 50, 30), 0.9).unwrap();
        assert!(Repair::new(&data, 3).err().unwrap().to_string().contains("deterministic"));
    }
}
