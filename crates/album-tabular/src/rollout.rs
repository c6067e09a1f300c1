//! The K-step target `y_K` as an affine function of `V`.
//!
//! Evaluating it needs no matrix: with `W_0 = V` and `W_j = r_beta + T W_(j-1)`, where `T = gamma P_beta`,
//!
//! ```text
//! y_K = R + gamma P W_(K-1)
//! ```
//!
//! takes K products with sparse matrices. On stochastic data the matrix itself fills in as K grows, so it is
//! assembled only to write out a linear program.

use crate::mutation::{Mutation, planted};
use crate::sparse::{Csr, RowBuilder};
use crate::{EmpiricalMdp, Mdp, TabularError, policy};

/// Larger matrices (16 GB) are refused: on stochastic data rows fill in as K grows.
const MOST_NONZEROS: usize = 1 << 30;

/// `y_K` of every pair, by recursion or along recorded paths.
#[derive(Clone, Debug)]
pub struct Rollout {
    k: usize,
    /// `y_K = offset + last_steps W`.
    offset: Vec<f64>,
    last_steps: Csr,
    /// `W = inner applied K - 1 times`; `None` for recorded paths, where `W = V`.
    inner: Option<Inner>,
}

/// One step of the rollout policy: `W -> r_beta + T W`.
#[derive(Clone, Debug)]
struct Inner {
    r_beta: Vec<f64>,
    t: Csr,
}

/// `y_K(s,a) = offset(s,a) + sum_s' weight(s,a,s') V(s')`, one row per pair, one column per decision state.
#[derive(Clone, Debug)]
pub struct RolloutMatrix {
    /// The discounted reward along the way.
    pub offset: Vec<f64>,
    /// The discounted distribution of the rollout's final state; absorbing states are left out (V = 0).
    pub weight: Csr,
}

impl Rollout {
    /// The expected rollout: the pair's own action, then `k - 1` actions of `policy` (one probability per pair).
    pub fn expected(mdp: &Mdp, policy: &[f64], k: usize) -> Result<Self, TabularError> {
        check_k(k)?;
        let n = mdp.decision_states();
        let gamma = if planted(Mutation::PowerOfGamma) { 1.0 } else { mdp.gamma() };
        let mut last_steps = Csr::with_capacity(n, mdp.pairs(), mdp.kernel().nonzeros());
        for pair in 0..mdp.pairs() {
            mdp.onward(pair).for_each(|(next, p)| last_steps.push(next, gamma * p));
            last_steps.end_row();
        }
        let r_beta =
            (0..n).map(|s| mdp.pairs_of(s).map(|pair| policy[pair] * mdp.reward()[pair]).sum()).collect();
        let inner = (k > 1).then(|| Inner { r_beta, t: policy::discounted_kernel(mdp, policy) });
        Ok(Rollout { k, offset: mdp.reward().to_vec(), last_steps, inner })
    }

    /// The recorded rollout: for each pair one occurrence in the data, followed for `k` steps. The first
    /// occurrence with `k` steps left in its trajectory is taken, or else the one with the most. If that
    /// trajectory was truncated before `k` steps, the path continues at the best row that starts in its final
    /// state.
    pub fn recorded(data: &EmpiricalMdp, k: usize) -> Result<Self, TabularError> {
        let left = steps_left(data);
        let mut places = vec![None; data.mdp.pairs()];
        for row in 0..data.rows() {
            prefer(&mut places[data.row_pair[row] as usize], row, &left, k);
        }
        let places: Vec<usize> = places.into_iter().flatten().collect();
        Self::recorded_from(data, k, &places)
    }

    /// The recorded rollout from chosen occurrences: `places[pair]` is a row of the data with that pair.
    pub fn recorded_from(data: &EmpiricalMdp, k: usize, places: &[usize]) -> Result<Self, TabularError> {
        check_k(k)?;
        let mdp = &data.mdp;
        let n = mdp.decision_states();
        let left = steps_left(data);
        let mut place_of_state = vec![None; n];
        for row in 0..data.rows() {
            prefer(&mut place_of_state[mdp.state_of(data.row_pair[row] as usize)], row, &left, k);
        }
        let mut offset = vec![0.0; mdp.pairs()];
        let mut weight = Csr::new(n);
        for (offset, &start) in offset.iter_mut().zip(places) {
            let mut factor = if planted(Mutation::PowerOfGamma) { 1.0 / mdp.gamma() } else { 1.0 };
            let mut place = Some(start);
            let mut last = n;
            for _ in 0..k {
                let Some(row) = place else { break };
                *offset += factor * mdp.reward()[data.row_pair[row] as usize];
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
        Ok(Rollout { k, offset, last_steps: weight, inner: None })
    }

    /// Number of pairs.
    pub fn pairs(&self) -> usize {
        self.offset.len()
    }

    /// Number of decision states.
    pub fn states(&self) -> usize {
        self.last_steps.columns()
    }

    /// `y_K` of every pair for the given values of the decision states.
    pub fn targets(&self, v: &[f64]) -> Vec<f64> {
        let too_low = if planted(Mutation::TargetTooLow) { 1e-3 } else { 0.0 };
        let ends = |w: &[f64]| {
            (0..self.pairs()).map(|p| self.offset[p] + self.last_steps.row_dot(p, w) - too_low).collect()
        };
        let Some(Inner { r_beta, t }) = &self.inner else { return ends(v) };
        let mut w = v.to_vec();
        for _ in 1..self.k {
            w = (0..w.len()).map(|s| r_beta[s] + t.row_dot(s, &w)).collect();
        }
        ends(&w)
    }

    /// [`targets`](Self::targets) at `V = 0`: the discounted rewards along the way.
    pub fn offsets(&self) -> Vec<f64> {
        self.targets(&vec![0.0; self.states()])
    }

    /// `sum_(s,a) x(s,a) dy_K(s,a)/dV`: the gradient of weighted targets with respect to the values.
    pub fn flow_back(&self, x: &[f64]) -> Vec<f64> {
        let mut flow = self.last_steps.multiply_transposed(x);
        if let Some(Inner { t, .. }) = &self.inner {
            for _ in 1..self.k {
                flow = t.multiply_transposed(&flow);
            }
        }
        flow
    }

    /// Assembles the matrix. Refused above 2^30 nonzeros.
    pub fn assemble(&self) -> Result<RolloutMatrix, TabularError> {
        let offset = self.offsets();
        let Some(Inner { t, .. }) = &self.inner else {
            return Ok(RolloutMatrix { offset, weight: self.last_steps.clone() });
        };
        let n = self.states();
        let mut row = RowBuilder::new(n);
        // T^j and T^(j+1) in two alternating buffers.
        let (mut power, mut next) = (identity(n), Csr::new(n));
        for _ in 1..self.k {
            next.clear();
            for s in 0..n {
                t.row(s).for_each(|(mid, a)| add_scaled(&mut row, &power, mid, a));
                row.finish_unsorted(&mut next);
                check_size(&next, self.k)?;
            }
            std::mem::swap(&mut power, &mut next);
        }
        let mut weight = Csr::with_capacity(n, self.pairs(), 2 * power.nonzeros());
        for pair in 0..self.pairs() {
            self.last_steps.row(pair).for_each(|(next, a)| add_scaled(&mut row, &power, next, a));
            row.finish(&mut weight);
            check_size(&weight, self.k)?;
        }
        Ok(RolloutMatrix { offset, weight })
    }
}

/// Steps from each row to the end of its trajectory, itself included; infinite after absorption, at value 0.
fn steps_left(data: &EmpiricalMdp) -> Vec<usize> {
    let mut left = vec![0usize; data.rows()];
    for row in (0..data.rows()).rev() {
        left[row] = match data.row_end[row] {
            true if data.ends_absorbed(row) => usize::MAX,
            true => 1,
            false => left[row + 1].saturating_add(1),
        };
    }
    left
}

/// Replaces an occurrence with fewer than `k` steps left by one with more.
fn prefer(best: &mut Option<usize>, row: usize, left: &[usize], k: usize) {
    if best.is_none_or(|old| left[old] < k && left[row].min(k) > left[old]) {
        *best = Some(row);
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
    Err(TabularError::RolloutMatrix { k, most: MOST_NONZEROS })
}

fn check_k(k: usize) -> Result<(), TabularError> {
    if k >= 1 { Ok(()) } else { Err(TabularError::RolloutLength(0)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::max_difference;
    use crate::random::{random_dataset, random_mdp, random_policy};
    use crate::theory::path_sum;

    #[test]
    fn recursion_matrix_and_sum_over_paths_agree() {
        for seed in 0..10 {
            let mdp = random_mdp(seed, 6, 3, 2, 0.9);
            let policy = random_policy(seed, &mdp);
            let v: Vec<f64> = (0..6).map(|s| (s as f64).sin() * 3.0).collect();
            for k in 1..=4 {
                let rollout = Rollout::expected(&mdp, &policy, k).unwrap();
                let targets = rollout.targets(&v);
                let matrix = rollout.assemble().unwrap();
                for (pair, target) in targets.iter().enumerate() {
                    let exact = path_sum(&mdp, &policy, pair, k, &v);
                    assert!((target - exact).abs() < 1e-12, "seed {seed}, K {k}, pair {pair}");
                    let assembled = matrix.offset[pair] + matrix.weight.row_dot(pair, &v);
                    assert!((assembled - exact).abs() < 1e-12, "seed {seed}, K {k}, pair {pair}");
                }
                let x: Vec<f64> = (0..mdp.pairs()).map(|p| (p as f64).cos()).collect();
                assert!(
                    max_difference(&rollout.flow_back(&x), &matrix.weight.multiply_transposed(&x)) < 1e-12
                );
            }
        }
    }

    #[test]
    fn one_step_is_the_bellman_target() {
        let mdp = random_mdp(3, 20, 3, 3, 0.95);
        let v: Vec<f64> = (0..20).map(f64::from).collect();
        let targets = Rollout::expected(&mdp, &random_policy(1, &mdp), 1).unwrap().targets(&v);
        for (pair, target) in targets.iter().enumerate() {
            assert!((target - mdp.y_1(pair, &v)).abs() < 1e-12);
        }
    }

    #[test]
    fn recorded_rollouts_follow_one_trajectory_and_go_on_where_it_was_cut() {
        let mut data = crate::TabularDataset::default();
        for s in 0..5 {
            data.push(s, 0, 1.0 + s as f64, s + 1, s == 4); // 5 is absorbing
        }
        data.push(10, 0, 1.0, 0, true); // truncated in a state that other rows leave
        let e = EmpiricalMdp::new(&data, 0.5).unwrap();
        let targets = Rollout::recorded(&e, 3).unwrap().targets(&[100.0; 6]);
        assert_eq!(targets[0], 1.0 + 0.5 * 2.0 + 0.25 * 3.0 + 0.125 * 100.0);
        assert_eq!(targets[3], 4.0 + 0.5 * 5.0); // absorbed: nothing follows
        assert_eq!(targets[5], 1.0 + 0.5 * (1.0 + 0.5 * 2.0) + 0.125 * 100.0); // truncated in 0, continues there
    }

    #[test]
    fn recorded_and_expected_rollouts_agree_on_single_action_data() {
        let mdp = random_mdp(8, 30, 1, 1, 0.9);
        let data = random_dataset(8, &mdp, 60, 40);
        let e = EmpiricalMdp::new(&data, 0.9).unwrap();
        let v: Vec<f64> = (0..e.mdp.decision_states()).map(|s| (s as f64).cos()).collect();
        let recorded = Rollout::recorded(&e, 4).unwrap().targets(&v);
        let expected = Rollout::expected(&e.mdp, &e.behaviour, 4).unwrap().targets(&v);
        assert!(max_difference(&recorded, &expected) < 1e-12);
    }

    #[test]
    fn k_of_zero_is_refused() {
        let mdp = random_mdp(3, 3, 1, 1, 0.5);
        let message = Rollout::expected(&mdp, &random_policy(1, &mdp), 0).unwrap_err().to_string();
        assert!(message.contains("K is 0"), "{message}");
    }
}
