//! The empirical MDP of a dataset.
//!
//! Pairs are the (state, action) pairs in the data, `R_D` and `P_D` are averages over the rows of a pair, and
//! the behaviour policy is the relative frequency of each action in its state. States that the data reaches
//! but never leaves are absorbing, with value 0. Nothing outside the data is ever queried.

use crate::sparse::Csr;
use crate::{Mdp, TabularDataset, TabularError};

/// The MDP induced by a dataset, with the mapping from rows to pairs.
#[derive(Clone, Debug)]
pub struct EmpiricalMdp {
    /// States, pairs, `R_D`, `P_D` and gamma.
    pub mdp: Mdp,
    /// The original id of each state; decision states first, then absorbing ones, each ascending.
    pub state_labels: Vec<i64>,
    /// The original id of each pair's action.
    pub pair_actions: Vec<i64>,
    /// `n_D(s,a)`: rows of each pair.
    pub counts: Vec<u64>,
    /// `beta(a|s)`: the relative frequency of the pair among the rows of its state.
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
            let (found, most) = (data.len() as u128, u64::from(u32::MAX));
            return Err(TabularError::TooMany { what: "rows", found, most });
        }
        let states = Ranks::new(data.states.iter().copied());
        let actions = Ranks::new(data.actions.iter().copied());
        let row_end = data.trajectory_ends();
        let decision_states = states.len();
        let only_reached: Vec<i64> =
            data.next_states.iter().copied().filter(|&s| states.of(s).is_none()).collect();
        let absorbing = Ranks::new(only_reached.into_iter());
        let state_labels: Vec<i64> = states.labels.iter().chain(&absorbing.labels).copied().collect();

        // A pair is encoded as state * |A| + action, so pairs sort by state first.
        let width = actions.len() as i64;
        if (decision_states as i64).checked_mul(width).is_none() {
            let found = decision_states as u128 * width as u128;
            return Err(TabularError::TooMany { what: "possible pairs", found, most: i64::MAX as u64 });
        }
        let numbers = data
            .states
            .iter()
            .zip(&data.actions)
            .map(|(&s, &a)| i64::from(states.of_present(s)) * width + i64::from(actions.of_present(a)));
        let pairs = Ranks::within(0, decision_states as i64 * width - 1, numbers.clone());
        let pair_actions = pairs.labels.iter().map(|x| actions.labels[(x % width) as usize]).collect();
        let mut first_pair = vec![0; decision_states + 1];
        for x in &pairs.labels {
            first_pair[(x / width) as usize + 1] += 1;
        }
        for s in 0..decision_states {
            first_pair[s + 1] += first_pair[s];
        }

        // One pass settles almost everything; only pairs with several successors need their rows again.
        let mut tallies = vec![Tally::default(); pairs.len()];
        let mut row_pair = Vec::with_capacity(data.len());
        let mut row_next = Vec::with_capacity(data.len());
        for ((number, &next), (&reward, &end)) in
            numbers.zip(&data.next_states).zip(data.rewards.iter().zip(&row_end))
        {
            let pair = pairs.of_present(number);
            let next = match end {
                false => states.of_present(next),
                true => {
                    states.of(next).unwrap_or_else(|| decision_states as u32 + absorbing.of_present(next))
                }
            };
            tallies[pair as usize].add(reward, next);
            row_pair.push(pair);
            row_next.push(next);
        }
        let mut branching = Vec::new();
        if tallies.iter().any(|tally| tally.branches) {
            let rows = row_pair.iter().copied().zip(row_next.iter().copied());
            branching.extend(rows.filter(|row| tallies[row.0 as usize].branches));
        }
        branching.sort_unstable();
        let mut branching = branching.chunk_by(|a, b| a == b).peekable();
        let mut kernel = Csr::with_capacity(state_labels.len(), tallies.len(), tallies.len());
        for (pair, tally) in tallies.iter().enumerate() {
            if !tally.branches {
                kernel.push(tally.next as usize, 1.0);
            }
            while let Some(equal) = branching.next_if(|rows| rows[0].0 as usize == pair) {
                kernel.push(equal[0].1 as usize, equal.len() as f64 / tally.count as f64);
            }
            kernel.end_row();
        }
        let reward = tallies.iter().map(Tally::mean).collect();
        let counts: Vec<u64> = tallies.iter().map(|tally| tally.count).collect();
        let behaviour = (0..decision_states)
            .flat_map(|s| {
                let slice = &counts[first_pair[s]..first_pair[s + 1]];
                let total: u64 = slice.iter().sum();
                slice.iter().map(move |&n| n as f64 / total as f64)
            })
            .collect();
        let mdp = Mdp::from_parts(gamma, state_labels.len(), first_pair, reward, kernel)?;
        Ok(EmpiricalMdp { mdp, state_labels, pair_actions, counts, behaviour, row_pair, row_next, row_end })
    }

    /// Number of rows of the data.
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

    /// The original id of the pair's state.
    pub fn pair_state_label(&self, pair: usize) -> i64 {
        self.state_labels[self.mdp.state_of(pair)]
    }

    /// Whether a trajectory ends with this row in an absorbing state.
    pub fn ends_absorbed(&self, row: usize) -> bool {
        self.row_end[row] && self.row_next[row] as usize >= self.mdp.decision_states()
    }
}

/// Statistics of a pair from one pass over its rows.
#[derive(Clone, Default)]
struct Tally {
    count: u64,
    reward: f64,
    total: f64,
    varies: bool,
    next: u32,
    branches: bool,
}

impl Tally {
    fn add(&mut self, reward: f64, next: u32) {
        if self.count == 0 {
            self.reward = reward;
            self.next = next;
        }
        self.varies |= reward != self.reward;
        self.branches |= next != self.next;
        self.count += 1;
        self.total += reward;
    }

    /// The mean reward, exact if all rewards are equal: rounding must not change it.
    fn mean(&self) -> f64 {
        if self.varies { self.total / self.count as f64 } else { self.reward }
    }
}

/// The distinct values of a column, ascending, with the rank of each.
pub(crate) struct Ranks {
    pub labels: Vec<i64>,
    lowest: i64,
    /// The rank of each number from `lowest` on, if the numbers are dense enough for a table; else empty.
    table: Vec<u32>,
}

impl Ranks {
    const ABSENT: u32 = u32::MAX;

    fn new(values: impl ExactSizeIterator<Item = i64> + Clone) -> Self {
        let (lowest, highest) =
            values.clone().fold((i64::MAX, i64::MIN), |(lo, hi), x| (lo.min(x), hi.max(x)));
        Self::within(lowest, highest, values)
    }

    /// The same for values known to lie between `lowest` and `highest`.
    pub fn within(lowest: i64, highest: i64, values: impl ExactSizeIterator<Item = i64>) -> Self {
        let count = values.len();
        let span = if count == 0 { 0 } else { highest.abs_diff(lowest) };
        if span >= 8 * count as u64 + 1024 {
            let mut labels: Vec<i64> = values.collect();
            labels.sort_unstable();
            labels.dedup();
            return Ranks { labels, lowest, table: Vec::new() };
        }
        let mut table = vec![Self::ABSENT; if count == 0 { 0 } else { span as usize + 1 }];
        for x in values {
            table[x.abs_diff(lowest) as usize] = 0;
        }
        let mut labels = Vec::new();
        for (offset, rank) in table.iter_mut().enumerate().filter(|(_, rank)| **rank == 0) {
            *rank = labels.len() as u32;
            labels.push(lowest + offset as i64);
        }
        Ranks { labels, lowest, table }
    }

    fn len(&self) -> usize {
        self.labels.len()
    }

    /// The rank of a value known to be present.
    pub fn of_present(&self, value: i64) -> u32 {
        match self.table.get(value.wrapping_sub(self.lowest) as usize) {
            Some(&rank) => rank,
            None => self.labels.partition_point(|&label| label < value) as u32,
        }
    }

    fn of(&self, value: i64) -> Option<u32> {
        if self.table.is_empty() {
            return self.labels.binary_search(&value).ok().map(|rank| rank as u32);
        }
        // A value below the lowest wraps around to a large offset, beyond the table.
        let offset = usize::try_from(value.wrapping_sub(self.lowest)).ok()?;
        self.table.get(offset).copied().filter(|&rank| rank != Self::ABSENT)
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
