//! Ranges of columns.

use album_data::ActionSpace;
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

/// Statistics of actions within [-1, 1], converted to the units of the recording.
pub(super) fn in_units(columns: Vec<Column>, space: &ActionSpace) -> Vec<Column> {
    let ActionSpace::Continuous { low, high } = space else { return columns };
    let convert = |(i, column): (usize, Column)| {
        let (low, high) = (f64::from(low[i]), f64::from(high[i]));
        let (middle, half) = ((high + low) / 2.0, (high - low) / 2.0);
        let [min, max, mean] = [column.min, column.max, column.mean].map(|x| middle + half * x);
        Column { min, max, mean, std: half * column.std }
    };
    columns.into_iter().enumerate().map(convert).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_have_the_units_of_the_recording() {
        let space = ActionSpace::Continuous { low: vec![-300.0], high: vec![100.0] };
        let scaled = Column { min: -1.0, max: 0.5, mean: 0.0, std: 0.25 };
        let found = in_units(vec![scaled], &space)[0];
        assert_eq!(found, Column { min: -300.0, max: 0.0, mean: -100.0, std: 50.0 });
        assert_eq!(in_units(vec![scaled], &ActionSpace::unit(1)), [scaled]);
    }
}
