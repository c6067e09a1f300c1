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
use crate::sparse::Csr;
use crate::{EmpiricalMdp, Mdp, Rollout, TabularError};

/// The four constraint families, in the order of their rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// `R + gamma P V <= Q`
    B,
    /// `Q <= V`
    E,
    /// `y_K <= Q`
    KQ,
    /// `y_K <= V`
    KV,
}

impl Family {
    /// All four, in order.
    pub const ALL: [Family; 4] = [Family::B, Family::E, Family::KQ, Family::KV];
}

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

/// Refuses what is not a positive finite number.
pub(crate) fn check_positive(name: &'static str, value: f64) -> Result<(), TabularError> {
    if value > 0.0 && value.is_finite() {
        return Ok(());
    }
    Err(TabularError::Coefficient { name, value, expected: "positive number" })
}

/// The assembled program: `min c'x` subject to `A x <= b`, with `x = (Q, V)` and the rows of [`Family::ALL`] in turn.
#[derive(Clone, Debug)]
pub struct Lblp {
    pairs: usize,
    states: usize,
    program: LinearProgram,
}

impl Lblp {
    /// Assembles the program for an MDP, an objective and a rollout.
    pub fn new(mdp: &Mdp, weights: &Weights, rollout: &Rollout) -> Result<Self, TabularError> {
        let (pairs, states) = (mdp.pairs(), mdp.decision_states());
        for &c in &weights.c_q {
            check_positive("c_Q", c)?;
        }
        for &c in &weights.c_v {
            check_positive("c_V", c)?;
        }
        let v = |s: usize| pairs + s;
        let mut objective = weights.c_q.clone();
        objective.extend_from_slice(&weights.c_v);
        let nonzeros = 4 * pairs + mdp.kernel().nonzeros() + 2 * rollout.weight.nonzeros() + pairs;
        let mut matrix = Csr::with_capacity(pairs + states, 4 * pairs, nonzeros);
        let mut rhs = Vec::with_capacity(4 * pairs);
        for pair in 0..pairs {
            matrix.push(pair, -1.0);
            for (next, p) in mdp.onward(pair) {
                matrix.push(v(next), mdp.gamma() * p);
            }
            matrix.end_row();
            rhs.push(-mdp.reward()[pair]);
        }
        for pair in 0..pairs {
            matrix.push(pair, 1.0);
            matrix.push(v(mdp.state_of(pair)), -1.0);
            matrix.end_row();
            rhs.push(0.0);
        }
        for pair in 0..pairs {
            matrix.push(pair, -1.0);
            for (s, a) in rollout.weight.row(pair) {
                matrix.push(v(s), a);
            }
            matrix.end_row();
            rhs.push(-rollout.offset[pair]);
        }
        for pair in 0..pairs {
            // V(s) itself may be among the states where the rollout stops.
            let own = mdp.state_of(pair);
            let mut back = 0.0;
            for (s, a) in rollout.weight.row(pair) {
                if s == own {
                    back = a;
                } else {
                    matrix.push(v(s), a);
                }
            }
            matrix.push(v(own), back - 1.0);
            matrix.end_row();
            rhs.push(-rollout.offset[pair]);
        }
        let program = LinearProgram {
            lower: vec![f64::NEG_INFINITY; objective.len()],
            upper: vec![f64::INFINITY; objective.len()],
            objective,
            matrix,
            row_lower: vec![f64::NEG_INFINITY; rhs.len()],
            row_upper: rhs,
        };
        Ok(Lblp { pairs, states, program })
    }

    /// The program of a dataset, with its behaviour policy as rollout policy.
    pub fn of_data(data: &EmpiricalMdp, omega_q: f64, omega_v: f64, k: usize) -> Result<Self, TabularError> {
        let weights = Weights::from_data(data, omega_q, omega_v)?;
        Lblp::new(&data.mdp, &weights, &Rollout::expected(&data.mdp, &data.behaviour, k)?)
    }

    /// Number of pairs (variables Q, and rows of each family).
    pub fn pairs(&self) -> usize {
        self.pairs
    }

    /// Number of decision states (variables V).
    pub fn states(&self) -> usize {
        self.states
    }

    /// The program in general form.
    pub fn program(&self) -> &LinearProgram {
        &self.program
    }

    /// Entries of the constraint matrix.
    pub fn nonzeros(&self) -> usize {
        self.program.matrix.nonzeros()
    }

    /// Number of rows.
    pub fn constraints(&self) -> usize {
        self.program.matrix.rows()
    }

    /// Number of variables.
    pub fn variables(&self) -> usize {
        self.program.objective.len()
    }

    /// `F(Q,V)`.
    pub fn objective(&self, q: &[f64], v: &[f64]) -> f64 {
        self.program.objective.iter().zip(q.iter().chain(v)).map(|(c, x)| c * x).sum()
    }

    /// Writes the program as an MPS file with names `Q_<pair>`, `V_<state>` and `B_<pair>`, `E_`, `KQ_`, `KV_`,
    /// where `pair` is `<state>_<action>`, numbered by `labels` (a minus sign is written `m`).
    pub fn write_mps(&self, out: &mut dyn std::io::Write, labels: &EmpiricalMdp) -> std::io::Result<()> {
        let number = |x: i64| x.to_string().replace('-', "m");
        let pair =
            |p: usize| format!("{}_{}", number(labels.pair_state_label(p)), number(labels.pair_actions[p]));
        let column = |j: usize| match j.checked_sub(self.pairs) {
            None => format!("Q_{}", pair(j)),
            Some(s) => format!("V_{}", number(labels.state_labels[s])),
        };
        let row = |i: usize| format!("{:?}_{}", Family::ALL[i / self.pairs], pair(i % self.pairs));
        self.program.write_mps(out, "LBLP", &column, &row)
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
        let policy = random_policy(2, &mdp);
        let rollout = Rollout::expected(&mdp, &policy, 3).unwrap();
        let lblp = Lblp::new(&mdp, &Weights::uniform(&mdp, 1.0, 2.0), &rollout).unwrap();
        let n = mdp.pairs();
        let q: Vec<f64> = (0..n).map(|p| (p as f64 * 0.7).sin()).collect();
        let v: Vec<f64> = (0..12).map(|s| (s as f64).cos()).collect();
        let x: Vec<f64> = q.iter().chain(&v).copied().collect();
        let row = |i: usize| lblp.program().matrix.row_dot(i, &x) - lblp.program().row_upper[i];
        for p in 0..n {
            let s = mdp.state_of(p);
            assert!((row(p) - (mdp.y_1(p, &v) - q[p])).abs() < 1e-12);
            assert!((row(n + p) - (q[p] - v[s])).abs() < 1e-12);
            assert!((row(2 * n + p) - (rollout.y_k(p, &v) - q[p])).abs() < 1e-12);
            assert!((row(3 * n + p) - (rollout.y_k(p, &v) - v[s])).abs() < 1e-12);
        }
        assert!((lblp.objective(&q, &v) - q.iter().sum::<f64>() - 2.0 * v.iter().sum::<f64>()).abs() < 1e-12);
    }

    #[test]
    fn the_mudworld_program_has_the_size_that_its_data_says() {
        let data = EmpiricalMdp::new(&MudWorld::new(100, 0).down_right(2000), 0.95).unwrap();
        let lblp = Lblp::of_data(&data, 0.1, 0.05, 10).unwrap();
        assert_eq!(lblp.variables(), lblp.pairs() + lblp.states());
        assert_eq!(lblp.constraints(), 4 * lblp.pairs());
        // The paper's seed has 9,693 pairs, 5,133 states and 225,776 nonzeros; other seeds are close to it.
        assert!((9_400..10_000).contains(&lblp.pairs()), "{}", lblp.pairs());
        assert!((4_950..5_300).contains(&lblp.states()), "{}", lblp.states());
        assert!((215_000..236_000).contains(&lblp.nonzeros()), "{}", lblp.nonzeros());
    }

    #[test]
    fn weights_must_be_positive() {
        let mdp = random_mdp(2, 3, 2, 2, 0.9);
        let rollout = Rollout::expected(&mdp, &random_policy(2, &mdp), 2).unwrap();
        let mut weights = Weights::uniform(&mdp, 1.0, 1.0);
        weights.c_v[1] = 0.0;
        let message = Lblp::new(&mdp, &weights, &rollout).unwrap_err().to_string();
        assert_eq!(message, "c_V is 0; expected a positive number");
        let data = EmpiricalMdp::new(&crate::random::random_dataset(1, &mdp, 3, 3), 0.9).unwrap();
        let message = Weights::from_data(&data, -0.1, 1.0).unwrap_err().to_string();
        assert_eq!(message, "omega_Q is -0.1; expected a positive number");
    }
}
