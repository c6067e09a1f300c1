//! Ranges of columns, and numbers that stand out.

use serde::Serialize;

/// The finite numbers of one column.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Column {
    /// The least; 0 if there is none, as for all others.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation.
    pub std: f64,
}

/// Numbers of a kind: how many, and where the first one stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Located {
    /// The array.
    pub array: &'static str,
    /// How many, where they were counted.
    pub count: Option<usize>,
    /// Row of the first one.
    pub row: usize,
    /// Its column, in arrays that have some.
    pub column: Option<usize>,
    /// What it is.
    pub value: String,
}

impl Located {
    pub(super) fn new(
        array: &'static str,
        count: Option<usize>,
        row: usize,
        column: Option<usize>,
        value: f32,
    ) -> Self {
        Self { array, count, row, column, value: value.to_string() }
    }
}

/// Sums of one column, relative to a number of it so that nothing cancels.
#[derive(Clone, Copy)]
struct Sums {
    offset: f64,
    count: f64,
    min: f32,
    max: f32,
    sum: f64,
    squares: f64,
}

/// The ranges of all columns over the rows that count, and the numbers that are none.
pub(super) fn columns(
    array: &'static str,
    data: &[f32],
    width: usize,
    counts: impl Fn(usize) -> bool,
) -> (Vec<Column>, Option<Located>) {
    let empty =
        Sums { offset: 0.0, count: 0.0, min: f32::INFINITY, max: f32::NEG_INFINITY, sum: 0.0, squares: 0.0 };
    let mut sums = vec![empty; width];
    for (row, numbers) in data.chunks_exact(width.max(1)).enumerate() {
        if !counts(row) {
            continue;
        }
        for (sums, &x) in sums.iter_mut().zip(numbers) {
            if x.is_finite() {
                if sums.count == 0.0 {
                    sums.offset = f64::from(x);
                }
                let difference = f64::from(x) - sums.offset;
                sums.count += 1.0;
                sums.min = sums.min.min(x);
                sums.max = sums.max.max(x);
                sums.sum += difference;
                sums.squares += difference * difference;
            }
        }
    }
    let columns = sums.iter().map(|sums| {
        if sums.count == 0.0 {
            return Column { min: 0.0, max: 0.0, mean: 0.0, std: 0.0 };
        }
        let mean = sums.sum / sums.count;
        Column {
            min: f64::from(sums.min),
            max: f64::from(sums.max),
            mean: sums.offset + mean,
            std: (sums.squares / sums.count - mean * mean).max(0.0).sqrt(),
        }
    });
    (columns.collect(), first(array, data, width, counts, |x| !x.is_finite()))
}

/// How many numbers of the rows that count are as asked, and where the first one is.
pub(super) fn first(
    array: &'static str,
    data: &[f32],
    width: usize,
    counts: impl Fn(usize) -> bool,
    asked: impl Fn(f32) -> bool,
) -> Option<Located> {
    let mut found: Option<Located> = None;
    let mut count = 0;
    for (row, numbers) in data.chunks_exact(width.max(1)).enumerate() {
        let here = numbers.iter().filter(|&&x| asked(x)).count();
        if here == 0 || !counts(row) {
            continue;
        }
        count += here;
        if found.is_none() {
            let column = numbers.iter().position(|&x| asked(x)).unwrap_or(0);
            let in_columns = !matches!(array, "rewards" | "masks");
            found = Some(Located::new(array, None, row, in_columns.then_some(column), numbers[column]));
        }
    }
    found.map(|found| Located { count: Some(count), ..found })
}
