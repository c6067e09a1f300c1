//! The empirical MDP of a dataset.
//!
//! Pairs are the (state, action) pairs that the data holds, `R_D` and `P_D` are averages over the rows of a pair, the
//! behaviour policy is the share of each action among the rows of its state. States that the data reaches but never
//! leaves are absorbing, with value 0. Nothing outside the data is ever asked for.

use crate::sparse::{Csr, RowBuilder};
use crate::{Mdp, TabularDataset, TabularError};

/// The MDP that a dataset induces, with what ties it to the data.
#[derive(Clone, Debug)]
pub struct EmpiricalMdp {
    /// States, pairs, `R_D`, `P_D` and gamma.
    pub mdp: Mdp,
    /// The user's number of each state; decision states first, then absorbing ones, each ascending.
    pub state_labels: Vec<i64>,
    /// The user's number of each pair's action.
    pub pair_actions: Vec<i64>,
    /// `n_D(s,a)`: rows of each pair.
    pub counts: Vec<u64>,
    /// `beta(a|s)`: share of the pair among the rows of its state.
    pub behaviour: Vec<f64>,
    /// The pair of each row of the data.
    pub row_pair: Vec<u32>,
    /// The successor of each row of the data, as a state of `mdp`.
    pub row_next: Vec<u32>,
    /// Where recorded trajectories end.
    pub row_end: Vec<bool>,
}

impl EmpiricalMdp {
    /// Counts and averages `data`.
    pub fn new(data: &TabularDataset, gamma: f64) -> Result<Self, TabularError> {
        data.check("dataset")?;
        if data.len() > u32::MAX as usize {
            return Err(TabularError::TooLarge(format!(
                "{} rows; at most 2^32 - 1 can be indexed",
                data.len()
            )));
        }
        let (state_labels, decision_states, row_state, row_next) = number_states(data);
        let rows_of = Buckets::new(&row_state, decision_states);

        // Pairs: the distinct actions of each state, ascending.
        let mut first_pair = vec![0];
        let mut pair_actions = Vec::new();
        let mut row_pair = vec![0u32; data.len()];
        let mut actions: Vec<i64> = Vec::new();
        for s in 0..decision_states {
            actions.clear();
            for &row in rows_of.get(s) {
                let action = data.actions[row as usize];
                if let Err(place) = actions.binary_search(&action) {
                    actions.insert(place, action);
                }
            }
            for &row in rows_of.get(s) {
                let place = actions.partition_point(|&a| a < data.actions[row as usize]);
                row_pair[row as usize] = (pair_actions.len() + place) as u32;
            }
            pair_actions.extend_from_slice(&actions);
            first_pair.push(pair_actions.len());
        }

        let rows_of = Buckets::new(&row_pair, pair_actions.len());
        let mut reward = Vec::with_capacity(pair_actions.len());
        let mut counts = Vec::with_capacity(pair_actions.len());
        let mut kernel = Csr::new(state_labels.len());
        let mut successors = RowBuilder::new(state_labels.len());
        for pair in 0..pair_actions.len() {
            let rows = rows_of.get(pair);
            let n = rows.len() as f64;
            reward.push(mean(rows.iter().map(|&row| data.rewards[row as usize])));
            counts.push(rows.len() as u64);
            let first = row_next[rows[0] as usize];
            if rows.iter().all(|&row| row_next[row as usize] == first) {
                kernel.push(first as usize, 1.0);
                kernel.end_row();
            } else {
                for &row in rows {
                    successors.add(row_next[row as usize] as usize, 1.0 / n);
                }
                successors.finish(&mut kernel);
            }
        }
        let behaviour = (0..decision_states)
            .flat_map(|s| {
                let slice = &counts[first_pair[s]..first_pair[s + 1]];
                let total: u64 = slice.iter().sum();
                slice.iter().map(move |&n| n as f64 / total as f64)
            })
            .collect();
        let mdp = Mdp::from_parts(gamma, state_labels.len(), first_pair, reward, kernel)?;
        Ok(EmpiricalMdp {
            mdp,
            state_labels,
            pair_actions,
            counts,
            behaviour,
            row_pair,
            row_next,
            row_end: data.trajectory_ends(),
        })
    }

    /// Rows of the data.
    pub fn rows(&self) -> usize {
        self.row_pair.len()
    }

    /// `d_D(s,a) = n_D(s,a) / m`.
    pub fn pair_frequency(&self) -> Vec<f64> {
        let m = self.rows() as f64;
        self.counts.iter().map(|&n| n as f64 / m).collect()
    }

    /// `d_S(s)`: the state marginal of the data.
    pub fn state_frequency(&self) -> Vec<f64> {
        let m = self.rows() as f64;
        (0..self.mdp.decision_states())
            .map(|s| self.counts[self.mdp.pairs_of(s)].iter().sum::<u64>() as f64 / m)
            .collect()
    }

    /// The number that the user's data gives to the pair's state.
    pub fn pair_state_label(&self, pair: usize) -> i64 {
        self.state_labels[self.mdp.state_of(pair)]
    }

    /// Whether a trajectory ends with this row in a state that the data never leaves.
    pub fn ends_absorbed(&self, row: usize) -> bool {
        self.row_end[row] && self.row_next[row] as usize >= self.mdp.decision_states()
    }
}

/// Numbers the states: those with a row first, then those that are only reached. Returns their labels, how many have
/// a row, and the state and successor of each row.
fn number_states(data: &TabularDataset) -> (Vec<i64>, usize, Vec<u32>, Vec<u32>) {
    let mut labels = distinct(&data.states);
    let decision_states = labels.len();
    let reached = distinct(&data.next_states);
    labels
        .extend(reached.into_iter().filter(|label| labels.binary_search(label).is_err()).collect::<Vec<_>>());
    let (start, only_reached) = labels.split_at(decision_states);
    let number = |label: &i64| match start.binary_search(label) {
        Ok(place) => place as u32,
        Err(_) => (decision_states + only_reached.partition_point(|x| x < label)) as u32,
    };
    // Labels are often small and dense; a table then replaces two binary searches per row.
    let (lowest, highest) = labels.iter().fold((i64::MAX, i64::MIN), |(lo, hi), &x| (lo.min(x), hi.max(x)));
    let span = highest.abs_diff(lowest);
    let (row_state, row_next) = if span < 8 * data.len() as u64 + 1024 {
        let mut table = vec![0u32; span as usize + 1];
        for label in &labels {
            table[label.abs_diff(lowest) as usize] = number(label);
        }
        let look_up = |x: &i64| table[x.abs_diff(lowest) as usize];
        (data.states.iter().map(look_up).collect(), data.next_states.iter().map(look_up).collect())
    } else {
        (data.states.iter().map(number).collect(), data.next_states.iter().map(number).collect())
    };
    (labels, decision_states, row_state, row_next)
}

fn distinct(values: &[i64]) -> Vec<i64> {
    let mut sorted = values.to_vec();
    // Consecutive repeats are common in recorded data and cheap to drop before sorting.
    sorted.dedup();
    sorted.sort_unstable();
    sorted.dedup();
    sorted
}

/// The mean, exact where all values are equal (an average of equal rewards must not differ from them by a rounding).
fn mean(mut values: impl ExactSizeIterator<Item = f64> + Clone) -> f64 {
    let n = values.len() as f64;
    let first = values.clone().next().unwrap_or(0.0);
    if values.clone().all(|x| x == first) { first } else { values.by_ref().sum::<f64>() / n }
}

/// Row numbers grouped by key, in row order (a counting sort).
struct Buckets {
    starts: Vec<usize>,
    rows: Vec<u32>,
}

impl Buckets {
    fn new(keys: &[u32], buckets: usize) -> Self {
        let mut starts = vec![0usize; buckets + 1];
        for &key in keys {
            starts[key as usize + 1] += 1;
        }
        for i in 0..buckets {
            starts[i + 1] += starts[i];
        }
        let mut place = starts.clone();
        let mut rows = vec![0u32; keys.len()];
        for (row, &key) in keys.iter().enumerate() {
            rows[place[key as usize]] = row as u32;
            place[key as usize] += 1;
        }
        Buckets { starts, rows }
    }

    fn get(&self, key: usize) -> &[u32] {
        &self.rows[self.starts[key]..self.starts[key + 1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two states (5 and 9), state 9 with two actions, one of them stochastic; 20 is reached and never left.
    fn small() -> TabularDataset {
        let mut data = TabularDataset::default();
        data.push(5, 0, 1.0, 9, false);
        data.push(9, 3, 0.5, 5, false);
        data.push(5, 0, 1.0, 9, false);
        data.push(9, 3, 1.5, 20, true);
        data.push(9, -2, -1.0, 20, true);
        data
    }

    #[test]
    fn counts_rewards_kernel_and_behaviour() {
        let e = EmpiricalMdp::new(&small(), 0.9).unwrap();
        assert_eq!(e.state_labels, vec![5, 9, 20]);
        assert_eq!((e.mdp.decision_states(), e.mdp.states()), (2, 3));
        assert_eq!(e.pair_actions, vec![0, -2, 3]);
        assert_eq!(e.counts, vec![2, 1, 2]);
        assert_eq!(e.mdp.reward(), &[1.0, -1.0, 1.0]);
        assert_eq!(e.mdp.kernel().row(2).collect::<Vec<_>>(), vec![(0, 0.5), (2, 0.5)]);
        assert_eq!(e.behaviour, vec![1.0, 1.0 / 3.0, 2.0 / 3.0]);
        assert_eq!(e.pair_frequency(), vec![0.4, 0.2, 0.4]);
        assert_eq!(e.state_frequency(), vec![0.4, 0.6]);
        assert!(!e.mdp.is_deterministic());
        assert!(e.ends_absorbed(3) && !e.ends_absorbed(2));
    }

    #[test]
    fn sparse_labels_give_the_same_mdp_as_dense_ones() {
        let dense = small();
        let mut sparse = dense.clone();
        for x in sparse.states.iter_mut().chain(&mut sparse.next_states) {
            *x = *x * 1_000_000_007 - 4_000_000_000_000_000_000;
        }
        let (a, b) = (EmpiricalMdp::new(&dense, 0.9).unwrap(), EmpiricalMdp::new(&sparse, 0.9).unwrap());
        assert_eq!(a.row_pair, b.row_pair);
        assert_eq!(a.row_next, b.row_next);
        assert_eq!(a.mdp.kernel(), b.mdp.kernel());
    }

    #[test]
    fn extreme_labels_do_not_overflow() {
        let mut data = TabularDataset::default();
        data.push(i64::MIN, 0, 0.0, i64::MAX, true);
        let e = EmpiricalMdp::new(&data, 0.5).unwrap();
        assert_eq!(e.state_labels, vec![i64::MIN, i64::MAX]);
    }
}
