//! K-step windows and action chunks of training batches.

mod config;

use crate::batch::Batch;
use crate::dataset::Dataset;

pub use config::{AfterGoal, KStepTail, SegmentConfig, SegmentError};

/// Maximum steps of a window and actions of a chunk.
const MOST: usize = 1_000_000;

/// Extracts K-step windows and action chunks from a dataset.
///
/// For the transition `t` with `L` transitions left in its episode (including itself), let `h = min(K, L)`,
/// and let `tau` be the first offset with mask 0, if there is one below `h`. Then a row of a [`Batch`]
/// contains
///
/// ```text
///                         no goal in the window     goal at tau < h
///                                                   Stop                QcSum
/// return_k                sum_{i<h} gamma^i r_i     sum_{i<=tau} ...    sum_{i<h} ...
/// bootstrap_k             gamma^h                   0                   0
/// steps_k                 h                         tau + 1             h
/// last_observation        s_{t + steps_k}
/// ```
///
/// so that the K-step target is always `return_k + bootstrap_k * V(last_observation)`, and the one-step
/// target is `reward + gamma * mask * V(next_observation)`. The end of an episode is not a goal: the last
/// state keeps its bootstrap. No window reads beyond its episode. Sums are computed in `f64`.
///
/// Action chunks ignore goals, but end with the episode, whose last action is repeated:
///
/// ```text
/// chunk                   a_t ... a_{t + C - 1}, with a_{t + L - 1} for all from i = L on
/// valid                   1 for i < L, 0 after
/// next_action             a_{t + 1}, or a_t if L = 1
/// ```
///
/// ```
/// use album_data::{Batch, Dataset, Rows, SegmentConfig, Segments};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let rows = Rows {
/// #     observation_dim: 1,
/// #     action_dim: 1,
/// #     observations: vec![0.0, 1.0, 2.0, 3.0],
/// #     actions: vec![0.0; 4],
/// #     rewards: vec![-1.0; 4],
/// #     masks: vec![1.0; 4],
/// #     terminals: vec![false, false, false, true],
/// # };
/// // Three transitions between the states 0, 1, 2, 3, each with reward -1.
/// let dataset = Dataset::from_rows(rows)?;
/// let segments = Segments::new(SegmentConfig { k: 2, gamma: 0.5, ..SegmentConfig::default() })?;
/// let mut batch = Batch::new(&dataset, 2);
/// batch.indices_mut().copy_from_slice(&[0, 2]);
/// segments.gather(&dataset, &mut batch);
/// assert_eq!(batch.returns_k(), [-1.5, -1.0]); // the second window has one step left
/// assert_eq!(batch.bootstraps_k(), [0.25, 0.5]);
/// assert_eq!(batch.last_observations().data(), [2.0, 3.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Segments {
    config: SegmentConfig,
    /// `gamma^0` to `gamma^K`.
    powers: Vec<f64>,
}

/// The sums of one window.
struct Window {
    return_k: f64,
    bootstrap_k: f64,
    steps_k: usize,
    counts: bool,
}

impl Segments {
    /// Checks the configuration.
    pub fn new(config: SegmentConfig) -> Result<Self, SegmentError> {
        if !(1..=MOST).contains(&config.k) {
            return Err(SegmentError::Steps(config.k));
        }
        if !(1..=MOST).contains(&config.chunk) {
            return Err(SegmentError::Chunk(config.chunk));
        }
        if !(config.gamma > 0.0 && config.gamma <= 1.0) {
            return Err(SegmentError::Discount(config.gamma));
        }
        let powers = (0..=config.k).map(|i| config.gamma.powi(i as i32)).collect();
        Ok(Self { config, powers })
    }

    /// The configuration.
    pub fn config(&self) -> &SegmentConfig {
        &self.config
    }

    /// Refuses data in which no episode has a full window or chunk: an agent would learn nothing from it, or
    /// only from repeated actions. If windows may be short ([`KStepTail::Truncate`]), only chunks must be
    /// full. Goals are not considered, though with [`KStepTail::Drop`] they complete windows.
    pub fn fits(&self, dataset: &Dataset) -> Result<(), SegmentError> {
        let SegmentConfig { k, chunk, tail, .. } = self.config;
        let needed = if tail == KStepTail::Truncate { chunk } else { k.max(chunk) };
        let episodes = dataset.episodes();
        let longest = (0..episodes.len()).map(|episode| episodes.length(episode)).max().unwrap_or(0);
        if longest < needed { Err(SegmentError::Short { longest, needed }) } else { Ok(()) }
    }

    /// Buffers for `size` rows of these windows.
    pub fn batch(&self, dataset: &Dataset, size: usize) -> Batch {
        Batch::with_chunk(dataset, size, self.config.chunk)
    }

    /// Fills a batch from its [`indices`](Batch::indices_mut). Allocates nothing.
    ///
    /// # Panics
    ///
    /// If the batch has other dimensions or chunks, or an index is out of range.
    pub fn gather(&self, dataset: &Dataset, batch: &mut Batch) {
        let Batch { indices, observation_dim: width, action_dim, chunk, .. } = batch;
        assert_eq!(*chunk, self.config.chunk, "the batch was made for other chunks");
        let (width, action_dim) = (*width, *action_dim);
        assert_eq!(width, dataset.observation_dim(), "the batch was made for another dataset");
        assert_eq!(action_dim, dataset.action_dim(), "the batch was made for another dataset");
        let (first, rest) = batch.states.split_at_mut(indices.len() * width);
        let (next, last) = rest.split_at_mut(indices.len() * width);
        let mut counted = 0;
        for (i, &transition) in indices.iter().enumerate() {
            let place = dataset.locate(transition);
            let window = self.window(dataset, place.row, place.left);
            let states = i * width..(i + 1) * width;
            first[states.clone()].copy_from_slice(dataset.state(place.row));
            next[states.clone()].copy_from_slice(dataset.state(place.row + 1));
            last[states].copy_from_slice(dataset.state(place.row + window.steps_k));
            let action = i * action_dim..(i + 1) * action_dim;
            batch.actions[action.clone()].copy_from_slice(dataset.action_of_row(place.row));
            batch.next_actions[action]
                .copy_from_slice(dataset.action_of_row(place.row + usize::from(place.left > 1)));
            for offset in 0..self.config.chunk {
                // The row after the last transition has no action: the last one is repeated.
                let row = place.row + offset.min(place.left - 1);
                let at = i * self.config.chunk + offset;
                batch.chunks[at * action_dim..(at + 1) * action_dim]
                    .copy_from_slice(dataset.action_of_row(row));
                batch.valids[at] = f32::from(u8::from(offset < place.left));
            }
            batch.rewards[i] = dataset.rewards()[place.row];
            batch.masks[i] = dataset.masks()[place.row];
            batch.returns_k[i] = window.return_k as f32;
            batch.bootstraps_k[i] = window.bootstrap_k as f32;
            batch.steps_k[i] = window.steps_k as u32;
            batch.weights_k[i] = f32::from(u8::from(window.counts));
            counted += usize::from(window.counts);
        }
        if self.config.tail == KStepTail::Drop && counted > 0 {
            let weight = indices.len() as f32 / counted as f32;
            batch.weights_k.iter_mut().for_each(|w| *w *= weight);
        }
    }

    /// The window that starts at `row` with `left` transitions to the end of the episode.
    fn window(&self, dataset: &Dataset, row: usize, left: usize) -> Window {
        let steps = self.config.k.min(left);
        let rewards = &dataset.rewards()[row..row + steps];
        let goal = dataset.masks()[row..row + steps].iter().position(|&mask| mask == 0.0);
        let whole = left >= self.config.k;
        let (steps_k, counts) = match (self.config.after_goal, goal) {
            (AfterGoal::Stop, Some(tau)) => (tau + 1, self.config.tail != KStepTail::QcValid || whole),
            _ => (steps, self.config.tail == KStepTail::Truncate || whole),
        };
        let return_k = rewards[..steps_k]
            .iter()
            .zip(&self.powers)
            .map(|(&reward, power)| f64::from(reward) * power)
            .sum();
        let bootstrap_k = if goal.is_some() { 0.0 } else { self.powers[steps_k] };
        Window { return_k, bootstrap_k, steps_k, counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rows;

    /// Six transitions in episodes of four and two; the task is solved in state 2.
    fn dataset() -> Dataset {
        Dataset::from_rows(Rows {
            observation_dim: 1,
            action_dim: 1,
            observations: vec![0., 1., 2., 3., 4., 10., 11., 12.],
            actions: vec![0.0, 0.1, 0.2, 0.3, 0.0, 0.5, 0.6, 0.0],
            rewards: vec![-1., -2., -4., -8., 0., -16., -32., 0.],
            masks: vec![1., 1., 0., 1., 1., 1., 1., 1.],
            terminals: vec![false, false, false, false, true, false, false, true],
        })
        .unwrap()
    }

    fn gather(tail: KStepTail, after_goal: AfterGoal) -> Batch {
        let dataset = dataset();
        let segments = Segments::new(SegmentConfig { k: 2, chunk: 1, gamma: 0.5, tail, after_goal }).unwrap();
        let mut batch = Batch::new(&dataset, 6);
        batch.indices_mut().copy_from_slice(&[0, 1, 2, 3, 4, 5]);
        segments.gather(&dataset, &mut batch);
        batch
    }

    #[test]
    fn truncate_and_stop() {
        let batch = gather(KStepTail::Truncate, AfterGoal::Stop);
        assert_eq!(batch.observations().data(), [0., 1., 2., 3., 10., 11.]);
        assert_eq!(batch.next_observations().data(), [1., 2., 3., 4., 11., 12.]);
        assert_eq!(batch.actions().data(), [0.0, 0.1, 0.2, 0.3, 0.5, 0.6]);
        assert_eq!(batch.rewards(), [-1., -2., -4., -8., -16., -32.]);
        assert_eq!(batch.masks(), [1., 1., 0., 1., 1., 1.]);
        assert_eq!(batch.returns_k(), [-2., -4., -4., -8., -32., -32.]);
        assert_eq!(batch.bootstraps_k(), [0.25, 0., 0., 0.5, 0.25, 0.5]);
        assert_eq!(batch.steps_k(), [2, 2, 1, 1, 2, 1]);
        assert_eq!(batch.last_observations().data(), [2., 3., 3., 4., 12., 12.]);
        assert_eq!(batch.weights_k(), [1.; 6]);
    }

    #[test]
    fn summing_goes_on_after_the_goal() {
        let batch = gather(KStepTail::Truncate, AfterGoal::QcSum);
        assert_eq!(batch.returns_k(), [-2., -4., -8., -8., -32., -32.]);
        assert_eq!(batch.bootstraps_k(), [0.25, 0., 0., 0.5, 0.25, 0.5]);
        assert_eq!(batch.last_observations().data(), [2., 3., 4., 4., 12., 12.]);
    }

    #[test]
    fn weights_of_short_windows() {
        let batch = gather(KStepTail::Drop, AfterGoal::Stop);
        assert_eq!(batch.weights_k(), [1.5, 1.5, 1.5, 0., 1.5, 0.]);
        let batch = gather(KStepTail::QcValid, AfterGoal::QcSum);
        assert_eq!(batch.weights_k(), [1., 1., 1., 0., 1., 0.]);
    }

    #[test]
    fn a_goal_completes_a_short_window_except_in_qc() {
        let dataset = dataset();
        let weight = |tail| {
            let config = SegmentConfig { k: 3, gamma: 0.5, tail, ..SegmentConfig::default() };
            let mut batch = Batch::new(&dataset, 1);
            batch.indices_mut()[0] = 2; // two steps left, solved at once
            Segments::new(config).unwrap().gather(&dataset, &mut batch);
            batch.weights_k()[0]
        };
        assert_eq!(weight(KStepTail::Drop), 1.0);
        assert_eq!(weight(KStepTail::QcValid), 0.0);
    }

    #[test]
    fn a_batch_of_only_dropped_rows_has_no_weight() {
        let dataset = dataset();
        let config = SegmentConfig { k: 9, tail: KStepTail::Drop, ..SegmentConfig::default() };
        let mut batch = Batch::new(&dataset, 1);
        batch.indices_mut()[0] = 4;
        Segments::new(config).unwrap().gather(&dataset, &mut batch);
        assert_eq!(batch.weights_k(), [0.0]);
    }

    #[test]
    fn actions_are_repeated_after_the_end_of_an_episode() {
        let dataset = dataset();
        let config = SegmentConfig { chunk: 3, ..SegmentConfig::default() };
        let segments = Segments::new(config).unwrap();
        let mut batch = segments.batch(&dataset, 3);
        batch.indices_mut().copy_from_slice(&[1, 3, 4]);
        segments.gather(&dataset, &mut batch);
        assert_eq!(batch.chunk(), 3);
        assert_eq!(batch.chunks().data(), [0.1, 0.2, 0.3, 0.3, 0.3, 0.3, 0.5, 0.6, 0.6]);
        assert_eq!(batch.valids().data(), [1., 1., 1., 1., 0., 0., 1., 1., 0.]);
        // Neither the 0 of the unused row nor the 0.5 of the next episode.
        assert_eq!(batch.next_actions().data(), [0.2, 0.3, 0.6]);
    }

    #[test]
    #[should_panic(expected = "the batch was made for other chunks")]
    fn a_batch_for_other_chunks() {
        let dataset = dataset();
        let config = SegmentConfig { chunk: 3, ..SegmentConfig::default() };
        Segments::new(config).unwrap().gather(&dataset, &mut Batch::new(&dataset, 1));
    }

    #[test]
    fn some_episode_must_be_long_enough() {
        let fits = |k, chunk, tail| {
            let config = SegmentConfig { k, chunk, tail, ..SegmentConfig::default() };
            Segments::new(config).unwrap().fits(&dataset())
        };
        assert_eq!(fits(9, 4, KStepTail::Truncate), Ok(()));
        assert_eq!(fits(9, 5, KStepTail::Truncate), Err(SegmentError::Short { longest: 4, needed: 5 }));
        for tail in [KStepTail::Drop, KStepTail::QcValid] {
            assert_eq!(fits(4, 4, tail), Ok(()));
            assert_eq!(fits(5, 1, tail), Err(SegmentError::Short { longest: 4, needed: 5 }));
            assert_eq!(fits(1, 7, tail), Err(SegmentError::Short { longest: 4, needed: 7 }));
        }
        assert_eq!(
            fits(10, 1, KStepTail::Drop).unwrap_err().to_string(),
            "no episode is long enough: the longest has 4 steps, the window needs 10; shorten the window or use \
             data with longer episodes"
        );
    }

    #[test]
    fn impossible_options() {
        let message = |k, gamma| {
            Segments::new(SegmentConfig { k, gamma, ..SegmentConfig::default() }).unwrap_err().to_string()
        };
        assert_eq!(message(0, 0.99), "k: found 0, expected 1 to 1000000 steps");
        assert_eq!(message(1, 1.5), "gamma: found 1.5, expected a discount above 0 and at most 1");
        assert!(message(1, f64::NAN).contains("found NaN"));
        for chunk in [0, 1_000_001] {
            let config = SegmentConfig { chunk, ..SegmentConfig::default() };
            let expected = format!("chunk: found {chunk}, expected 1 to 1000000 actions");
            assert_eq!(Segments::new(config).unwrap_err().to_string(), expected);
        }
    }
}
