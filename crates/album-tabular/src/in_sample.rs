//! V*_D of recorded transitions with continuous states: the best value that the data itself supports.
//!
//! States with identical observations are one state. The outcomes of a state-action pair are averaged over
//! its occurrences, and the best recorded action counts. A mask of 0 means that the task is solved there, so
//! nothing follows; a state that the data reaches but never leaves has value 0. This is the optimal value of
//! the [`EmpiricalMdp`] of the joined states. If no state repeats, it is the discounted recorded return from
//! each state; where trajectories meet, the better continuation counts for all of them.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use album_data::Dataset;
use serde::{Deserialize, Serialize};

use crate::policy::policy_iteration;
use crate::{EmpiricalMdp, TabularDataset, TabularError};

/// The largest, mean and smallest value over the transitions of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ValueSummary {
    /// The largest.
    pub max: f64,
    /// The mean over all transitions.
    pub mean: f64,
    /// The smallest.
    pub min: f64,
}

impl ValueSummary {
    /// Summarises one value per transition.
    pub fn new(values: &[f64]) -> Self {
        Self {
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            mean: values.iter().sum::<f64>() / values.len() as f64,
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
        }
    }
}

/// V*_D of a dataset, in units of its rewards.
#[derive(Debug, Clone, PartialEq)]
pub struct InSampleValues {
    /// The value of each transition's state, in the order of the data.
    pub values: Vec<f64>,
    /// The statistics that the paper's table reports.
    pub summary: ValueSummary,
}

/// V*_D of every transition of `data`.
///
/// ```
/// use album_data::{Dataset, Rows};
/// use album_tabular::in_sample_values;
///
/// // Two walks that meet in state 2; only the second continues to a goal, where the mask is 0.
/// let data = Dataset::from_rows(Rows {
///     observation_dim: 1,
///     action_dim: 1,
///     observations: vec![1.0, 2.0, 3.0, 4.0, 2.0, 5.0, 6.0],
///     actions: vec![0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0],
///     rewards: vec![-1.0, -1.0, -1.0, 0.0, -1.0, 0.0, 0.0],
///     masks: vec![1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0],
///     terminals: vec![false, false, false, true, false, false, true],
/// })?;
/// let v_star = in_sample_values(&data, 0.5)?;
/// assert_eq!(v_star.values, [-1.5, -1.0, -1.0, -1.0, 0.0]);
/// assert_eq!((v_star.summary.max, v_star.summary.min), (0.0, -1.5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn in_sample_values(data: &Dataset, gamma: f64) -> Result<InSampleValues, TabularError> {
    JoinedStates::new(data).values(data, gamma)
}

/// Which rows share a state, and which transitions share a state and an action. Both are numbered in order of
/// first occurrence.
#[derive(Debug, Clone)]
pub struct JoinedStates {
    /// The state of each row.
    pub states: Vec<u32>,
    /// Number of distinct states.
    pub distinct_states: usize,
    /// The state-action pair of each transition.
    pub pairs: Vec<u32>,
    /// Number of distinct pairs.
    pub distinct_pairs: usize,
}

impl JoinedStates {
    /// Compares states and actions exactly. NaN equals itself, and 0 equals -0.
    pub fn new(data: &Dataset) -> Self {
        let (states, distinct_states) = number(data.states().map(Numbers));
        let (pairs, distinct_pairs) =
            number(acting_rows(data).enumerate().map(|(t, row)| (states[row], Numbers(data.action(t)))));
        JoinedStates { states, distinct_states, pairs, distinct_pairs }
    }

    /// V*_D of the same data. Rewards must be finite and masks 0 or 1, as in every checked [`Dataset`].
    pub fn values(&self, recorded: &Dataset, gamma: f64) -> Result<InSampleValues, TabularError> {
        // Actions are numbered within their state, which needs fewer numbers.
        let mut actions_of = vec![0i64; self.distinct_states];
        let mut action_of_pair = Vec::with_capacity(self.distinct_pairs);
        let data = self.tabular(recorded, |t, state| {
            let pair = self.pairs[t] as usize;
            if pair == action_of_pair.len() {
                action_of_pair.push(actions_of[state]);
                actions_of[state] += 1;
            }
            action_of_pair[pair]
        });
        let empirical = EmpiricalMdp::new(&data, gamma)?;
        let v = policy_iteration(&empirical.mdp)?.v;
        let state_of_row = |&pair: &u32| v[empirical.mdp.state_of(pair as usize)];
        let values: Vec<f64> = empirical.row_pair.iter().map(state_of_row).collect();
        Ok(InSampleValues { summary: ValueSummary::new(&values), values })
    }

    /// The same transitions with numbered states; `action` maps a transition and its state to an action
    /// number.
    pub(crate) fn tabular(
        &self,
        recorded: &Dataset,
        mut action: impl FnMut(usize, usize) -> i64,
    ) -> TabularDataset {
        let solved = self.distinct_states as i64;
        let mut data = TabularDataset::default();
        for (t, row) in acting_rows(recorded).enumerate() {
            let state = self.states[row] as usize;
            let next = if recorded.mask(t) == 0.0 { solved } else { i64::from(self.states[row + 1]) };
            let reward = f64::from(recorded.reward(t));
            data.push(state as i64, action(t, state), reward, next, recorded.terminal(t));
        }
        data
    }
}

/// The row of each transition among all states of the data.
fn acting_rows(data: &Dataset) -> impl Iterator<Item = usize> + '_ {
    let episodes = data.episodes();
    (0..episodes.len()).flat_map(|episode| {
        let first = episodes.start(episode) + episode;
        first..first + episodes.length(episode)
    })
}

/// Numbers compared by their bits, except that 0 equals -0.
struct Numbers<'a>(&'a [f32]);

impl Numbers<'_> {
    fn bits(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|x| (x + 0.0).to_bits())
    }
}

impl Hash for Numbers<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Hashed two at a time, for half the calls.
        let mut bits = self.bits();
        while let Some(low) = bits.next() {
            let high = bits.next().unwrap_or(0);
            state.write_u64(u64::from(high) << 32 | u64::from(low));
        }
    }
}

impl PartialEq for Numbers<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.bits().eq(other.bits())
    }
}

impl Eq for Numbers<'_> {}

/// Numbers items in order of first occurrence, and counts the distinct ones.
fn number<T: Hash + Eq>(things: impl Iterator<Item = T>) -> (Vec<u32>, usize) {
    let mut known: HashMap<T, u32> = HashMap::with_capacity(things.size_hint().1.unwrap_or(0));
    let numbers = things
        .map(|thing| {
            let next = known.len() as u32;
            *known.entry(thing).or_insert(next)
        })
        .collect();
    (numbers, known.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use album_base::rng::stream;
    use album_data::Rows;
    use rand::RngExt;
    use std::collections::BTreeMap;

    /// Episodes of 40 transitions with states drawn by `state`.
    fn walks(seed: u64, episodes: usize, mut state: impl FnMut(usize) -> f32) -> Rows {
        let mut rng = stream(seed, "walks");
        let mut rows = Rows { observation_dim: 1, action_dim: 1, ..Rows::default() };
        for row in 0..41 * episodes {
            rows.observations.push(state(row));
            rows.actions.push([-0.5, 0.0, 0.5][rng.random_range(0..3)]);
            rows.rewards.push(rng.random_range(-2.0..1.0));
            rows.masks.push(f32::from(rng.random_range(0..15) != 0));
            rows.terminals.push(row % 41 == 40);
        }
        rows
    }

    #[test]
    fn without_repeated_states_it_is_the_discounted_return() {
        let rows = walks(1, 30, |row| row as f32);
        let data = Dataset::from_rows(rows).unwrap();
        let found = in_sample_values(&data, 0.995).unwrap();
        assert!(crate::max_difference(&found.values, &data.returns_to_go(0.995)) < 1e-9);
    }

    #[test]
    fn with_repeated_states_it_is_the_fixed_point_of_the_averaged_backup() {
        let mut rng = stream(2, "states");
        let rows = walks(2, 60, |_| rng.random_range(0..50) as f32);
        let gamma = 0.9;
        // The same by value-iteration sweeps over tables of means, without this crate's types.
        let mut by_pair: BTreeMap<(u32, u32), Vec<usize>> = BTreeMap::new();
        let key = |row: usize| (rows.observations[row].to_bits(), rows.actions[row].to_bits());
        (0..rows.terminals.len())
            .filter(|&row| !rows.terminals[row])
            .for_each(|row| by_pair.entry(key(row)).or_default().push(row));
        let mut v: BTreeMap<u32, f64> = BTreeMap::new();
        for _ in 0..600 {
            let mut next: BTreeMap<u32, f64> = BTreeMap::new();
            for (&(state, _), occurrences) in &by_pair {
                let sum: f64 = occurrences
                    .iter()
                    .map(|&row| {
                        let after = v.get(&rows.observations[row + 1].to_bits()).copied().unwrap_or(0.0);
                        f64::from(rows.rewards[row]) + gamma * f64::from(rows.masks[row]) * after
                    })
                    .sum();
                let best = next.entry(state).or_insert(f64::NEG_INFINITY);
                *best = best.max(sum / occurrences.len() as f64);
            }
            v = next;
        }
        let acting = (0..rows.terminals.len()).filter(|&row| !rows.terminals[row]);
        let expected: Vec<f64> = acting.map(|row| v[&rows.observations[row].to_bits()]).collect();
        let found = in_sample_values(&Dataset::from_rows(rows).unwrap(), gamma).unwrap();
        assert!(crate::max_difference(&found.values, &expected) < 1e-9);
        let mean = expected.iter().sum::<f64>() / expected.len() as f64;
        assert!((found.summary.mean - mean).abs() < 1e-9);
    }

    #[test]
    fn a_gamma_of_one_is_refused() {
        let data = Dataset::from_rows(walks(1, 1, |row| row as f32)).unwrap();
        assert!(in_sample_values(&data, 1.0).unwrap_err().to_string().contains("gamma is 1"));
    }
}
