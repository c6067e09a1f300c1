//! Splits off episodes for validation.

use super::Dataset;
use album_base::rng;

/// Why a dataset cannot be split into training and held-out episodes.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HoldOutError {
    /// The fraction is invalid.
    #[error("found a held-out share of {0}, expected one above 0 and below 1")]
    Share(f64),
    /// One of the two parts would have no transitions.
    #[error("found {0} episode(s) with transitions, expected at least 2 to hold some of them out")]
    TooFew(usize),
}

impl Dataset {
    /// Splits off a fraction of the episodes for validation: `(training, held out)`.
    ///
    /// Episodes stay whole and in order. The held-out ones are drawn from the stream `hold_out` of the seed;
    /// their number is the fraction rounded, with at least one in each part. Both parts share the columns of
    /// this dataset; nothing is copied.
    ///
    /// ```
    /// # use album_data::{Dataset, Rows};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let rows = Rows {
    /// #     observation_dim: 1,
    /// #     action_dim: 1,
    /// #     observations: (0..20).map(|x| x as f32).collect(),
    /// #     actions: vec![0.0; 20],
    /// #     rewards: vec![0.0; 20],
    /// #     masks: vec![1.0; 20],
    /// #     terminals: (0..20).map(|row| row % 2 == 1).collect(),
    /// # };
    /// let dataset = Dataset::from_rows(rows)?; // ten episodes
    /// let (training, held_out) = dataset.hold_out(0.2, 7)?;
    /// assert_eq!((training.episodes().len(), held_out.episodes().len()), (8, 2));
    /// # Ok(())
    /// # }
    /// ```
    pub fn hold_out(&self, share: f64, seed: u64) -> Result<(Self, Self), HoldOutError> {
        if !(share > 0.0 && share < 1.0) {
            return Err(HoldOutError::Share(share));
        }
        // An episode without transitions is useless for training and validation: both parts leave it out.
        let mut episodes: Vec<usize> =
            (0..self.episodes.len()).filter(|&episode| self.episodes.length(episode) > 0).collect();
        let count = episodes.len();
        if count < 2 {
            return Err(HoldOutError::TooFew(count));
        }
        let held = ((share * count as f64).round() as usize).clamp(1, count - 1);
        let mut draw = rng::stream(seed, "hold_out");
        for i in 0..held {
            episodes.swap(i, i + rng::below(&mut draw, (count - i) as u64) as usize);
        }
        let (held_out, training) = episodes.split_at_mut(held);
        let part = |episodes: &mut [usize]| {
            episodes.sort_unstable();
            Self { episodes: self.episodes.part(episodes), ..self.clone() }
        };
        Ok((part(training), part(held_out)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::rows;
    use super::*;
    use crate::Rows;

    /// Episodes of 1 to 20 transitions; every state is its row number.
    fn twenty_episodes() -> Dataset {
        let terminals: Vec<bool> =
            (1..=20).flat_map(|length| (0..=length).map(move |step| step == length)).collect();
        let count = terminals.len();
        Dataset::from_rows(Rows {
            observation_dim: 1,
            action_dim: 2,
            observations: (0..count).map(|row| row as f32).collect(),
            actions: vec![0.5; 2 * count],
            rewards: (0..count).map(|row| -(row as f32)).collect(),
            masks: vec![1.0; count],
            terminals,
        })
        .unwrap()
    }

    #[test]
    fn held_out_episodes_are_whole_and_in_one_part() {
        let data = twenty_episodes();
        let (training, held_out) = data.hold_out(0.25, 3).unwrap();
        assert_eq!((training.episodes().len(), held_out.episodes().len()), (15, 5));
        let mut starts: Vec<f32> = [&training, &held_out]
            .iter()
            .flat_map(|part| (0..part.episodes().len()).map(|e| part.episode_states(e).row(0)[0]))
            .collect();
        starts.sort_by(f32::total_cmp);
        let all: Vec<f32> = (0..20).map(|e| data.episode_states(e).row(0)[0]).collect();
        assert_eq!(starts, all);
        for part in [&training, &held_out] {
            for transition in 0..part.len() {
                let state = part.observation(transition)[0];
                assert_eq!(part.next_observation(transition), [state + 1.0]);
                assert_eq!(part.reward(transition), -state);
            }
            let episode = part.episodes().len() - 1;
            assert_eq!(part.episode_states(episode).rows(), part.episode_actions(episode).rows() + 1);
            assert_eq!(part.episode_rewards(episode).len(), part.episodes().length(episode));
        }
        assert_eq!(data.hold_out(0.25, 3).unwrap(), (training.clone(), held_out));
        assert_ne!(data.hold_out(0.25, 4).unwrap().0, training);
    }

    #[test]
    fn a_part_has_the_hash_of_its_contents() {
        let (training, _) = twenty_episodes().hold_out(0.25, 3).unwrap();
        let lengths = (0..training.episodes().len()).map(|e| training.episodes().length(e));
        let terminals: Vec<bool> =
            lengths.flat_map(|length| (0..=length).map(move |step| step == length)).collect();
        let observations: Vec<f32> = training.states().flatten().copied().collect();
        let copy = Dataset::from_rows(Rows {
            observation_dim: 1,
            action_dim: 2,
            rewards: observations.iter().map(|x| -x).collect(),
            actions: vec![0.5; 2 * observations.len()],
            masks: vec![1.0; observations.len()],
            observations,
            terminals,
        })
        .unwrap();
        assert_eq!(copy, training);
        assert_eq!(copy.content_hash(), training.content_hash());
    }

    #[test]
    fn what_cannot_be_held_out() {
        let data = Dataset::from_rows(rows()).unwrap();
        for share in [0.0, 1.0, -0.5, f64::NAN] {
            assert!(data.hold_out(share, 0).unwrap_err().to_string().contains("above 0 and below 1"));
        }
        let (one, _) = data.hold_out(0.01, 0).unwrap();
        assert_eq!(one.episodes().len(), 1);
        assert_eq!(one.hold_out(0.5, 0), Err(HoldOutError::TooFew(1)));
    }
}
