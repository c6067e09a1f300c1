//! States and actions that occur more than once.

use album_data::Dataset;
use album_tabular::JoinedStates;
use serde::Serialize;

/// States and actions that occur more than once; only exact repetitions count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Repeats {
    /// Number of distinct states.
    pub distinct_states: usize,
    /// Number of distinct state-action pairs.
    pub distinct_pairs: usize,
    /// Transitions identical to an earlier one.
    pub duplicate_transitions: usize,
    /// State-action pairs that occur more than once.
    pub repeated_pairs: usize,
    /// Repeated pairs with different next states.
    pub pairs_with_several_successors: usize,
    /// Repeated pairs with different rewards or masks.
    pub pairs_with_several_rewards: usize,
    /// The rows of two transitions of the same pair that differ, if there are any.
    pub different: Option<(usize, usize)>,
}

impl Repeats {
    /// Counts the repetitions in a dataset.
    pub(crate) fn of(data: &Dataset) -> Self {
        Self::count(data, &JoinedStates::new(data))
    }

    pub(super) fn count(data: &Dataset, joined: &JoinedStates) -> Self {
        let row = |transition: usize| transition + data.episodes().locate(transition).episode;
        let next = |transition: usize| joined.states[row(transition) + 1];
        let mut by_pair: Vec<(u32, usize)> = joined.pairs.iter().copied().zip(0..).collect();
        by_pair.sort_unstable();
        let label = |transition: usize| (data.reward(transition), data.mask(transition));
        let what_followed = |transition: usize| {
            let (reward, mask) = label(transition);
            (next(transition), reward.to_bits(), mask.to_bits())
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
        for occurrences in by_pair.chunk_by_mut(|a, b| a.0 == b.0).filter(|all| all.len() > 1) {
            repeats.repeated_pairs += 1;
            occurrences.sort_unstable_by_key(|&(_, t)| (what_followed(t), t));
            let first = occurrences[0].1;
            let (mut successors, mut rewards) = (false, false);
            for same in occurrences.chunk_by(|&(_, a), &(_, b)| what_followed(a) == what_followed(b)) {
                let other = same[0].1;
                repeats.duplicate_transitions += same.len() - 1;
                // After a terminal transition, the next state does not matter.
                let follows = (label(other).1, label(first).1) != (0.0, 0.0);
                successors |= follows && next(other) != next(first);
                rewards |= label(other) != label(first);
                if (successors || rewards) && repeats.different.is_none() {
                    repeats.different = Some((row(first.min(other)), row(first.max(other))));
                }
            }
            repeats.pairs_with_several_successors += usize::from(successors);
            repeats.pairs_with_several_rewards += usize::from(rewards);
        }
        repeats
    }
}
