//! Mean, median and standard deviation of a list.

/// The divisor of the sum of squared deviations from the mean. Papers differ, and with 8 seeds so do the
/// numbers, by 7 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Divisor {
    /// The number of values ("population", ddof 0).
    Count,
    /// One less than the number of values ("sample", ddof 1).
    CountLessOne,
}

/// The mean; `None` for an empty list, NaN if any value is NaN.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| sum(values.iter().copied()) / values.len() as f64)
}

/// The middle value, or the mean of the two middle values; `None` for an empty list.
///
/// ```
/// assert_eq!(album_stats::median([3.0, 1.0, 8.0]), Some(3.0));
/// assert_eq!(album_stats::median([3.0, 1.0]), Some(2.0));
/// ```
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n.is_multiple_of(2) => mean(&values[middle - 1..=middle]),
        _ => Some(values[middle]),
    }
}

/// The standard deviation; `None` if the divisor is not positive, NaN if any value is NaN.
///
/// ```
/// use album_stats::{Divisor, deviation};
/// assert_eq!(deviation(&[1.0, 3.0], Divisor::Count), Some(1.0));
/// assert_eq!(deviation(&[1.0, 3.0], Divisor::CountLessOne), Some(2f64.sqrt()));
/// assert_eq!(deviation(&[1.0], Divisor::Count), Some(0.0));
/// assert_eq!(deviation(&[1.0], Divisor::CountLessOne), None);
/// ```
pub fn deviation(values: &[f64], divisor: Divisor) -> Option<f64> {
    let center = mean(values)?;
    let count = match divisor {
        Divisor::Count => values.len(),
        Divisor::CountLessOne => values.len() - 1,
    };
    (count > 0).then(|| (sum(values.iter().map(|x| (x - center).powi(2))) / count as f64).sqrt())
}

/// A compensated sum (Neumaier), so that the order of the values hardly matters.
pub(super) fn sum(values: impl IntoIterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0, 0.0);
    for x in values {
        let next: f64 = sum + x;
        lost += if sum.abs() >= x.abs() { (sum - next) + x } else { (x - next) + sum };
        sum = next;
    }
    sum + lost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_carry_what_is_lost() {
        assert_eq!(sum([1.0, 1e100, 1.0, -1e100]), 2.0);
        assert_eq!(sum([]), 0.0);
    }

    #[test]
    fn lists_without_an_answer() {
        assert_eq!(mean(&[]), None);
        assert_eq!(deviation(&[], Divisor::Count), None);
        assert_eq!(deviation(&[], Divisor::CountLessOne), None);
        assert!(mean(&[1.0, f64::NAN]).is_some_and(f64::is_nan));
        assert!(deviation(&[1.0, f64::NAN], Divisor::Count).is_some_and(f64::is_nan));
    }

    #[test]
    fn equal_values_do_not_deviate() {
        assert_eq!(deviation(&[0.1; 10], Divisor::CountLessOne), Some(0.0));
        // The naive formula (mean of squares minus squared mean) loses all digits here.
        assert_eq!(deviation(&[1e9 + 1.0, 1e9 - 1.0], Divisor::Count), Some(1.0));
    }
}
