//! An independent check of a solution: it takes the program and a point, and shares no code with the solvers.
//! The rollout rows are checked by the K-step recursion, so no matrix is assembled.

use crate::{Family, Lblp, PerFamily};
use serde::Serialize;

/// How far a point and its dual variables are from being optimal. All numbers are 0 for an exact solution.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Certificate {
    /// The largest violation of a row.
    pub primal: f64,
    /// The largest violation of each family.
    pub primal_by_family: PerFamily<f64>,
    /// The largest violation of `c + A' lambda = 0` or `lambda >= 0`, relative to the largest weight in `c`.
    pub dual: f64,
    /// The largest `lambda_i |slack_i|`, relative to the largest weight in `c`.
    pub slackness: f64,
    /// `|c'x + b'lambda|` relative to the sum of the terms `|c_j x_j|`.
    pub gap: f64,
}

/// Checks the point `(q, v)` with the dual variables `lambda`, one per row.
pub fn certify(lblp: &Lblp<'_>, q: &[f64], v: &[f64], lambda: &PerFamily<Vec<f64>>) -> Certificate {
    let (mdp, weights) = (lblp.mdp(), lblp.weights());
    let largest_weight = weights.c_q.iter().chain(&weights.c_v).fold(0.0f64, |m, c| m.max(*c));
    let (y_k, offsets) = (lblp.rollout().targets(v), lblp.rollout().offsets());

    let mut primal_by_family = PerFamily::default();
    let (mut slackness, mut negativity, mut dual_objective) = (0.0, 0.0, 0.0);
    // c + A' lambda, at Q and at V; the contribution through y_K is added at the end.
    let (mut at_q, mut at_v) = (weights.c_q.clone(), weights.c_v.clone());
    let mut at_y_k = vec![0.0; q.len()];
    for family in Family::ALL {
        let t = family.terms();
        let worst = &mut primal_by_family[family];
        for (pair, &lambda) in lambda[family].iter().enumerate() {
            let s = mdp.state_of(pair);
            let mut excess = t.q * q[pair] + t.v * v[s];
            if t.y_1 != 0.0 {
                let successors = mdp.kernel().row(pair).filter(|x| x.0 < v.len());
                let expected: f64 = successors.clone().map(|(next, p)| p * v[next]).sum();
                excess += t.y_1 * (mdp.reward()[pair] + mdp.gamma() * expected);
                dual_objective += t.y_1 * mdp.reward()[pair] * lambda;
                if lambda != 0.0 {
                    successors.for_each(|(next, p)| at_v[next] += t.y_1 * mdp.gamma() * p * lambda);
                }
            }
            if t.y_k != 0.0 {
                excess += t.y_k * y_k[pair];
                dual_objective += t.y_k * offsets[pair] * lambda;
                at_y_k[pair] += t.y_k * lambda;
            }
            at_q[pair] += t.q * lambda;
            at_v[s] += t.v * lambda;
            *worst = worse(*worst, excess);
            slackness = worse(slackness, (lambda * excess).abs());
            negativity = worse(negativity, -lambda);
        }
    }
    if at_y_k.iter().any(|&x| x != 0.0) {
        at_v.iter_mut().zip(lblp.rollout().flow_back(&at_y_k)).for_each(|(x, flow)| *x += flow);
    }
    let stationarity = at_q.iter().chain(&at_v).fold(0.0, |m, x| worse(m, x.abs()));

    // Weights are frequencies, so the objective may be far below 1; the gap is relative to the size of its
    // terms.
    let terms = || weights.c_q.iter().zip(q).chain(weights.c_v.iter().zip(v)).map(|(c, x)| c * x);
    let size: f64 = terms().map(f64::abs).sum();
    let gap = (terms().sum::<f64>() - dual_objective).abs() / size.max(f64::MIN_POSITIVE);

    Certificate {
        primal: primal_by_family.iter().copied().fold(0.0, worse),
        primal_by_family,
        dual: worse(stationarity, negativity) / largest_weight,
        slackness: slackness / largest_weight,
        gap,
    }
}

/// The larger one; NaN counts as worst, so that it never passes for a small number.
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
        let lblp = Lblp::new(&mdp, Weights::uniform(&mdp, 1.0, 1.0), rollout).unwrap();
        let s = solve(&lblp, Solver::Bellman).unwrap();
        let c = &s.certificate;
        for (what, found) in
            [("primal", c.primal), ("dual", c.dual), ("slackness", c.slackness), ("gap", c.gap)]
        {
            assert!((0.0..1e-12).contains(&found), "{what} {found}");
        }

        // A value that is too low violates rows; one that is too high opens a gap.
        let mut v = s.v.clone();
        v[3] -= 1e-3;
        assert!(certify(&lblp, &s.q, &v, &s.duals).primal_by_family.e > 9e-4);
        v[3] += 2e-3;
        let high = certify(&lblp, &s.q, &v, &s.duals);
        assert!(high.gap > 1e-6 && high.slackness > 1e-6);
        // A wrong dual variable, and one of the wrong sign.
        let mut duals = s.duals.clone();
        duals.b[0] += 1e-3;
        assert!(certify(&lblp, &s.q, &s.v, &duals).dual > 9e-4);
        duals.b[0] = -1.0;
        assert!(certify(&lblp, &s.q, &s.v, &duals).dual >= 1.0);
        // NaN is the worst of all.
        v[3] = f64::NAN;
        assert!(certify(&lblp, &s.q, &v, &s.duals).primal.is_nan());
    }

    /// The same numbers from the assembled program, for points and multipliers far from optimal.
    #[test]
    fn the_recursion_judges_as_the_assembled_rows_do() {
        for seed in 0..8 {
            let mdp = random_mdp(seed, 12, 3, 3, 0.9);
            let rollout = Rollout::expected(&mdp, &random_policy(seed, &mdp), 4).unwrap();
            let lblp = Lblp::new(&mdp, Weights::uniform(&mdp, 0.5, 0.7), rollout).unwrap();
            let program = lblp.assemble().unwrap();
            let n = mdp.pairs();
            let noise = |n: usize, phase: f64| -> Vec<f64> {
                (0..n).map(|i| ((i * i) as f64 * 0.37 + phase + seed as f64).sin()).collect()
            };
            let (q, v) = (noise(n, 0.0), noise(12, 1.0));
            let duals = PerFamily::new(|family| noise(n, 2.0 + family as usize as f64));
            let found = certify(&lblp, &q, &v, &duals);
            let x: Vec<f64> = q.iter().chain(&v).copied().collect();
            let lambda: Vec<f64> = duals.iter().flatten().copied().collect();
            let excess: Vec<f64> =
                (0..4 * n).map(|i| program.matrix.row_dot(i, &x) - program.row_upper[i]).collect();
            for (family, rows) in Family::ALL.into_iter().zip(excess.chunks(n)) {
                let worst = rows.iter().copied().fold(0.0, f64::max);
                assert!((found.primal_by_family[family] - worst).abs() < 1e-12, "{family:?}");
            }
            let flow = program.matrix.multiply_transposed(&lambda);
            let stationarity =
                flow.iter().zip(&program.objective).map(|(f, c)| (c + f).abs()).fold(0.0, f64::max);
            let negativity = lambda.iter().fold(0.0f64, |m, l| m.max(-l));
            assert!((found.dual - stationarity.max(negativity) / 0.7).abs() < 1e-11);
            let slackness = lambda.iter().zip(&excess).map(|(l, e)| (l * e).abs()).fold(0.0, f64::max);
            assert!((found.slackness - slackness / 0.7).abs() < 1e-11);
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            let size: f64 = program.objective.iter().zip(&x).map(|(c, x)| (c * x).abs()).sum();
            let gap = (dot(&program.objective, &x) + dot(&program.row_upper, &lambda)).abs() / size;
            assert!((found.gap - gap).abs() < 1e-11);
        }
    }
}
