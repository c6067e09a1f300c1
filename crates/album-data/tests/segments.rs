//! K-step windows against their definition, on random episodes.
#![allow(clippy::unwrap_used)]

use album_data::{AfterGoal, Batch, Dataset, KStepTail, Rows, SegmentConfig, Segments};
use proptest::collection::vec;
use proptest::prelude::*;

/// Episodes whose observations are `[episode, step]`, so that a state tells where it is from.
fn dataset(episodes: &[Vec<(f32, bool)>]) -> Dataset {
    let mut rows = Rows { observation_dim: 2, action_dim: 1, ..Rows::default() };
    for (episode, steps) in episodes.iter().enumerate() {
        for step in 0..=steps.len() {
            // What stands in the last row must not matter.
            let (reward, solved) = steps.get(step).copied().unwrap_or((f32::NAN, true));
            rows.observations.extend([episode as f32, step as f32]);
            rows.actions.push(step as f32 / 1000.0);
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
    (1usize..15, 0.5..1.0f64, tail, after_goal).prop_map(|(k, gamma, tail, after_goal)| SegmentConfig {
        k,
        gamma,
        tail,
        after_goal,
    })
}

fn close(found: f32, expected: f64) -> bool {
    (f64::from(found) - expected).abs() <= 1e-6 * expected.abs().max(1e-30)
}

proptest! {
    #[test]
    fn windows_follow_their_definition(episodes in episodes(), config in any_config()) {
        let dataset = dataset(&episodes);
        let mut batch = Batch::new(&dataset, dataset.len());
        batch.indices_mut().iter_mut().enumerate().for_each(|(i, index)| *index = i);
        Segments::new(config).unwrap().gather(&dataset, &mut batch);

        let full = |steps: &Vec<(f32, bool)>, start: usize| steps.len() - start >= config.k;
        let mut i = 0;
        let mut weights = Vec::new();
        for (episode, steps) in episodes.iter().enumerate() {
            for start in 0..steps.len() {
                // No window leaves its episode.
                let state = |buffer: &[f32]| [buffer[2 * i], buffer[2 * i + 1]];
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
                prop_assert_eq!(batch.actions()[i], dataset.action(i)[0]);
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
}
