//! K-step windows against their definition, on random episodes.
#![allow(clippy::unwrap_used)]

use album_data::{AfterGoal, Batch, Dataset, KStepTail, Rows, SegmentConfig, SegmentError, Segments, View};
use proptest::collection::vec;
use proptest::prelude::*;

/// An action that tells where it is from, as the observation does.
fn action(episode: usize, step: usize) -> [f32; 2] {
    [episode as f32 / 16.0, step as f32 / 16.0]
}

/// Episodes whose observations are `[episode, step]`, so that a state tells where it is from.
fn dataset(episodes: &[Vec<(f32, bool)>]) -> Dataset {
    let mut rows = Rows { observation_dim: 2, action_dim: 2, ..Rows::default() };
    for (episode, steps) in episodes.iter().enumerate() {
        for step in 0..=steps.len() {
            // What stands in the last row must not matter.
            let (reward, solved) = steps.get(step).copied().unwrap_or((f32::NAN, true));
            rows.observations.extend([episode as f32, step as f32]);
            rows.actions.extend(action(episode, step));
            rows.rewards.push(reward);
            rows.masks.push(if solved { 0.0 } else { 1.0 });
            rows.terminals.push(step == steps.len());
        }
    }
    Dataset::from_rows(rows).unwrap()
}

fn episodes() -> impl Strategy<Value = Vec<Vec<(f32, bool)>>> {
    vec(vec((-3.0f32..1.0, proptest::bool::weighted(0.1)), 1..12), 1..6)
}

fn any_config() -> impl Strategy<Value = SegmentConfig> {
    let tail = prop_oneof![Just(KStepTail::Truncate), Just(KStepTail::Drop), Just(KStepTail::QcValid)];
    let after_goal = prop_oneof![Just(AfterGoal::Stop), Just(AfterGoal::QcSum)];
    (1usize..15, 1usize..15, 0.5..1.0f64, tail, after_goal)
        .prop_map(|(k, chunk, gamma, tail, after_goal)| SegmentConfig { k, chunk, gamma, tail, after_goal })
}

fn close(found: f32, expected: f64) -> bool {
    (f64::from(found) - expected).abs() <= 1e-6 * expected.abs().max(1e-30)
}

/// A batch of all transitions in order.
fn all(dataset: &Dataset, config: SegmentConfig) -> Batch {
    let segments = Segments::new(config).unwrap();
    let mut batch = segments.batch(dataset, dataset.len());
    batch.indices_mut().iter_mut().enumerate().for_each(|(i, index)| *index = i);
    segments.gather(dataset, &mut batch);
    batch
}

proptest! {
    #[test]
    fn windows_follow_their_definition(episodes in episodes(), config in any_config()) {
        let dataset = dataset(&episodes);
        let batch = all(&dataset, config);

        let full = |steps: &Vec<(f32, bool)>, start: usize| steps.len() - start >= config.k;
        let mut i = 0;
        let mut weights = Vec::new();
        for (episode, steps) in episodes.iter().enumerate() {
            for start in 0..steps.len() {
                // No window leaves its episode.
                let state = |view: View<'_>| [view.row(i)[0], view.row(i)[1]];
                prop_assert_eq!(state(batch.observations()), [episode as f32, start as f32]);
                prop_assert_eq!(state(batch.next_observations()), [episode as f32, start as f32 + 1.0]);
                let last = state(batch.last_observations());
                prop_assert_eq!(last[0], episode as f32);
                prop_assert_eq!(last[1], (start as u32 + batch.steps_k()[i]) as f32);
                prop_assert!(last[1] as usize <= steps.len() && last[1] as usize > start);

                // Sums and factors by the definition, one step at a time.
                let (mut sum, mut factor, mut ended, mut solved) = (0.0f64, 1.0f64, false, false);
                for &(reward, goal) in steps[start..].iter().take(config.k) {
                    if !ended {
                        sum += factor * f64::from(reward);
                    }
                    factor *= config.gamma;
                    solved |= goal;
                    ended |= goal && config.after_goal == AfterGoal::Stop;
                }
                prop_assert!(close(batch.returns_k()[i], sum), "{} {sum}", batch.returns_k()[i]);
                let expected = if solved { 0.0 } else { factor };
                prop_assert!(close(batch.bootstraps_k()[i], expected), "{expected}");
                prop_assert_eq!(batch.rewards()[i], steps[start].0);
                prop_assert_eq!(batch.masks()[i] == 0.0, steps[start].1);
                prop_assert_eq!(batch.actions().row(i), dataset.action(i));
                weights.push(match config.tail {
                    KStepTail::Truncate => 1.0f32,
                    KStepTail::QcValid => f32::from(u8::from(full(steps, start))),
                    KStepTail::Drop => f32::from(u8::from(full(steps, start) || ended)),
                });
                i += 1;
            }
        }
        prop_assert_eq!(i, dataset.len());
        if config.tail == KStepTail::Drop {
            let counted: f32 = weights.iter().sum();
            weights.iter_mut().for_each(|w| *w *= i as f32 / counted.max(1.0));
        }
        prop_assert_eq!(batch.weights_k(), &weights[..]);
    }

    #[test]
    fn actions_follow_their_definition(episodes in episodes(), config in any_config()) {
        let dataset = dataset(&episodes);
        let batch = all(&dataset, config);
        let (mut actions, mut next_actions, mut chunks, mut valids) = (vec![], vec![], vec![], vec![]);
        for (episode, steps) in episodes.iter().enumerate() {
            let recorded: Vec<_> = (0..steps.len()).map(|step| action(episode, step)).collect();
            for start in 0..steps.len() {
                // The recorded actions, with the last one again and again behind them.
                let mut left = recorded[start..].iter().chain(std::iter::repeat(&recorded[steps.len() - 1]));
                actions.extend(recorded[start]);
                next_actions.extend(*left.clone().nth(1).unwrap());
                chunks.extend(left.by_ref().take(config.chunk).flatten().copied());
                valids.extend((start..start + config.chunk).map(|i| if i < steps.len() { 1.0 } else { 0.0 }));
            }
        }
        prop_assert_eq!(batch.chunk(), config.chunk);
        prop_assert_eq!(batch.actions().data(), &actions[..]);
        prop_assert_eq!(batch.next_actions().data(), &next_actions[..]);
        prop_assert_eq!(batch.chunks().data(), &chunks[..]);
        prop_assert_eq!(batch.valids().data(), &valids[..]);
        if config.chunk == 1 {
            prop_assert_eq!(batch.chunks(), batch.actions());
        }
    }

    /// The sampling of Q-chunking, one transition per row with a terminal flag: windows of `h` rows that may go on
    /// in the next episode, with running sums, minima of masks and maxima of terminals.
    #[test]
    fn valid_windows_are_those_of_q_chunking(episodes in episodes(), h in 1usize..8, gamma in 0.5..1.0f64) {
        let dataset = dataset(&episodes);
        let (tail, after_goal) = (KStepTail::QcValid, AfterGoal::QcSum);
        let batch = all(&dataset, SegmentConfig { k: h, chunk: h, gamma, tail, after_goal });
        for start in 0..dataset.len() {
            let valids = batch.valids().row(start);
            // Of a row that only has a weight if all its actions are valid.
            prop_assert_eq!(batch.weights_k()[start], valids[h - 1]);
            if start + h > dataset.len() {
                prop_assert_eq!(batch.weights_k()[start], 0.0);
                continue;
            }
            let (mut sum, mut mask, mut terminal) = (0.0f64, 1.0f32, false);
            for i in 0..h {
                prop_assert_eq!(valids[i] == 1.0, !terminal);
                let row = start + i;
                sum += gamma.powi(i as i32) * f64::from(dataset.reward(row));
                mask = mask.min(dataset.mask(row));
                terminal |= dataset.terminal(row);
            }
            if batch.weights_k()[start] == 1.0 {
                prop_assert!(close(batch.returns_k()[start], sum), "{} {sum}", batch.returns_k()[start]);
                let bootstrap = gamma.powi(h as i32) * f64::from(mask);
                prop_assert!(close(batch.bootstraps_k()[start], bootstrap), "{bootstrap}");
                let last = dataset.next_observation(start + h - 1);
                prop_assert_eq!(batch.last_observations().row(start), last);
                let actions: Vec<f32> =
                    (start..start + h).flat_map(|row| dataset.action(row)).copied().collect();
                prop_assert_eq!(batch.chunks().row(start), &actions[..]);
            }
        }
    }

    #[test]
    fn data_fits_if_some_row_is_whole(episodes in episodes(), config in any_config()) {
        let dataset = dataset(&episodes);
        let batch = all(&dataset, config);
        let chunk = batch.valids().iter().any(|row| row.iter().all(|&valid| valid == 1.0));
        let window = config.tail == KStepTail::Truncate
            || episodes.iter().any(|steps| steps.len() >= config.k);
        let fits = Segments::new(config).unwrap().fits(&dataset);
        prop_assert_eq!(fits.is_ok(), chunk && window, "{:?}", fits);
        if let Err(SegmentError::Short { longest, needed }) = fits {
            prop_assert_eq!(longest, episodes.iter().map(Vec::len).max().unwrap());
            prop_assert!(needed > longest && (needed == config.k || needed == config.chunk));
        }
    }
}
