//! An independent judge of a solution: it sees the program and a point, and shares no code with the solvers.

use crate::Lblp;
use serde::Serialize;

/// How far a point and its dual variables are from being optimal. All numbers are 0 for an exact solution.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Certificate {
    /// The largest violation of a row.
    pub primal: f64,
    /// The largest violation of each family: B, E, KQ, KV.
    pub primal_by_family: [f64; 4],
    /// The largest violation of `c + A' lambda = 0` or `lambda >= 0`, relative to the largest weight in `c`.
    pub dual: f64,
    /// The largest `lambda_i |slack_i|`, relative to the largest weight in `c`.
    pub slackness: f64,
    /// `|c'x + b'lambda|` relative to the sum of the terms `|c_j x_j|`.
    pub gap: f64,
}

/// Judges the point `(q, v)` with the dual variables `lambda`, one per row.
pub fn certify(lblp: &Lblp, q: &[f64], v: &[f64], lambda: &[f64]) -> Certificate {
    let program = lblp.program();
    let x: Vec<f64> = q.iter().chain(v).copied().collect();
    let largest_weight = program.objective.iter().fold(0.0f64, |m, c| m.max(*c));

    let mut primal_by_family = [0.0f64; 4];
    let mut slackness = 0.0f64;
    for i in 0..program.matrix.rows() {
        let excess = program.matrix.row_dot(i, &x) - program.row_upper[i];
        let family = &mut primal_by_family[i / lblp.pairs()];
        *family = worse(*family, excess);
        slackness = worse(slackness, (lambda[i] * excess).abs());
    }

    let flow = program.matrix.multiply_transposed(lambda);
    let stationarity = flow.iter().zip(&program.objective).fold(0.0, |m, (f, c)| worse(m, (c + f).abs()));
    let negativity = lambda.iter().fold(0.0, |m, l| worse(m, -l));

    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let primal_objective = dot(&program.objective, &x);
    let dual_objective = -dot(&program.row_upper, lambda);
    // Weights are frequencies, so the objective may be far below 1; a gap is judged against what it is made of.
    let size: f64 = program.objective.iter().zip(&x).map(|(c, x)| (c * x).abs()).sum();
    let gap = (primal_objective - dual_objective).abs() / size.max(f64::MIN_POSITIVE);

    Certificate {
        primal: primal_by_family.iter().copied().fold(0.0, worse),
        primal_by_family,
        dual: worse(stationarity, negativity) / largest_weight,
        slackness: slackness / largest_weight,
        gap,
    }
}

/// The larger one; NaN counts as worst, so that it can never pass for a small number.
fn worse(a: f64, b: f64) -> f64 {
    if b > a || b.is_nan() { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{random_mdp, random_policy};
    use crate::{Rollout, Solver, Weights, solve};

    #[test]
    fn each_kind_of_damage_is_seen() {
        let mdp = random_mdp(4, 15, 3, 2, 0.9);
        let rollout = Rollout::expected(&mdp, &random_policy(4, &mdp), 3).unwrap();
        let lblp = Lblp::new(&mdp, &Weights::uniform(&mdp, 1.0, 1.0), &rollout).unwrap();
        let s = solve(&mdp, &lblp, Solver::Bellman).unwrap();
        let c = &s.certificate;
        for (what, found) in
            [("primal", c.primal), ("dual", c.dual), ("slackness", c.slackness), ("gap", c.gap)]
        {
            assert!((0.0..1e-12).contains(&found), "{what} {found}");
        }

        // A value that is too low breaks rows, one that is too high opens a gap.
        let mut v = s.v.clone();
        v[3] -= 1e-3;
        assert!(certify(&lblp, &s.q, &v, &s.duals).primal_by_family[1] > 9e-4);
        v[3] += 2e-3;
        let high = certify(&lblp, &s.q, &v, &s.duals);
        assert!(high.gap > 1e-6 && high.slackness > 1e-6);
        // A dual variable that is off, and one of the wrong sign.
        let mut duals = s.duals.clone();
        duals[0] += 1e-3;
        assert!(certify(&lblp, &s.q, &s.v, &duals).dual > 9e-4);
        duals[0] = -1.0;
        assert!(certify(&lblp, &s.q, &s.v, &duals).dual >= 1.0);
        // NaN is the worst of all.
        v[3] = f64::NAN;
        assert!(certify(&lblp, &s.q, &v, &s.duals).primal.is_nan());
    }
}
