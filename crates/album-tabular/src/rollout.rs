//! The K-step target `y_K` as an affine function of `V`.

use crate::sparse::{Csr, RowBuilder};
use crate::{EmpiricalMdp, Mdp, TabularError, policy};

/// More nonzeros than this (16 GB of them) are refused: on stochastic data rows fill up as K grows.
const MOST_NONZEROS: usize = 1 << 30;

/// `y_K(s,a) = offset(s,a) + sum_s' weight(s,a,s') V(s')`, one row per pair, one column per decision state.
#[derive(Clone, Debug)]
pub struct Rollout {
    /// The discounted reward on the way.
    pub offset: Vec<f64>,
    /// The discounted distribution of the state where the rollout stops; absorbing states are left out (V = 0).
    pub weight: Csr,
}

impl Rollout {
    /// The expected rollout: the pair's own action, then `k - 1` actions of `policy` (one probability per pair).
    ///
    /// With `W_0 = V`, `y_k = R + gamma P W_(k-1)` and `W_k(s) = sum_a beta(a|s) y_k(s,a)`, so
    /// `W_k = r_beta + T W_(k-1)` for `T = gamma P_beta`, and `y_K = R + gamma P (sum_(j<K-1) T^j r_beta + T^(K-1) V)`.
    pub fn expected(mdp: &Mdp, policy: &[f64], k: usize) -> Result<Self, TabularError> {
        check_k(k)?;
        let n = mdp.decision_states();
        let t = policy::discounted_kernel(mdp, policy);
        let r_beta: Vec<f64> =
            (0..n).map(|s| mdp.pairs_of(s).map(|pair| policy[pair] * mdp.reward()[pair]).sum()).collect();
        let mut row = RowBuilder::new(n);
        let mut offset = vec![0.0; n];
        // T^j, and the next one under construction; two buffers that take turns.
        let (mut power, mut next) = (identity(n), Csr::new(n));
        for _ in 1..k {
            offset = (0..n).map(|s| r_beta[s] + t.row_dot(s, &offset)).collect();
            next.clear();
            for s in 0..n {
                t.row(s).for_each(|(mid, a)| add_scaled(&mut row, &power, mid, a));
                row.finish_unsorted(&mut next);
                check_size(&next, k)?;
            }
            std::mem::swap(&mut power, &mut next);
        }
        let mut weight = Csr::with_capacity(n, mdp.pairs(), 2 * power.nonzeros());
        let mut y_offset = Vec::with_capacity(mdp.pairs());
        for pair in 0..mdp.pairs() {
            mdp.onward(pair).for_each(|(next, p)| add_scaled(&mut row, &power, next, mdp.gamma() * p));
            row.finish(&mut weight);
            check_size(&weight, k)?;
            y_offset.push(mdp.y_1(pair, &offset));
        }
        Ok(Rollout { offset: y_offset, weight })
    }

    /// The recorded rollout: for each pair one place of the data where it occurs, followed for `k` steps. The first
    /// place with `k` steps left in its trajectory is taken, or else the one with the most. Where that trajectory was
    /// cut off before `k` steps, the path goes on at the best place that starts in the state where it was cut.
    pub fn recorded(data: &EmpiricalMdp, k: usize) -> Result<Self, TabularError> {
        check_k(k)?;
        let mdp = &data.mdp;
        let n = mdp.decision_states();
        // Steps from each row to the end of its trajectory, itself included; absorbed ends go on forever at value 0.
        let mut left = vec![0usize; data.rows()];
        for row in (0..data.rows()).rev() {
            left[row] = match data.row_end[row] {
                true if data.ends_absorbed(row) => usize::MAX,
                true => 1,
                false => left[row + 1].saturating_add(1),
            };
        }
        let mut place_of_pair: Vec<Option<usize>> = vec![None; mdp.pairs()];
        let mut place_of_state: Vec<Option<usize>> = vec![None; n];
        for row in 0..data.rows() {
            let pair = data.row_pair[row] as usize;
            for best in [&mut place_of_pair[pair], &mut place_of_state[mdp.state_of(pair)]] {
                if best.is_none_or(|old| left[old] < k && left[row].min(k) > left[old]) {
                    *best = Some(row);
                }
            }
        }
        let mut offset = vec![0.0; mdp.pairs()];
        let mut weight = Csr::new(n);
        for pair in 0..mdp.pairs() {
            let mut factor = 1.0;
            let mut place = place_of_pair[pair];
            let mut last = n;
            for _ in 0..k {
                let Some(row) = place else { break };
                offset[pair] += factor * mdp.reward()[data.row_pair[row] as usize];
                factor *= mdp.gamma();
                last = data.row_next[row] as usize;
                place = if data.row_end[row] {
                    place_of_state.get(last).copied().flatten()
                } else {
                    Some(row + 1)
                };
            }
            if last < n {
                weight.push(last, factor);
            }
            weight.end_row();
        }
        Ok(Rollout { offset, weight })
    }

    /// `y_K(s,a)` for the given values of the decision states.
    pub fn y_k(&self, pair: usize, v: &[f64]) -> f64 {
        self.offset[pair] + self.weight.row_dot(pair, v)
    }
}

fn identity(n: usize) -> Csr {
    let mut matrix = Csr::with_capacity(n, n, n);
    for s in 0..n {
        matrix.push(s, 1.0);
        matrix.end_row();
    }
    matrix
}

/// Adds `a * power(s, .)` to the row.
fn add_scaled(row: &mut RowBuilder, power: &Csr, s: usize, a: f64) {
    power.row(s).for_each(|(column, value)| row.add(column, a * value));
}

fn check_size(matrix: &Csr, k: usize) -> Result<(), TabularError> {
    if matrix.nonzeros() <= MOST_NONZEROS {
        return Ok(());
    }
    Err(TabularError::TooLarge(format!(
        "the K = {k} step rollout has more than {MOST_NONZEROS} nonzeros on this data; choose a smaller K"
    )))
}

fn check_k(k: usize) -> Result<(), TabularError> {
    if k >= 1 { Ok(()) } else { Err(TabularError::RolloutLength(k)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{random_dataset, random_mdp, random_policy};

    /// E[sum gamma^t R + gamma^K V(s_K)] by recursion on numbers, without any matrix.
    fn y_by_recursion(mdp: &Mdp, policy: &[f64], pair: usize, k: usize, v: &[f64]) -> f64 {
        let after: f64 = mdp
            .onward(pair)
            .map(|(s, p)| {
                let value = if k == 1 {
                    v[s]
                } else {
                    mdp.pairs_of(s)
                        .map(|next| policy[next] * y_by_recursion(mdp, policy, next, k - 1, v))
                        .sum()
                };
                p * value
            })
            .sum();
        mdp.reward()[pair] + mdp.gamma() * after
    }

    #[test]
    fn the_matrix_form_equals_the_recursion() {
        for seed in 0..10 {
            let mdp = random_mdp(seed, 6, 3, 2, 0.9);
            let policy = random_policy(seed, &mdp);
            let v: Vec<f64> = (0..6).map(|s| (s as f64).sin() * 3.0).collect();
            for k in 1..=4 {
                let rollout = Rollout::expected(&mdp, &policy, k).unwrap();
                for pair in 0..mdp.pairs() {
                    let exact = y_by_recursion(&mdp, &policy, pair, k, &v);
                    assert!((rollout.y_k(pair, &v) - exact).abs() < 1e-12, "seed {seed}, K {k}, pair {pair}");
                }
            }
        }
    }

    #[test]
    fn one_step_is_the_bellman_target() {
        let mdp = random_mdp(3, 20, 3, 3, 0.95);
        let v: Vec<f64> = (0..20).map(f64::from).collect();
        let rollout = Rollout::expected(&mdp, &random_policy(1, &mdp), 1).unwrap();
        for pair in 0..mdp.pairs() {
            assert!((rollout.y_k(pair, &v) - mdp.y_1(pair, &v)).abs() < 1e-12);
        }
    }

    #[test]
    fn recorded_rollouts_follow_one_trajectory_and_go_on_where_it_was_cut() {
        let mut data = crate::TabularDataset::default();
        for s in 0..5 {
            data.push(s, 0, 1.0 + s as f64, s + 1, s == 4); // 5 is absorbing
        }
        data.push(10, 0, 1.0, 0, true); // cut where the data goes on
        let e = EmpiricalMdp::new(&data, 0.5).unwrap();
        let rollout = Rollout::recorded(&e, 3).unwrap();
        let v = vec![100.0; 6];
        assert_eq!(rollout.y_k(0, &v), 1.0 + 0.5 * 2.0 + 0.25 * 3.0 + 0.125 * 100.0);
        assert_eq!(rollout.y_k(3, &v), 4.0 + 0.5 * 5.0); // absorbed: nothing follows
        assert_eq!(rollout.y_k(5, &v), 1.0 + 0.5 * (1.0 + 0.5 * 2.0) + 0.125 * 100.0); // cut in 0, goes on there
    }

    #[test]
    fn recorded_and_expected_rollouts_agree_on_single_action_data() {
        let mdp = random_mdp(8, 30, 1, 1, 0.9);
        let data = random_dataset(8, &mdp, 60, 40);
        let e = EmpiricalMdp::new(&data, 0.9).unwrap();
        let v: Vec<f64> = (0..e.mdp.decision_states()).map(|s| (s as f64).cos()).collect();
        let recorded = Rollout::recorded(&e, 4).unwrap();
        let expected = Rollout::expected(&e.mdp, &e.behaviour, 4).unwrap();
        for pair in 0..e.mdp.pairs() {
            assert!((recorded.y_k(pair, &v) - expected.y_k(pair, &v)).abs() < 1e-12);
        }
    }

    #[test]
    fn k_of_zero_is_refused() {
        let mdp = random_mdp(3, 3, 1, 1, 0.5);
        let message = Rollout::expected(&mdp, &random_policy(1, &mdp), 0).unwrap_err().to_string();
        assert!(message.contains("K is 0"), "{message}");
    }
}
