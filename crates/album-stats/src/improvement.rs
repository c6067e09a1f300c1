//! The probability of improvement.

use super::{Scores, StatisticsError};

/// The probability that a run of `x` scores higher than a run of `y` on the same task, with ties counted as
/// half, averaged over tasks. For each task it is the Mann-Whitney statistic divided by the number of pairs.
/// The two may have different numbers of runs.
///
/// # Errors
///
/// If they have different numbers of tasks.
///
/// ```
/// use album_stats::{Scores, improvement};
/// let x = Scores::new(&[[1.0], [3.0]])?;
/// let y = Scores::new(&[[0.0], [3.0]])?;
/// // 1 > 0, 1 < 3, 3 > 0, 3 = 3
/// assert_eq!(improvement(&x, &y)?, 2.5 / 4.0);
/// # Ok::<(), album_stats::StatisticsError>(())
/// ```
pub fn improvement(x: &Scores, y: &Scores) -> Result<f64, StatisticsError> {
    if x.tasks() != y.tasks() {
        return Err(StatisticsError::TasksDiffer { left: x.tasks(), right: y.tasks() });
    }
    Ok(share_won(x, y))
}

/// [`improvement`] of matrices with equal numbers of tasks.
pub(super) fn share_won(x: &Scores, y: &Scores) -> f64 {
    // Counted in halves, which is exact.
    let halves: u64 = (0..x.tasks()).map(|task| halves_won(x.task(task), y.task(task))).sum();
    halves as f64 / (2 * x.runs() * y.runs() * x.tasks()) as f64
}

fn halves_won(x: &[f64], y: &[f64]) -> u64 {
    let halves_won_by = |a: f64| y.iter().map(|&b| u64::from(a > b) + u64::from(a >= b)).sum::<u64>();
    x.iter().map(|&a| halves_won_by(a)).sum()
}
