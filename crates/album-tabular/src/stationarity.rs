//! Is `(Q*_D, V*_D)` a stationary point of ALBUM's detached update?
//!
//! Each hinge has a set of subgradients where its residual is zero. The point is stationary exactly when selections
//!
//! ```text
//! u in [0, lambda_B d]   v in [0, lambda_E d] where g_E = 0   w, x in [0, lambda_K d] where g_KQ = 0, g_KV = 0
//! ```
//!
//! (0 elsewhere) balance the objective at every coordinate:
//!
//! ```text
//! omega_Q d(s,a) - u(s,a) + v(s,a) - w(s,a) = 0
//! omega_V d_S(s) + gamma sum_(t,b) P(s|t,b) u(t,b) - sum_a (v(s,a) + x(s,a)) = 0
//! ```
//!
//! Whether they exist is a linear feasibility problem.

use crate::lp::{LinearProgram, Outcome};
use crate::sparse::RowBuilder;
use crate::{Coefficients, EmpiricalMdp, Family, PerFamily, Rollout, TabularError, residuals};

/// Residuals up to this fraction of the value range count as zero.
const ZERO: f64 = 1e-9;

/// Subgradient selections `u, v, w, x` of the four families, one per pair; the frequency `d_D` is part of them.
pub type Selections = PerFamily<Vec<f64>>;

/// The selections that may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regime {
    /// All of them.
    Any,
    /// `w = x = 0`: the one-step terms carry the objective.
    OneStep,
    /// `u = v = 0`: the rollout terms carry the objective.
    Rollout,
}

impl Regime {
    fn allows(self, family: Family) -> bool {
        match self {
            Regime::Any => true,
            Regime::OneStep => family.terms().y_k == 0.0,
            Regime::Rollout => family.terms().y_k != 0.0,
        }
    }
}

/// The stationarity problem for one dataset, one rollout and the optimum `(q, v)`.
#[derive(Debug)]
pub struct Stationarity<'a> {
    data: &'a EmpiricalMdp,
    d: Vec<f64>,
    d_s: Vec<f64>,
    /// Whether the residual of each family vanishes at each pair.
    tight: PerFamily<Vec<bool>>,
}

impl<'a> Stationarity<'a> {
    /// Finds the tight constraints at `(q, v) = (Q*_D, V*_D)`.
    pub fn new(data: &'a EmpiricalMdp, rollout: &Rollout, q: &[f64], v: &[f64]) -> Self {
        let scale = v.iter().fold(1.0f64, |m, v| m.max(v.abs()));
        let g = residuals(&data.mdp, rollout, q, v);
        let tight = PerFamily::new(|family| g[family].iter().map(|g| g.abs() <= ZERO * scale).collect());
        Stationarity { data, d: data.pair_frequency(), d_s: data.state_frequency(), tight }
    }

    /// Admissible selections that balance the objective, or `None` if there are none.
    pub fn selections(&self, c: &Coefficients, regime: Regime) -> Result<Option<Selections>, TabularError> {
        let mdp = &self.data.mdp;
        let n = mdp.pairs();
        let families = || Family::ALL.into_iter().enumerate();
        // Variables are the selections divided by d, so that rare and frequent pairs have equal weight in the
        // solver.
        let mut program = LinearProgram::new(vec![0.0; 4 * n]);
        program.lower.fill(0.0);
        for (number, family) in families() {
            for pair in 0..n {
                let allowed = regime.allows(family) && self.tight[family][pair];
                program.upper[number * n + pair] = if allowed { c.penalties()[family] } else { 0.0 };
            }
        }
        for pair in 0..n {
            let entries = families().map(|(number, family)| (number * n + pair, -family.terms().q));
            program.push_row(c.omega_q, c.omega_q, entries.filter(|x| x.1 != 0.0));
        }
        let mut arrivals: Vec<Vec<(usize, f64)>> = vec![Vec::new(); mdp.decision_states()];
        for pair in 0..n {
            for (s, p) in mdp.onward(pair) {
                arrivals[s].push((pair, p));
            }
        }
        let mut row = RowBuilder::new(4 * n);
        for (s, arrivals) in arrivals.iter().enumerate() {
            let share = |pair: usize| self.d[pair] / self.d_s[s];
            for (number, family) in families() {
                let t = family.terms();
                mdp.pairs_of(s).for_each(|a| row.add(number * n + a, -t.v * share(a)));
                for &(pair, p) in arrivals {
                    row.add(number * n + pair, -t.y_1 * mdp.gamma() * p * share(pair));
                }
            }
            row.finish(&mut program.matrix);
            program.row_lower.push(c.omega_v);
            program.row_upper.push(c.omega_v);
        }
        match program.solve()? {
            Outcome::Optimal { x, .. } => {
                let mut parts = x.chunks(n);
                Ok(Some(PerFamily::new(|_| {
                    parts.next().unwrap_or_default().iter().zip(&self.d).map(|(x, d)| x * d).collect()
                })))
            }
            Outcome::Infeasible => Ok(None),
            Outcome::Unbounded => Err(TabularError::NoOptimum { solver: "stationarity", found: "unbounded" }),
        }
    }

    /// How far selections are from being admissible and balancing the objective, relative to the frequencies.
    /// This is the element of the detached update field that they select, computed from its definition.
    pub fn residual(&self, c: &Coefficients, z: &Selections) -> f64 {
        let mdp = &self.data.mdp;
        let mut worst = 0.0f64;
        let mut at_v: Vec<f64> = self.d_s.iter().map(|d| c.omega_v * d).collect();
        for pair in 0..mdp.pairs() {
            let (s, d) = (mdp.state_of(pair), self.d[pair]);
            for family in Family::ALL {
                let (value, tight) = (z[family][pair], self.tight[family][pair]);
                let upper = if tight { c.penalties()[family] * d } else { 0.0 };
                worst = worst.max((-value).max(value - upper) / d);
            }
            let at_q = c.omega_q * d - z.b[pair] + z.e[pair] - z.kq[pair];
            worst = worst.max(at_q.abs() / d);
            at_v[s] -= z.e[pair] + z.kv[pair];
            for (s, p) in mdp.onward(pair) {
                at_v[s] += mdp.gamma() * p * z.b[pair];
            }
        }
        at_v.iter().zip(&self.d_s).fold(worst, |m, (g, d)| m.max(g.abs() / d))
    }

    /// The selections of the rollout regime in closed form, where it applies: every continuation optimal
    /// (`delta_K = 0`), `lambda_K >= omega_Q`, and at every state enough frequency on optimal actions.
    pub fn rollout_selections(&self, c: &Coefficients) -> Option<Selections> {
        let mdp = &self.data.mdp;
        if c.lambda_k < c.omega_q || self.tight.kq.iter().any(|tight| !tight) {
            return None;
        }
        let zeros = vec![0.0; mdp.pairs()];
        let mut kv = zeros.clone();
        for s in 0..mdp.decision_states() {
            let optimal: f64 = mdp.pairs_of(s).filter(|&a| self.tight.e[a]).map(|a| self.d[a]).sum();
            if c.lambda_k * optimal < c.omega_v * self.d_s[s] {
                return None;
            }
            for a in mdp.pairs_of(s).filter(|&a| self.tight.e[a]) {
                kv[a] = c.omega_v * self.d_s[s] * self.d[a] / optimal;
            }
        }
        let kq = self.d.iter().map(|d| c.omega_q * d).collect();
        Some(PerFamily { b: zeros.clone(), e: zeros, kq, kv })
    }

    /// The total of the balance over all coordinates, `(1 - gamma) sum u + sum w + sum x`, which equals
    /// `omega_Q + omega_V` for balanced selections on data without absorbing states. If pairs lead to
    /// absorbing states, their `u` counts in full, because absorbing values cannot be shifted.
    pub fn aggregate(&self, z: &Selections) -> f64 {
        let mdp = &self.data.mdp;
        let sum = |x: &[f64]| x.iter().sum::<f64>();
        let through_u: f64 = (0..mdp.pairs())
            .map(|pair| {
                let stays: f64 = mdp.onward(pair).map(|(_, p)| p).sum();
                z.b[pair] * (1.0 - mdp.gamma() * stays)
            })
            .sum();
        through_u + sum(&z.kq) + sum(&z.kv)
    }
}
