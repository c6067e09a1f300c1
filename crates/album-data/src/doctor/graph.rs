//! The empirical MDP of a dataset: states that are the same number for number are one state.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use serde::Serialize;

use crate::doctor::View;
use crate::episodes::Episodes;

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

/// What followed a state and an action, in some share of its occurrences.
pub(super) struct Outcome {
    pub share: f64,
    pub reward: f64,
    /// The mask.
    pub follows: f64,
    pub next: usize,
}

/// States are numbered in the order in which they first occur, and so are pairs.
pub(super) struct Graph {
    pub repeats: Repeats,
    /// The state of each row.
    pub states: Vec<usize>,
    /// The state of each pair.
    pub pair_states: Vec<usize>,
    /// The first outcome of each pair, and the number of outcomes.
    pub pair_outcomes: Vec<usize>,
    /// Outcomes, by pair.
    pub outcomes: Vec<Outcome>,
}

/// Numbers that are equal if their bits are; the two zeros are one.
struct Bits<'a>(&'a [f32]);

impl Bits<'_> {
    fn bits(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|x| (x + 0.0).to_bits())
    }
}

impl Hash for Bits<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Two at a time: half the calls.
        let mut bits = self.bits();
        while let Some(low) = bits.next() {
            let high = bits.next().unwrap_or(0);
            state.write_u64(u64::from(high) << 32 | u64::from(low));
        }
    }
}

impl PartialEq for Bits<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.bits().eq(other.bits())
    }
}

impl Eq for Bits<'_> {}

impl Graph {
    /// Without labels all rewards count as 0 and all masks as 1.
    pub fn new(rows: &View<'_>, episodes: &Episodes) -> Self {
        let (states, distinct_states) =
            numbered(rows.observations.chunks_exact(rows.observation_dim).map(Bits));
        let acting = || (0..rows.terminals.len()).filter(|&row| !rows.terminals[row]);
        let action = |row: usize| Bits(&rows.actions[row * rows.action_dim..(row + 1) * rows.action_dim]);
        let (pairs, count) = numbered(acting().map(|row| (states[row], action(row))));

        // Rows in the order of their pairs.
        let mut starts = vec![0; count + 1];
        pairs.iter().for_each(|&pair| starts[pair + 1] += 1);
        (0..count).for_each(|pair| starts[pair + 1] += starts[pair]);
        let mut pair_states = vec![0; count];
        let mut by_pair = vec![0; episodes.transitions()];
        let mut free = starts.clone();
        for (row, &pair) in acting().zip(&pairs) {
            pair_states[pair] = states[row];
            by_pair[free[pair]] = row;
            free[pair] += 1;
        }

        let label = |row: usize| match (rows.rewards.get(row), rows.masks.get(row)) {
            (Some(&reward), Some(&mask)) => (reward, mask),
            _ => (0.0, 1.0),
        };
        let what_followed = |row: usize| {
            let (reward, mask) = label(row);
            (states[row + 1], reward.to_bits(), mask.to_bits())
        };
        let mut repeats = Repeats {
            distinct_states,
            distinct_pairs: count,
            duplicate_transitions: 0,
            repeated_pairs: 0,
            pairs_with_several_successors: 0,
            pairs_with_several_rewards: 0,
            different: None,
        };
        let mut outcomes: Vec<Outcome> = Vec::with_capacity(count);
        let mut pair_outcomes = Vec::with_capacity(count + 1);
        pair_outcomes.push(0);
        for pair in 0..count {
            let occurrences = &mut by_pair[starts[pair]..starts[pair + 1]];
            if occurrences.len() > 1 {
                repeats.repeated_pairs += 1;
                occurrences.sort_unstable_by_key(|&row| (what_followed(row), row));
            }
            let total = occurrences.len() as f64;
            let (mut successors, mut rewards) = (false, false);
            for same in occurrences.chunk_by(|&a, &b| what_followed(a) == what_followed(b)) {
                let row = same[0];
                let (reward, mask) = label(row);
                repeats.duplicate_transitions += same.len() - 1;
                if row != occurrences[0] {
                    let (other_reward, other_mask) = label(occurrences[0]);
                    // Where nothing follows, it does not matter what does.
                    successors |=
                        states[row + 1] != states[occurrences[0] + 1] && (mask, other_mask) != (0.0, 0.0);
                    rewards |= (reward, mask) != (other_reward, other_mask);
                    if (successors || rewards) && repeats.different.is_none() {
                        repeats.different = Some((occurrences[0].min(row), occurrences[0].max(row)));
                    }
                }
                outcomes.push(Outcome {
                    share: same.len() as f64 / total,
                    reward: f64::from(reward),
                    follows: f64::from(mask),
                    next: states[row + 1],
                });
            }
            repeats.pairs_with_several_successors += usize::from(successors);
            repeats.pairs_with_several_rewards += usize::from(rewards);
            pair_outcomes.push(outcomes.len());
        }
        Self { repeats, states, pair_states, pair_outcomes, outcomes }
    }
}

/// Numbers things in the order in which they first occur, and says how many different ones there are.
fn numbered<T: Hash + Eq>(things: impl Iterator<Item = T>) -> (Vec<usize>, usize) {
    let mut known: HashMap<T, usize> = HashMap::with_capacity(things.size_hint().1.unwrap_or(0));
    let numbers = things
        .map(|thing| {
            let next = known.len();
            *known.entry(thing).or_insert(next)
        })
        .collect();
    (numbers, known.len())
}
