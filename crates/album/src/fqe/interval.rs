//! Means with 95 % intervals, from per-episode values of every ensemble member.

use super::unseen::Unseen;
use album_base::rng;
use serde::{Deserialize, Serialize};

/// A mean with its 95 % interval, in units of the data's rewards.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// Widens the interval to include a second estimate at distance `apart`, and the bounds on unseen behaviour.
    pub(crate) fn widened(self, apart: f64, unseen: &Unseen) -> Self {
        let other = self.mean + apart;
        Estimate {
            low: self.low.min(other) - unseen.below,
            high: self.high.max(other) + unseen.above,
            ..self
        }
    }

    /// Widens the interval on the side of the error that the same estimator made for the behaviour, whose return is
    /// known: an estimator that is too high there may be so here.
    pub(crate) fn with_gap(self, gap: f64) -> Self {
        Estimate { low: self.low - gap.max(0.0), high: self.high + (-gap).max(0.0), ..self }
    }
}

/// Values per episode (rows) and ensemble member (columns).
#[derive(Clone, Debug)]
pub(crate) struct Values {
    pub members: usize,
    pub values: Vec<f64>,
}

const RESAMPLES: usize = 2000;

impl Values {
    pub fn new(members: usize, values: impl Iterator<Item = f64>) -> Self {
        Values { members, values: values.collect() }
    }

    /// Mean over the members, for each episode.
    pub fn by_episode(&self) -> Vec<f64> {
        self.values.chunks_exact(self.members).map(mean).collect()
    }

    /// Mean over the episodes, for each member.
    pub fn by_member(&self) -> Vec<f64> {
        let member_values =
            |member| self.values.iter().skip(member).step_by(self.members).copied().collect::<Vec<_>>();
        (0..self.members).map(|member| mean(&member_values(member))).collect()
    }

    /// Differences, member by member.
    pub fn minus(&self, other: &Self) -> Self {
        Values::new(self.members, self.values.iter().zip(&other.values).map(|(x, y)| x - y))
    }

    /// The mean with its interval. Two half-widths are added in quadrature: Student's t interval over the members,
    /// each trained on its own bootstrap resample, and a percentile bootstrap over the episodes.
    pub fn estimate(&self, seed: u64) -> Estimate {
        let (episodes, members) = (self.by_episode(), self.by_member());
        let mean = mean(&episodes);
        let spread = student(self.members - 1) * deviation(&members);
        let [low, high] = bootstrap(episodes.len(), seed, |drawn| {
            drawn.iter().map(|&episode| episodes[episode]).sum::<f64>() / drawn.len() as f64
        });
        Estimate { mean, low: mean - spread.hypot(mean - low), high: mean + spread.hypot(high - mean) }
    }
}

/// The 2.5th and 97.5th percentile of a statistic under a bootstrap over `n` episodes.
pub(crate) fn bootstrap(n: usize, seed: u64, statistic: impl Fn(&[usize]) -> f64) -> [f64; 2] {
    let mut draw = rng::stream(seed, "fqe bootstrap");
    let mut drawn = vec![0; n];
    let mut answers: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            drawn.fill_with(|| rng::below(&mut draw, n as u64) as usize);
            statistic(&drawn)
        })
        .collect();
    answers.sort_by(f64::total_cmp);
    [quantile(&answers, 0.025), quantile(&answers, 0.975)]
}

/// Quantile of sorted numbers, by linear interpolation.
pub(crate) fn quantile(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let at = q * last as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    if below == above { below } else { below + (above - below) * at.fract() }
}

pub(crate) fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len().max(1) as f64
}

/// Sample standard deviation; 0 for a single number.
pub(crate) fn deviation(x: &[f64]) -> f64 {
    let centre = mean(x);
    (x.iter().map(|x| (x - centre).powi(2)).sum::<f64>() / x.len().saturating_sub(1).max(1) as f64).sqrt()
}

/// The 97.5 % quantile of Student's t distribution.
fn student(degrees: usize) -> f64 {
    const POINTS: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    // From 11 degrees of freedom on, within 0.02 of the exact quantile.
    POINTS.get(degrees.saturating_sub(1)).copied().unwrap_or(1.96 + 2.5 / degrees as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_has_the_spread_of_episodes_and_of_members() {
        // Members agree and episodes differ: the interval follows from the standard error of the mean.
        let episodes = Values::new(2, (0..400).map(|i| f64::from(i / 2 % 10)));
        let estimate = episodes.estimate(0);
        let error = deviation(&episodes.by_episode()) / 200f64.sqrt();
        assert_eq!(estimate.mean, 4.5);
        assert!((estimate.high - 4.5 - 1.96 * error).abs() < 0.1 * error, "{estimate:?} {error}");
        // Episodes agree and members differ: Student's t interval.
        let members = Values::new(5, (0..500).map(|i| f64::from(i % 5)));
        let estimate = members.estimate(0);
        assert!((estimate.mean - 2.0).abs() < 1e-12);
        assert!((estimate.high - 2.0 - 2.776 * 2.5f64.sqrt()).abs() < 1e-9, "{estimate:?}");
        assert!((estimate.low + estimate.high - 4.0).abs() < 1e-9);
        assert_eq!(members.minus(&members).estimate(0), Estimate { mean: 0.0, low: 0.0, high: 0.0 });
    }

    #[test]
    fn room_for_another_estimate() {
        let estimate = Estimate { mean: 5.0, low: 4.0, high: 6.0 };
        let unseen = Unseen { weight: 0.1, below: 1.0, above: 2.0, walked: 0.0 };
        assert_eq!(estimate.widened(-3.0, &unseen), Estimate { mean: 5.0, low: 1.0, high: 8.0 });
        assert_eq!(estimate.widened(0.5, &unseen), Estimate { mean: 5.0, low: 3.0, high: 8.0 });
        // The behaviour was estimated too high, or too low.
        assert_eq!(estimate.with_gap(0.5), Estimate { mean: 5.0, low: 3.5, high: 6.0 });
        assert_eq!(estimate.with_gap(-0.5), Estimate { mean: 5.0, low: 4.0, high: 6.5 });
    }

    #[test]
    fn quantiles() {
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.5), 2.0);
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.75), 3.0);
        assert!(quantile(&[], 0.5).is_nan());
    }
}
