//! The replay buffer of an online agent.

use crate::batch::Batch;

/// The latest transitions of an online agent, each row `[s, a, r, m, s']`.
///
/// Single transitions only: multi-step windows and action chunks need episodes, which a
/// [`Dataset`](crate::Dataset) has and a ring buffer does not.
///
/// ```
/// use album_data::{Replay, Sampler};
///
/// let mut replay = Replay::new(1, 1, 2);
/// for i in 0..3 {
///     replay.push(&[i as f32], &[0.5], 1.0, 1.0, &[i as f32 + 1.0]);
/// }
/// assert_eq!((replay.len(), replay.pushed()), (2, 3)); // the first one is gone
/// let mut batch = replay.batch(4);
/// Sampler::new(0, replay.len()).fill(0, batch.indices_mut());
/// replay.gather(&mut batch);
/// assert!(batch.observations().data().iter().all(|s| [1.0, 2.0].contains(s)));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    observation_dim: usize,
    action_dim: usize,
    capacity: usize,
    pushed: u64,
    numbers: Vec<f32>,
}

impl Replay {
    /// A buffer for `capacity` transitions with these observation and action dimensions.
    ///
    /// # Panics
    ///
    /// If one of the three is 0.
    pub fn new(observation_dim: usize, action_dim: usize, capacity: usize) -> Self {
        assert!(observation_dim > 0 && action_dim > 0 && capacity > 0, "there is nothing to keep");
        Self { observation_dim, action_dim, capacity, pushed: 0, numbers: Vec::new() }
    }

    /// Number of floats per transition.
    pub fn width(&self) -> usize {
        2 * self.observation_dim + self.action_dim + 2
    }

    /// Number of stored transitions.
    pub fn len(&self) -> usize {
        self.numbers.len() / self.width()
    }

    /// Whether no transition has been added yet.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Total number of transitions ever added.
    pub fn pushed(&self) -> u64 {
        self.pushed
    }

    /// All numbers, row by row, for a checkpoint.
    pub fn numbers(&self) -> &[f32] {
        &self.numbers
    }

    /// Restores the numbers of a replay buffer of the same size after `pushed` transitions; `false` if they
    /// do not match.
    #[must_use]
    pub fn restore(&mut self, pushed: u64, numbers: Vec<f32>) -> bool {
        let rows = pushed.min(self.capacity as u64) as usize;
        let fits = numbers.len() == rows * self.width();
        if fits {
            (self.pushed, self.numbers) = (pushed, numbers);
        }
        fits
    }

    /// Adds a transition, replacing the oldest if full; `mask` is 0 if nothing follows it.
    ///
    /// # Panics
    ///
    /// If the dimensions do not match.
    pub fn push(&mut self, s: &[f32], a: &[f32], reward: f32, mask: f32, s_next: &[f32]) {
        let sizes = (s.len(), a.len(), s_next.len());
        assert_eq!(sizes, (self.observation_dim, self.action_dim, self.observation_dim), "other sizes");
        let place = (self.pushed % self.capacity as u64) as usize;
        let at = place * self.width();
        if at == self.numbers.len() {
            self.numbers.resize(at + self.width(), 0.0);
        }
        let row = &mut self.numbers[at..];
        let (to, row) = row.split_at_mut(s.len());
        to.copy_from_slice(s);
        let (to, row) = row.split_at_mut(a.len());
        to.copy_from_slice(a);
        (row[0], row[1]) = (reward, mask);
        row[2..2 + s.len()].copy_from_slice(s_next);
        self.pushed += 1;
    }

    /// State, action and next state of the transition added as number `number` (from 0), if still stored.
    pub fn transition(&self, number: u64) -> Option<[&[f32]; 3]> {
        let kept = number < self.pushed && number + self.len() as u64 >= self.pushed;
        kept.then(|| {
            let row = self.row((number % self.capacity as u64) as usize);
            let (s, rest) = row.split_at(self.observation_dim);
            let (a, rest) = rest.split_at(self.action_dim);
            [s, a, &rest[2..]]
        })
    }

    fn row(&self, place: usize) -> &[f32] {
        &self.numbers[place * self.width()..][..self.width()]
    }

    /// Buffers for `size` transitions.
    pub fn batch(&self, size: usize) -> Batch {
        Batch::with_sizes(self.observation_dim, self.action_dim, size, 1)
    }

    /// Fills a batch from its [`indices`](Batch::indices_mut), which are positions below [`len`](Self::len).
    /// Multi-step fields stay 0. Allocates nothing.
    ///
    /// # Panics
    ///
    /// If the batch has other dimensions, or an index is out of range.
    pub fn gather(&self, batch: &mut Batch) {
        let (width, action_dim, size) = (self.observation_dim, self.action_dim, batch.len());
        assert_eq!((batch.observation_dim, batch.action_dim, batch.chunk), (width, action_dim, 1));
        let (first, rest) = batch.states.split_at_mut(size * width);
        for (i, &place) in batch.indices.iter().enumerate() {
            let (s, row) = self.row(place).split_at(width);
            let (a, row) = row.split_at(action_dim);
            first[i * width..][..width].copy_from_slice(s);
            batch.actions[i * action_dim..][..action_dim].copy_from_slice(a);
            batch.chunks[i * action_dim..][..action_dim].copy_from_slice(a);
            batch.valids[i] = 1.0;
            (batch.rewards[i], batch.masks[i]) = (row[0], row[1]);
            rest[i * width..][..width].copy_from_slice(&row[2..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(pushes: u64) -> Replay {
        let mut replay = Replay::new(2, 1, 3);
        for i in 0..pushes {
            let x = i as f32;
            replay.push(
                &[x, -x],
                &[0.1 * x],
                10.0 * x,
                f32::from(u8::from(i % 2 == 0)),
                &[x + 1.0, -x - 1.0],
            );
        }
        replay
    }

    #[test]
    fn a_batch_has_the_rows_of_its_places() {
        let replay = filled(5);
        let mut batch = replay.batch(2);
        batch.indices_mut().copy_from_slice(&[0, 2]); // places of transitions 3 and 2
        replay.gather(&mut batch);
        assert_eq!(batch.observations().data(), [3.0, -3.0, 2.0, -2.0]);
        assert_eq!(batch.next_observations().data(), [4.0, -4.0, 3.0, -3.0]);
        assert_eq!(batch.actions().data(), [0.3, 0.2]);
        assert_eq!((batch.rewards(), batch.masks()), (&[30.0, 20.0][..], &[0.0, 1.0][..]));
    }

    #[test]
    fn the_latest_transitions_are_found_by_number() {
        let replay = filled(5);
        assert_eq!(replay.transition(1), None);
        assert_eq!(replay.transition(5), None);
        assert_eq!(replay.transition(4).unwrap()[0], [4.0, -4.0]);
        assert_eq!(replay.transition(2).unwrap()[2], [3.0, -3.0]);
    }

    #[test]
    fn numbers_restore_it() {
        for pushes in [2, 3, 7] {
            let (replay, mut back) = (filled(pushes), Replay::new(2, 1, 3));
            assert!(back.restore(replay.pushed(), replay.numbers().to_vec()));
            assert_eq!(replay, back);
            assert!(!back.restore(pushes, vec![0.0; 5]));
        }
    }
}
