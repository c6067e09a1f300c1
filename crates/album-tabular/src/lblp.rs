//! The Lifted Bellman Linear Program.
//!
//! ```text
//! min   <c_Q, Q> + <c_V, V>
//! s.t.  g_B  = R + gamma P V - Q <= 0      g_E  = Q - V   <= 0
//!       g_KQ = y_K - Q           <= 0      g_KV = y_K - V <= 0
//! ```
//!
//! over one Q per pair and one V per decision state. Its unique minimiser is the Bellman-optimal pair of the MDP; on
//! the empirical MDP of a dataset that is `(Q*_D, V*_D)`, the best values that the data supports. The last two families
//! are implied by the first two, for every K and every rollout policy.

use crate::lp::LinearProgram;
use crate::sparse::{Csr, RowBuilder};
use crate::{EmpiricalMdp, Family, Mdp, Rollout, TabularError};

/// The positive weights of the objective.
#[derive(Clone, Debug)]
pub struct Weights {
    /// One per pair.
    pub c_q: Vec<f64>,
    /// One per decision state.
    pub c_v: Vec<f64>,
}

impl Weights {
    /// `omega_Q d_D(s,a)` and `omega_V d_S(s)`: the weights of the empirical objective.
    pub fn from_data(data: &EmpiricalMdp, omega_q: f64, omega_v: f64) -> Result<Self, TabularError> {
        check_positive("omega_Q", omega_q)?;
        check_positive("omega_V", omega_v)?;
        Ok(Weights {
            c_q: data.pair_frequency().iter().map(|d| omega_q * d).collect(),
            c_v: data.state_frequency().iter().map(|d| omega_v * d).collect(),
        })
    }

    /// The same weight everywhere.
    pub fn uniform(mdp: &Mdp, c_q: f64, c_v: f64) -> Self {
        Weights { c_q: vec![c_q; mdp.pairs()], c_v: vec![c_v; mdp.decision_states()] }
    }
}

/// Refuses anything but a positive finite number.
pub(crate) fn check_positive(name: &'static str, value: f64) -> Result<(), TabularError> {
    if value > 0.0 && value.is_finite() {
        return Ok(());
    }
    Err(TabularError::Coefficient { name, value, expected: "positive number" })
}

/// The program of an MDP: its objective and its rollout targets. The constraint matrix is assembled on demand.
#[derive(Clone, Debug)]
pub struct Lblp<'a> {
    mdp: &'a Mdp,
    weights: Weights,
    rollout: Rollout,
}

impl<'a> Lblp<'a> {
    /// The program for an MDP, an objective and a rollout, which must belong to it.
    pub fn new(mdp: &'a Mdp, weights: Weights, rollout: Rollout) -> Result<Self, TabularError> {
        let (pairs, states) = (mdp.pairs(), mdp.decision_states());
        for (what, found, expected) in [
            ("pairs in c_Q", weights.c_q.len(), pairs),
            ("states in c_V", weights.c_v.len(), states),
            ("pairs in the rollout", rollout.pairs(), pairs),
            ("states in the rollout", rollout.states(), states),
        ] {
            if found != expected {
                return Err(TabularError::OtherMdp { what, found, expected });
            }
        }
        weights.c_q.iter().try_for_each(|&c| check_positive("c_Q", c))?;
        weights.c_v.iter().try_for_each(|&c| check_positive("c_V", c))?;
        Ok(Lblp { mdp, weights, rollout })
    }

    /// The program of a dataset, with its behaviour policy as rollout policy.
    pub fn of_data(
        data: &'a EmpiricalMdp,
        omega_q: f64,
        omega_v: f64,
        k: usize,
    ) -> Result<Self, TabularError> {
        let weights = Weights::from_data(data, omega_q, omega_v)?;
        Lblp::new(&data.mdp, weights, Rollout::expected(&data.mdp, &data.behaviour, k)?)
    }

    /// The MDP of the program.
    pub fn mdp(&self) -> &'a Mdp {
        self.mdp
    }

    /// The objective.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// The K-step targets.
    pub fn rollout(&self) -> &Rollout {
        &self.rollout
    }

    /// Number of pairs (variables Q, and rows of each family).
    pub fn pairs(&self) -> usize {
        self.mdp.pairs()
    }

    /// Number of decision states (variables V).
    pub fn states(&self) -> usize {
        self.mdp.decision_states()
    }

    /// Number of rows.
    pub fn constraints(&self) -> usize {
        Family::ALL.len() * self.pairs()
    }

    /// Number of variables.
    pub fn variables(&self) -> usize {
        self.pairs() + self.states()
    }

    /// `F(Q,V)`.
    pub fn objective(&self, q: &[f64], v: &[f64]) -> f64 {
        let dot = |c: &[f64], x: &[f64]| c.iter().zip(x).map(|(c, x)| c * x).sum::<f64>();
        dot(&self.weights.c_q, q) + dot(&self.weights.c_v, v)
    }

    /// Assembles the program: `min c'x` subject to `A x <= b`, with `x = (Q, V)` and the rows of each of
    /// [`Family::ALL`] in turn, one per pair. Refused if the rollout matrix would be too large.
    pub fn assemble(&self) -> Result<LinearProgram, TabularError> {
        let (mdp, pairs) = (self.mdp, self.pairs());
        let rollout = self.rollout.assemble()?;
        let nonzeros = 4 * pairs + mdp.kernel().nonzeros() + 2 * rollout.weight.nonzeros() + pairs;
        let mut matrix = Csr::with_capacity(self.variables(), self.constraints(), nonzeros);
        let mut rhs = Vec::with_capacity(self.constraints());
        let mut row = RowBuilder::new(self.variables());
        for family in Family::ALL {
            let terms = family.terms();
            for pair in 0..pairs {
                row.add(pair, terms.q);
                row.add(pairs + mdp.state_of(pair), terms.v);
                mdp.onward(pair).for_each(|(s, p)| row.add(pairs + s, terms.y_1 * mdp.gamma() * p));
                if terms.y_k != 0.0 {
                    rollout.weight.row(pair).for_each(|(s, a)| row.add(pairs + s, terms.y_k * a));
                }
                row.finish(&mut matrix);
                rhs.push(-(terms.y_1 * mdp.reward()[pair] + terms.y_k * rollout.offset[pair]));
            }
        }
        let mut objective = self.weights.c_q.clone();
        objective.extend_from_slice(&self.weights.c_v);
        Ok(LinearProgram {
            lower: vec![f64::NEG_INFINITY; objective.len()],
            upper: vec![f64::INFINITY; objective.len()],
            objective,
            matrix,
            row_lower: vec![f64::NEG_INFINITY; rhs.len()],
            row_upper: rhs,
        })
    }

    /// Writes the assembled program as an MPS file with names `Q_<pair>`, `V_<state>` and `B_<pair>`, `E_`,
    /// `KQ_`, `KV_`, where `pair` is `<state>_<action>` in the ids of `labels` (a minus sign is written `m`).
    pub fn write_mps(
        &self,
        program: &LinearProgram,
        out: &mut dyn std::io::Write,
        labels: &EmpiricalMdp,
    ) -> std::io::Result<()> {
        let number = |x: i64| x.to_string().replace('-', "m");
        let pair =
            |p: usize| format!("{}_{}", number(labels.pair_state_label(p)), number(labels.pair_actions[p]));
        let column = |j: usize| match j.checked_sub(self.pairs()) {
            None => format!("Q_{}", pair(j)),
            Some(s) => format!("V_{}", number(labels.state_labels[s])),
        };
        let row = |i: usize| format!("{:?}_{}", Family::ALL[i / self.pairs()], pair(i % self.pairs()));
        program.write_mps(out, "LBLP", &column, &row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MudWorld;
    use crate::random::{random_mdp, random_policy};

    #[test]
    fn every_row_is_its_definition() {
        let mdp = random_mdp(2, 12, 3, 3, 0.9);
        let rollout = Rollout::expected(&mdp, &random_policy(2, &mdp), 3).unwrap();
        let lblp = Lblp::new(&mdp, Weights::uniform(&mdp, 1.0, 2.0), rollout.clone()).unwrap();
        let n = mdp.pairs();
        let q: Vec<f64> = (0..n).map(|p| (p as f64 * 0.7).sin()).collect();
        let v: Vec<f64> = (0..12).map(|s| (s as f64).cos()).collect();
        let x: Vec<f64> = q.iter().chain(&v).copied().collect();
        let program = lblp.assemble().unwrap();
        let row = |i: usize| program.matrix.row_dot(i, &x) - program.row_upper[i];
        let y_k = rollout.targets(&v);
        for p in 0..n {
            let s = mdp.state_of(p);
            assert!((row(p) - (mdp.y_1(p, &v) - q[p])).abs() < 1e-12);
            assert!((row(n + p) - (q[p] - v[s])).abs() < 1e-12);
            assert!((row(2 * n + p) - (y_k[p] - q[p])).abs() < 1e-12);
            assert!((row(3 * n + p) - (y_k[p] - v[s])).abs() < 1e-12);
        }
        assert!((lblp.objective(&q, &v) - q.iter().sum::<f64>() - 2.0 * v.iter().sum::<f64>()).abs() < 1e-12);
    }

    #[test]
    fn the_mudworld_program_has_the_size_that_its_data_says() {
        let data = EmpiricalMdp::new(&MudWorld::new(100, 0).down_right(2000), 0.95).unwrap();
        let lblp = Lblp::of_data(&data, 0.1, 0.05, 10).unwrap();
        let nonzeros = lblp.assemble().unwrap().matrix.nonzeros();
        // The paper's seed has 9,693 pairs, 5,133 states and 225,776 nonzeros; other seeds are close to it.
        assert!((9_400..10_000).contains(&lblp.pairs()), "{}", lblp.pairs());
        assert!((4_950..5_300).contains(&lblp.states()), "{}", lblp.states());
        assert!((215_000..236_000).contains(&nonzeros), "{nonzeros}");
    }

    #[test]
    fn weights_must_be_positive_and_everything_must_belong_to_the_mdp() {
        let mdp = random_mdp(2, 3, 2, 2, 0.9);
        let rollout = Rollout::expected(&mdp, &random_policy(2, &mdp), 2).unwrap();
        let weights = Weights::uniform(&mdp, 1.0, 1.0);
        let message = |weights: &Weights, rollout: &Rollout| {
            Lblp::new(&mdp, weights.clone(), rollout.clone()).unwrap_err().to_string()
        };
        let mut zero = weights.clone();
        zero.c_v[1] = 0.0;
        assert_eq!(message(&zero, &rollout), "c_V is 0; expected a positive number");
        let mut short = weights.clone();
        short.c_v.pop();
        assert_eq!(message(&short, &rollout), "states in c_V: found 2, but the MDP has 3");
        let other = random_mdp(5, 7, 2, 2, 0.9);
        let other = Rollout::expected(&other, &random_policy(2, &other), 2).unwrap();
        assert!(message(&weights, &other).starts_with("pairs in the rollout: found "));
        let data = EmpiricalMdp::new(&crate::random::random_dataset(1, &mdp, 3, 3), 0.9).unwrap();
        let message = Weights::from_data(&data, -0.1, 1.0).unwrap_err().to_string();
        assert_eq!(message, "omega_Q is -0.1; expected a positive number");
    }
}
