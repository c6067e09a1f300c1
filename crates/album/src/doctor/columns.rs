//! Ranges of columns.

use serde::Serialize;

/// Statistics of the finite numbers of one column.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Column {
    /// The smallest; like the others, 0 for an empty column.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub std: f64,
}

/// Sums relative to the column's first number, to avoid cancellation.
#[derive(Clone, Copy, Default)]
struct Sums {
    offset: f64,
    count: f64,
    min: f64,
    max: f64,
    sum: f64,
    squares: f64,
}

/// Statistics of all columns.
pub(super) fn ranges<'a>(rows: impl Iterator<Item = &'a [f32]>, width: usize) -> Vec<Column> {
    let mut sums = vec![Sums::default(); width];
    for row in rows {
        for (sums, &x) in sums.iter_mut().zip(row).filter(|(_, x)| x.is_finite()) {
            let x = f64::from(x);
            if sums.count == 0.0 {
                *sums = Sums { offset: x, min: x, max: x, ..Sums::default() };
            }
            let difference = x - sums.offset;
            sums.count += 1.0;
            sums.min = sums.min.min(x);
            sums.max = sums.max.max(x);
            sums.sum += difference;
            sums.squares += difference * difference;
        }
    }
    let column = |sums: &Sums| {
        let count = sums.count.max(1.0);
        let mean = sums.sum / count;
        let std = (sums.squares / count - mean * mean).max(0.0).sqrt();
        Column { min: sums.min, max: sums.max, mean: sums.offset + mean, std }
    };
    sums.iter().map(column).collect()
}
