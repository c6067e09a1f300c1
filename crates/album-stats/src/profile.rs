//! Performance profiles.

use super::{Scores, StatisticsError};

/// The performance profile: for each threshold, the fraction of all scores strictly above it.
///
/// # Errors
///
/// If the thresholds are not ascending.
///
/// ```
/// use album_stats::{Scores, profile};
/// let scores = Scores::new(&[[0.0, 50.0], [50.0, 100.0]])?;
/// assert_eq!(profile(&scores, &[0.0, 49.0, 50.0, 100.0])?, [0.75, 0.75, 0.25, 0.0]);
/// # Ok::<(), album_stats::StatisticsError>(())
/// ```
pub fn profile(scores: &Scores, thresholds: &[f64]) -> Result<Vec<f64>, StatisticsError> {
    check(thresholds)?;
    let counts = count_above(scores, |x| passed(x, thresholds), thresholds.len());
    Ok(counts.into_iter().map(|count| count as f64 / scores.values().len() as f64).collect())
}

/// Refuses thresholds that are not ascending.
pub(super) fn check(thresholds: &[f64]) -> Result<(), StatisticsError> {
    let mut previous = f64::NEG_INFINITY;
    for (index, &value) in thresholds.iter().enumerate() {
        if !(value >= previous) {
            return Err(StatisticsError::Thresholds { index, value, previous });
        }
        previous = value;
    }
    Ok(())
}

/// The number of the ascending thresholds that a score is above.
pub(super) fn passed(score: f64, thresholds: &[f64]) -> usize {
    thresholds.partition_point(|&threshold| score > threshold)
}

/// For each threshold, the number of scores above it according to `passed`.
pub(super) fn count_above(scores: &Scores, passed: impl Fn(f64) -> usize, thresholds: usize) -> Vec<usize> {
    // Counts scores by the number of thresholds they pass, then sums from the highest threshold down.
    let mut counts = vec![0; thresholds + 1];
    for &score in scores.values() {
        counts[passed(score)] += 1;
    }
    for i in (0..thresholds).rev() {
        counts[i] += counts[i + 1];
    }
    counts.remove(0);
    counts
}
