//! Value iteration: the reference for every solver. It reads the MDP's rewards and probabilities and shares
//! no arithmetic with the solvers.

use crate::Mdp;

/// `(Q*, V*)` of an MDP, with one value of `V*` per decision state, to within `tolerance` in the maximum
/// norm.
///
/// Iterates `V <- max_a [R + gamma P V]` until the contraction bound `gamma / (1 - gamma) |V' - V|` is below
/// `tolerance`, or until rounding stops all progress.
pub fn value_iteration(mdp: &Mdp, tolerance: f64) -> (Vec<f64>, Vec<f64>) {
    value_iteration_from(mdp, vec![0.0; mdp.decision_states()], tolerance)
}

/// The same from given values. The fixed point does not depend on them, so this checks a solution: from the
/// correct values it stops after one or two sweeps, from wrong ones it converges to the correct ones.
pub fn value_iteration_from(mdp: &Mdp, mut v: Vec<f64>, tolerance: f64) -> (Vec<f64>, Vec<f64>) {
    let mut q = vec![0.0; mdp.pairs()];
    let mut before = f64::INFINITY;
    loop {
        let next = sweep(mdp, &v, &mut q);
        let change = crate::max_difference(&next, &v);
        v = next;
        let scale = v.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        let converged = mdp.gamma() / (1.0 - mdp.gamma()) * change <= tolerance;
        let rounding = change >= before && change <= 8.0 * f64::EPSILON * scale;
        if converged || rounding || change.is_nan() {
            let v = sweep(mdp, &v, &mut q);
            return (q, v);
        }
        before = change;
    }
}

/// Writes `R + gamma P V` into `q` and returns its maximum at every state.
fn sweep(mdp: &Mdp, v: &[f64], q: &mut [f64]) -> Vec<f64> {
    let (kernel, reward, gamma) = (mdp.kernel(), mdp.reward(), mdp.gamma());
    (0..v.len())
        .map(|s| {
            let mut best = f64::NEG_INFINITY;
            for pair in mdp.pairs_of(s) {
                let mut expected = 0.0;
                for (next, probability) in kernel.row(pair) {
                    if next < v.len() {
                        expected += probability * v[next];
                    }
                }
                q[pair] = reward[pair] + gamma * expected;
                if !(q[pair] <= best) {
                    best = q[pair];
                }
            }
            best
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_self_loop_is_worth_r_over_one_minus_gamma() {
        for gamma in [0.0, 0.5, 0.95, 0.999] {
            let mdp = Mdp::new(gamma, 1, &[vec![(-1.0, vec![(0, 1.0)])]]).unwrap();
            let exact = -1.0 / (1.0 - gamma);
            for start in [0.0, exact, 1e3] {
                let (_, v) = value_iteration_from(&mdp, vec![start], 1e-12);
                assert!((v[0] - exact).abs() <= 2e-12 * exact.abs(), "{gamma}: {}", v[0]);
            }
        }
    }
}
