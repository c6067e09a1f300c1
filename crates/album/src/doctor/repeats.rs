//! States and actions that occur more than once.

use album_data::RowsView;
use album_tabular::JoinedStates;
use serde::Serialize;

/// States and actions that occur more than once. Only exact repetitions count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Repeats {
    /// Different states among all rows.
    pub distinct_states: usize,
    /// Different pairs of state and action.
    pub distinct_pairs: usize,
    /// Transitions that an earlier one equals in every respect.
    pub duplicate_transitions: usize,
    /// Pairs that occur more than once.
    pub repeated_pairs: usize,
    /// Those among them that did not always lead to the same state.
    pub pairs_with_several_successors: usize,
    /// Those among them that did not always have the same reward and mask.
    pub pairs_with_several_rewards: usize,
    /// Rows of two transitions of a pair that differ, if there are any.
    pub different: Option<(usize, usize)>,
}

impl Repeats {
    /// Counts over the joined states of the same rows. Without labels all rewards count as 0 and all masks as 1.
    pub(super) fn count(rows: &RowsView<'_>, joined: &JoinedStates) -> Self {
        let states = &joined.states;
        let mut by_pair: Vec<(u32, usize)> = joined.pairs.iter().copied().zip(rows.acting()).collect();
        by_pair.sort_unstable();
        let label = |row: usize| match (rows.rewards.get(row), rows.masks.get(row)) {
            (Some(&reward), Some(&mask)) => (reward, mask),
            _ => (0.0, 1.0),
        };
        let what_followed = |row: usize| {
            let (reward, mask) = label(row);
            (states[row + 1], reward.to_bits(), mask.to_bits())
        };
        let mut repeats = Repeats {
            distinct_states: joined.distinct_states,
            distinct_pairs: joined.distinct_pairs,
            duplicate_transitions: 0,
            repeated_pairs: 0,
            pairs_with_several_successors: 0,
            pairs_with_several_rewards: 0,
            different: None,
        };
        for occurrences in by_pair.chunk_by_mut(|a, b| a.0 == b.0).filter(|rows| rows.len() > 1) {
            repeats.repeated_pairs += 1;
            occurrences.sort_unstable_by_key(|&(_, row)| (what_followed(row), row));
            let first = occurrences[0].1;
            let (mut successors, mut rewards) = (false, false);
            for same in occurrences.chunk_by(|&(_, a), &(_, b)| what_followed(a) == what_followed(b)) {
                let row = same[0].1;
                repeats.duplicate_transitions += same.len() - 1;
                // Where nothing follows, it does not matter what does.
                let follows = (label(row).1, label(first).1) != (0.0, 0.0);
                successors |= follows && states[row + 1] != states[first + 1];
                rewards |= label(row) != label(first);
                if (successors || rewards) && repeats.different.is_none() {
                    repeats.different = Some((first.min(row), first.max(row)));
                }
            }
            repeats.pairs_with_several_successors += usize::from(successors);
            repeats.pairs_with_several_rewards += usize::from(rewards);
        }
        repeats
    }
}
