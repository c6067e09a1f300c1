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
use crate::{Coefficients, EmpiricalMdp, Rollout, TabularError};

/// Residuals up to this share of the value range count as zero.
const ZERO: f64 = 1e-9;

/// Admissible subgradient selections, one of each per pair; the frequency `d_D` is part of them.
#[derive(Clone, Debug)]
pub struct Selections {
    /// Of `g_B`.
    pub u: Vec<f64>,
    /// Of `g_E`.
    pub v: Vec<f64>,
    /// Of `g_KQ`.
    pub w: Vec<f64>,
    /// Of `g_KV`.
    pub x: Vec<f64>,
}

/// Which selections may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regime {
    /// All of them.
    Any,
    /// `w = x = 0`: the one-step terms carry the objective.
    OneStep,
    /// `u = v = 0`: the rollout terms carry the objective.
    Rollout,
}

/// The stationarity question for one dataset, one rollout and the optimum `(q, v)`.
pub struct Stationarity<'a> {
    data: &'a EmpiricalMdp,
    d: Vec<f64>,
    d_s: Vec<f64>,
    /// Whether `g_E`, `g_KQ` and `g_KV` vanish at each pair.
    tight: Vec<[bool; 3]>,
}

impl<'a> Stationarity<'a> {
    /// Finds the tight constraints at `(q, v) = (Q*_D, V*_D)`.
    pub fn new(data: &'a EmpiricalMdp, rollout: &Rollout, q: &[f64], v: &[f64]) -> Self {
        let scale = v.iter().fold(1.0f64, |m, v| m.max(v.abs()));
        let zero = |residual: f64| residual.abs() <= ZERO * scale;
        let tight = (0..data.mdp.pairs())
            .map(|pair| {
                let (v_s, y_k) = (v[data.mdp.state_of(pair)], rollout.y_k(pair, v));
                [zero(q[pair] - v_s), zero(y_k - q[pair]), zero(y_k - v_s)]
            })
            .collect();
        Stationarity { data, d: data.pair_frequency(), d_s: data.state_frequency(), tight }
    }

    /// Admissible selections that balance the objective, or `None` where there are none.
    pub fn selections(&self, c: &Coefficients, regime: Regime) -> Result<Option<Selections>, TabularError> {
        let mdp = &self.data.mdp;
        let n = mdp.pairs();
        // Variables are the selections divided by d, so that rare and common pairs weigh the same in the solver.
        let mut program = LinearProgram::new(vec![0.0; 4 * n]);
        program.lower.fill(0.0);
        for pair in 0..n {
            let [g_e, g_kq, g_kv] = self.tight[pair];
            let (one_step, rollout) = (regime != Regime::Rollout, regime != Regime::OneStep);
            let bound = |allowed: bool, lambda: f64| if allowed { lambda } else { 0.0 };
            program.upper[pair] = bound(one_step, c.lambda_b);
            program.upper[n + pair] = bound(one_step && g_e, c.lambda_e);
            program.upper[2 * n + pair] = bound(rollout && g_kq, c.lambda_k);
            program.upper[3 * n + pair] = bound(rollout && g_kv, c.lambda_k);
        }
        for pair in 0..n {
            let entries = [(pair, 1.0), (n + pair, -1.0), (2 * n + pair, 1.0)];
            program.push_row(c.omega_q, c.omega_q, entries);
        }
        let mut arrivals: Vec<Vec<(usize, f64)>> = vec![Vec::new(); mdp.decision_states()];
        for pair in 0..n {
            for (s, p) in mdp.onward(pair) {
                arrivals[s].push((pair, p));
            }
        }
        for (s, arrivals) in arrivals.iter().enumerate() {
            let share = |pair: usize| self.d[pair] / self.d_s[s];
            let leaving = mdp.pairs_of(s).flat_map(|a| [(n + a, share(a)), (3 * n + a, share(a))]);
            let entering = arrivals.iter().map(|&(pair, p)| (pair, -mdp.gamma() * p * share(pair)));
            program.push_row(c.omega_v, c.omega_v, leaving.chain(entering));
        }
        match program.solve()? {
            Outcome::Optimal(z) => {
                let part = |i: usize| (0..n).map(|pair| z[i * n + pair] * self.d[pair]).collect();
                Ok(Some(Selections { u: part(0), v: part(1), w: part(2), x: part(3) }))
            }
            Outcome::Infeasible => Ok(None),
            Outcome::Unbounded => Err(TabularError::Solver {
                solver: "stationarity",
                what: "a feasibility problem was called unbounded".into(),
            }),
        }
    }

    /// How far selections are from being admissible and from balancing the objective, relative to the frequencies.
    /// This is the element of the detached update field that they select, computed from its definition.
    pub fn residual(&self, c: &Coefficients, z: &Selections) -> f64 {
        let mdp = &self.data.mdp;
        let mut worst = 0.0f64;
        let mut at_v: Vec<f64> = self.d_s.iter().map(|d| c.omega_v * d).collect();
        for pair in 0..mdp.pairs() {
            let d = self.d[pair];
            let [g_e, g_kq, g_kv] = self.tight[pair];
            let outside = |value: f64, lambda: f64, tight: bool| {
                let upper = if tight { lambda * d } else { 0.0 };
                (-value).max(value - upper).max(0.0)
            };
            let inadmissible = [
                outside(z.u[pair], c.lambda_b, true),
                outside(z.v[pair], c.lambda_e, g_e),
                outside(z.w[pair], c.lambda_k, g_kq),
                outside(z.x[pair], c.lambda_k, g_kv),
            ];
            let at_q = c.omega_q * d - z.u[pair] + z.v[pair] - z.w[pair];
            worst = inadmissible.iter().fold(worst.max(at_q.abs() / d), |m, x| m.max(x / d));
            at_v[mdp.state_of(pair)] -= z.v[pair] + z.x[pair];
            for (s, p) in mdp.onward(pair) {
                at_v[s] += mdp.gamma() * p * z.u[pair];
            }
        }
        at_v.iter().zip(&self.d_s).fold(worst, |m, (g, d)| m.max(g.abs() / d))
    }

    /// The selections of the rollout regime in closed form, where it applies: every continuation optimal
    /// (`delta_K = 0`), `lambda_K >= omega_Q`, and at every state enough frequency on optimal actions.
    pub fn rollout_selections(&self, c: &Coefficients) -> Option<Selections> {
        let mdp = &self.data.mdp;
        let n = mdp.pairs();
        if c.lambda_k < c.omega_q || self.tight.iter().any(|[_, g_kq, _]| !g_kq) {
            return None;
        }
        let mut x = vec![0.0; n];
        for s in 0..mdp.decision_states() {
            let optimal: f64 = mdp.pairs_of(s).filter(|&a| self.tight[a][0]).map(|a| self.d[a]).sum();
            if c.lambda_k * optimal < c.omega_v * self.d_s[s] {
                return None;
            }
            for a in mdp.pairs_of(s).filter(|&a| self.tight[a][0]) {
                x[a] = c.omega_v * self.d_s[s] * self.d[a] / optimal;
            }
        }
        let w = self.d.iter().map(|d| c.omega_q * d).collect();
        Some(Selections { u: vec![0.0; n], v: vec![0.0; n], w, x })
    }

    /// The total of the balance over all coordinates, `(1 - gamma) sum u + sum w + sum x`, which equals
    /// `omega_Q + omega_V` for balanced selections on data without absorbing states. Where pairs lead to absorbing
    /// states, their `u` counts in full, because nothing there can be shifted.
    pub fn aggregate(&self, z: &Selections) -> f64 {
        let mdp = &self.data.mdp;
        let sum = |x: &[f64]| x.iter().sum::<f64>();
        let through_u: f64 = (0..mdp.pairs())
            .map(|pair| {
                let stays: f64 = mdp.onward(pair).map(|(_, p)| p).sum();
                z.u[pair] * (1.0 - mdp.gamma() * stays)
            })
            .sum();
        through_u + sum(&z.w) + sum(&z.x)
    }
}
