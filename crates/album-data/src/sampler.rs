//! Sampling of transitions for training steps.

use rand_chacha::ChaCha8Rng;

use album_base::rng;

/// Draws transitions with replacement: each of them, or each group of them, equally often.
///
/// The draws of a step are a pure function of the seed and the step, computed without those before: a resumed
/// run needs only its step. Every step has its own ChaCha stream under the key of the stream `sampler`, in
/// which biased draws are redrawn, so that all transitions are equally likely.
///
/// ```
/// use album_data::Sampler;
/// let sampler = Sampler::new(7, 1_000_000);
/// let (mut batch, mut again) = ([0; 256], [0; 256]);
/// sampler.fill(123_456, &mut batch);
/// Sampler::new(7, 1_000_000).fill(123_456, &mut again);
/// assert_eq!(batch, again);
/// ```
#[derive(Debug, Clone)]
pub struct Sampler {
    key: ChaCha8Rng,
    draws: Draws,
}

#[derive(Debug, Clone)]
enum Draws {
    /// Of this many transitions.
    Even(usize),
    /// Of a group, then of its transitions. They lie in `members[starts[group]..starts[group + 1]]`.
    Groups { members: Vec<u32>, starts: Vec<usize> },
}

impl Sampler {
    /// A sampler of this many transitions.
    ///
    /// # Panics
    ///
    /// If there are none.
    pub fn new(seed: u64, transitions: usize) -> Self {
        assert!(transitions > 0, "there is nothing to draw from");
        Self { key: rng::stream(seed, "sampler"), draws: Draws::Even(transitions) }
    }

    /// Draws each group equally often, and each transition of a group as often as the others. `group_of` has the
    /// group of every transition; groups are numbered from 0.
    ///
    /// # Panics
    ///
    /// If there are no transitions, or more than 2^32.
    pub fn balanced(seed: u64, group_of: &[u32]) -> Self {
        assert!(!group_of.is_empty(), "there is nothing to draw from");
        assert!(u32::try_from(group_of.len()).is_ok(), "too many transitions to number them in 32 bits");
        let mut members: Vec<u32> = (0..group_of.len() as u32).collect();
        members.sort_by_key(|&transition| group_of[transition as usize]);
        let group = |&transition: &u32| group_of[transition as usize];
        let sizes = members.chunk_by(|a, b| group(a) == group(b)).map(<[u32]>::len);
        let ends = sizes.scan(0, |end, size| {
            *end += size;
            Some(*end)
        });
        let starts = std::iter::once(0).chain(ends).collect();
        Self { key: rng::stream(seed, "sampler"), draws: Draws::Groups { members, starts } }
    }

    /// The transitions of one step.
    pub fn fill(&self, step: u64, indices: &mut [usize]) {
        let mut rng = self.key.clone();
        rng.set_stream(step);
        let mut below = |n: usize| rng::below(&mut rng, n as u64) as usize;
        indices.fill_with(|| match &self.draws {
            Draws::Even(transitions) => below(*transitions),
            Draws::Groups { members, starts } => {
                let group = below(starts.len() - 1);
                let (first, end) = (starts[group], starts[group + 1]);
                members[first + below(end - first)] as usize
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(seed: u64, step: u64, transitions: usize) -> [usize; 6] {
        let mut indices = [0; 6];
        Sampler::new(seed, transitions).fill(step, &mut indices);
        indices
    }

    /// Must never change: results identified by their seed depend on it. Computed by another implementation
    /// of ChaCha8.
    #[test]
    fn golden() {
        assert_eq!(draw(0, 0, 1_000_000), [560551, 111048, 338793, 985293, 554543, 78684]);
        assert_eq!(draw(0, 1, 1_000_000), [87688, 117557, 800137, 306432, 356201, 228441]);
        assert_eq!(draw(7, 999_999, 1_000_000), [629352, 108640, 358148, 528017, 498727, 220135]);
        assert_eq!(draw(u64::MAX, u64::MAX, 12_345), [11482, 5383, 8616, 10987, 1512, 1828]);
    }

    #[test]
    fn groups_are_drawn_equally_often() {
        // One transition of group 1 among 999 of group 0 and 24 of group 2.
        let group_of: Vec<u32> =
            (0..1024).map(|t| if t == 500 { 1 } else { 2 * u32::from(t >= 1000) }).collect();
        let sampler = Sampler::balanced(3, &group_of);
        let (mut groups, mut last, mut batch) = ([0u32; 3], [0u32; 24], [0; 300]);
        for step in 0..1000 {
            sampler.fill(step, &mut batch);
            for &t in &batch {
                groups[group_of[t] as usize] += 1;
                if t >= 1000 {
                    last[t - 1000] += 1;
                }
            }
        }
        // Five standard deviations.
        assert!(groups.iter().all(|&n| n.abs_diff(100_000) < 1300), "{groups:?}");
        assert!(last.iter().all(|&n| n.abs_diff(100_000 / 24) < 330), "{last:?}");
    }

    #[test]
    fn steps_and_seeds_differ() {
        assert_eq!(draw(3, 5, 1000), draw(3, 5, 1000));
        assert_ne!(draw(3, 5, 1000), draw(3, 6, 1000));
        assert_ne!(draw(3, 5, 1000), draw(4, 5, 1000));
    }

    #[test]
    fn a_longer_batch_starts_the_same() {
        let sampler = Sampler::new(1, 77);
        let (mut short, mut long) = ([0; 5], [0; 50]);
        sampler.fill(9, &mut short);
        sampler.fill(9, &mut long);
        assert_eq!(short, long[..5]);
    }

    #[test]
    fn every_transition_is_equally_likely() {
        const KINDS: usize = 1000;
        let sampler = Sampler::new(42, KINDS);
        let mut counts = vec![0u32; KINDS];
        let mut batch = [0; 250];
        for step in 0..4000 {
            sampler.fill(step, &mut batch);
            batch.iter().for_each(|&i| counts[i] += 1);
        }
        let expected = 1e6 / KINDS as f64;
        let chi_square: f64 = counts.iter().map(|&n| (f64::from(n) - expected).powi(2) / expected).sum();
        // The 99.9 % point of chi-square with 999 degrees of freedom is 1142.8.
        assert!(chi_square < 1142.8, "{chi_square}");
        // The 0.1 % point is 866.9: less would be too even to be random.
        assert!(chi_square > 866.9, "{chi_square}");
    }
}
