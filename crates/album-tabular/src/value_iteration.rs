//! Value iteration: the reference that every other solver is compared with.

use crate::Mdp;

/// `(Q*, V*)` of an MDP, `V*` one value per decision state, to within `tolerance` in the largest norm.
///
/// Iterates `V <- max_a [R + gamma P V]` until the contraction bound `gamma / (1 - gamma) |V' - V|` is below
/// `tolerance`, or until rounding stops all progress.
pub fn value_iteration(mdp: &Mdp, tolerance: f64) -> (Vec<f64>, Vec<f64>) {
    let mut v = vec![0.0; mdp.decision_states()];
    let mut q = vec![0.0; mdp.pairs()];
    let mut before = f64::INFINITY;
    loop {
        backup(mdp, &v, &mut q);
        let next = mdp.max_over_actions(&q);
        let change = crate::max_difference(&next, &v);
        v = next;
        let scale = v.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        let converged = mdp.gamma() / (1.0 - mdp.gamma()) * change <= tolerance;
        let rounding = change >= before && change <= 8.0 * f64::EPSILON * scale;
        if converged || rounding {
            backup(mdp, &v, &mut q);
            let v = mdp.max_over_actions(&q);
            return (q, v);
        }
        before = change;
    }
}

fn backup(mdp: &Mdp, v: &[f64], q: &mut [f64]) {
    for (pair, q) in q.iter_mut().enumerate() {
        *q = mdp.y_1(pair, v);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_self_loop_is_worth_r_over_one_minus_gamma() {
        for gamma in [0.0, 0.5, 0.95, 0.999] {
            let mdp = Mdp::new(gamma, 1, &[vec![(-1.0, vec![(0, 1.0)])]]).unwrap();
            let (_, v) = value_iteration(&mdp, 1e-12);
            let exact = -1.0 / (1.0 - gamma);
            assert!((v[0] - exact).abs() <= 2e-12 * exact.abs(), "{gamma}: {}", v[0]);
        }
    }
}
