//! Stratified bootstrap intervals.

use super::improvement::{improvement, share_won};
use super::profile::{check, count_above, passed};
use super::{Scores, StatisticsError};
use album_base::rng;
use rand_chacha::ChaCha8Rng;

/// A stratified bootstrap: each resample draws, for every task, as many of its own runs as it has, with
/// replacement. Interval ends are percentiles of the statistic over the resamples.
///
/// Every call starts the `bootstrap` stream of the seed anew, so that a result does not depend on earlier
/// calls. Matrices of the same shape use the same draws.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bootstrap {
    /// The master seed.
    pub seed: u64,
    /// Number of resamples.
    pub resamples: usize,
    /// The confidence level.
    pub level: f64,
}

/// A confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Whether a value lies inside or at an end.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

impl Bootstrap {
    /// 50,000 resamples, 95 % intervals.
    pub fn new(seed: u64) -> Bootstrap {
        Bootstrap { seed, resamples: 50_000, level: 0.95 }
    }

    /// The interval of a statistic such as [`Scores::iqm`]. With one run it is a point.
    ///
    /// # Errors
    ///
    /// If there are no resamples or the level is not between 0 and 1.
    ///
    /// ```
    /// use album_stats::{Bootstrap, Scores};
    /// let scores = Scores::new(&[[0.0], [1.0]])?;
    /// // A resample of the two is (0, 0), (0, 1), (1, 0) or (1, 1).
    /// let interval = Bootstrap::new(7).interval(&scores, Scores::mean)?;
    /// assert_eq!((interval.low, interval.high), (0.0, 1.0));
    /// let gap = Bootstrap::new(7).interval(&scores, |scores| scores.optimality_gap(1.0))?;
    /// assert!(gap.contains(0.5));
    /// # Ok::<(), album_stats::StatisticsError>(())
    /// ```
    pub fn interval(
        &self,
        scores: &Scores,
        statistic: impl Fn(&Scores) -> f64,
    ) -> Result<Interval, StatisticsError> {
        let mut rng = self.begin()?;
        let mut drawn = scores.clone();
        let answers = (0..self.resamples).map(|_| {
            scores.redraw_into(&mut drawn, below(&mut rng));
            statistic(&drawn)
        });
        Ok(self.percentiles(answers.collect()))
    }

    /// The interval of a statistic of two methods, such as the difference of their means. The runs of each
    /// are resampled independently, so they need not have the same number of runs.
    ///
    /// # Errors
    ///
    /// As [`Bootstrap::interval`].
    ///
    /// ```
    /// use album_stats::{Bootstrap, Scores};
    /// let (new, old) = (Scores::new(&[[5.0], [7.0]])?, Scores::new(&[[1.0], [2.0], [3.0]])?);
    /// let change = Bootstrap::new(0).between(&new, &old, |new, old| new.mean() - old.mean())?;
    /// assert!(change.low >= 2.0 && change.contains(4.0) && change.high <= 6.0);
    /// # Ok::<(), album_stats::StatisticsError>(())
    /// ```
    pub fn between(
        &self,
        x: &Scores,
        y: &Scores,
        statistic: impl Fn(&Scores, &Scores) -> f64,
    ) -> Result<Interval, StatisticsError> {
        let mut rng = self.begin()?;
        let (mut drawn_x, mut drawn_y) = (x.clone(), y.clone());
        let answers = (0..self.resamples).map(|_| {
            x.redraw_into(&mut drawn_x, below(&mut rng));
            y.redraw_into(&mut drawn_y, below(&mut rng));
            statistic(&drawn_x, &drawn_y)
        });
        Ok(self.percentiles(answers.collect()))
    }

    /// The interval of [`improvement`], resampling the runs of both methods.
    ///
    /// # Errors
    ///
    /// If the methods have different numbers of tasks, or as [`Bootstrap::interval`].
    pub fn improvement(&self, x: &Scores, y: &Scores) -> Result<Interval, StatisticsError> {
        improvement(x, y)?;
        self.between(x, y, share_won)
    }

    /// The pointwise band of a [`super::profile`]: an interval for each threshold.
    ///
    /// # Errors
    ///
    /// If the thresholds are not ascending numbers, or as [`Bootstrap::interval`].
    pub fn profile(&self, scores: &Scores, thresholds: &[f64]) -> Result<Vec<Interval>, StatisticsError> {
        check(thresholds)?;
        let mut rng = self.begin()?;
        // Only the thresholds that a score passes matter, so they are looked up once.
        let mut places = scores.clone();
        places.map(|score| passed(score, thresholds) as f64);
        let mut drawn = places.clone();
        let total = scores.values().len();
        // Counts instead of lists of fractions, which would be large for many thresholds.
        let mut seen = vec![vec![0usize; total + 1]; thresholds.len()];
        for _ in 0..self.resamples {
            places.redraw_into(&mut drawn, below(&mut rng));
            let counts = count_above(&drawn, |place| place as usize, thresholds.len());
            for (seen, count) in seen.iter_mut().zip(counts) {
                seen[count] += 1;
            }
        }
        let share = |count| count as f64 / total as f64;
        Ok(seen.iter().map(|seen| self.ends(|rank| share(count_of_rank(seen, rank)))).collect())
    }

    fn begin(&self) -> Result<ChaCha8Rng, StatisticsError> {
        if self.resamples == 0 {
            return Err(StatisticsError::NoResamples);
        }
        if !(self.level > 0.0 && self.level < 1.0) {
            return Err(StatisticsError::Level(self.level));
        }
        Ok(rng::stream(self.seed, "bootstrap"))
    }

    fn percentiles(&self, mut answers: Vec<f64>) -> Interval {
        answers.sort_by(f64::total_cmp);
        self.ends(|rank| answers[rank])
    }

    /// The interval ends among the sorted resamples, interpolated between neighbours.
    fn ends(&self, of_rank: impl Fn(usize) -> f64) -> Interval {
        let last = self.resamples - 1;
        let at = |share: f64| {
            let place = share * last as f64;
            let rank = place as usize;
            let (below, above) = (of_rank(rank), of_rank((rank + 1).min(last)));
            below + (place - rank as f64) * (above - below)
        };
        let outside = (1.0 - self.level) / 2.0;
        Interval { low: at(outside), high: at(1.0 - outside) }
    }
}

fn below(rng: &mut ChaCha8Rng) -> impl FnMut(usize) -> usize {
    |n| rng::below(rng, n as u64) as usize
}

/// The entry of this rank in a sorted list that contains `i` `seen[i]` times.
fn count_of_rank(seen: &[usize], rank: usize) -> usize {
    let mut before = 0;
    for (count, times) in seen.iter().enumerate() {
        before += times;
        if rank < before {
            return count;
        }
    }
    seen.len() - 1
}
