//! Fewer points, same picture: what cannot be told apart on the screen is merged, and
//! extremes are kept, so that a single outlier among ten thousand points stays visible.

use std::collections::BTreeSet;

/// A point in pixels.
pub(crate) type Point = (f64, f64);

/// Thins a polyline: of each run of points in one pixel column, the first, the lowest, the
/// highest and the last one stay, in their order.
///
/// `width` is the visible width; everything left of it counts as one column, and so does
/// everything right of it.
pub(crate) fn line(points: &[Point], width: f64) -> Vec<Point> {
    let column = |p: &Point| p.0.floor().clamp(-1.0, width.ceil() + 1.0);
    let mut out = Vec::new();
    for run in points.chunk_by(|a, b| column(a) == column(b)) {
        let extreme = |better: fn(f64, f64) -> bool| {
            let mut best = 0;
            for i in 1..run.len() {
                if better(run[i].1, run[best].1) {
                    best = i;
                }
            }
            best
        };
        let mut keep = [0, extreme(|a, b| a < b), extreme(|a, b| a > b), run.len() - 1];
        keep.sort_unstable();
        for (i, index) in keep.iter().enumerate() {
            if i == 0 || keep[i - 1] != *index {
                out.push(run[*index]);
            }
        }
    }
    out
}

/// A vertical stroke: `x`, the upper `y`, and how far it goes down.
pub(crate) type Stroke = (f64, f64, f64);

/// Merges dots: positions are rounded to half pixels, doubles are dropped, and dots directly
/// above each other become one stroke, which with round ends covers the same pixels.
pub(crate) fn dots(points: impl Iterator<Item = Point>) -> Vec<Stroke> {
    let rounded: BTreeSet<(i64, i64)> =
        points.map(|(x, y)| ((2.0 * x).round() as i64, (2.0 * y).round() as i64)).collect();
    let sorted: Vec<(i64, i64)> = rounded.into_iter().collect();
    sorted
        .chunk_by(|a, b| a.0 == b.0 && b.1 == a.1 + 1)
        .map(|run| {
            let (x, top) = run[0];
            (x as f64 / 2.0, top as f64 / 2.0, (run.len() - 1) as f64 / 2.0)
        })
        .collect()
}

/// Thins a band, given as `(x, upper y, lower y)` in pixels (so upper is the smaller number):
/// each pixel column keeps the outermost edges it has, at its first and its last x.
pub(crate) fn band(points: &[(f64, f64, f64)], width: f64) -> Vec<(f64, f64, f64)> {
    let column = |p: &(f64, f64, f64)| p.0.floor().clamp(-1.0, width.ceil() + 1.0);
    let mut out = Vec::new();
    for run in points.chunk_by(|a, b| column(a) == column(b)) {
        if run.len() <= 2 {
            out.extend_from_slice(run);
            continue;
        }
        let upper = run.iter().fold(f64::INFINITY, |m, p| m.min(p.1));
        let lower = run.iter().fold(f64::NEG_INFINITY, |m, p| m.max(p.2));
        out.push((run[0].0, upper, lower));
        out.push((run[run.len() - 1].0, upper, lower));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noisy(count: usize, width: f64) -> Vec<Point> {
        // A fixed linear congruential generator: tests must not depend on a seed.
        let mut state = 12345u64;
        (0..count)
            .map(|i| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (width * i as f64 / count as f64, (state >> 33) as f64 / (1u64 << 31) as f64 * 100.0)
            })
            .collect()
    }

    #[test]
    fn lines_shrink_and_keep_every_columns_extremes() {
        let mut points = noisy(10_000, 600.0);
        points[4321].1 = 1e4;
        points[7777].1 = -1e4;
        let thin = line(&points, 600.0);
        assert!(thin.len() <= 4 * 600);
        assert!(thin.contains(&points[4321]) && thin.contains(&points[7777]));
        assert_eq!((thin[0], thin[thin.len() - 1]), (points[0], points[9_999]));
        for column in 0..600 {
            let inside = |p: &&Point| p.0.floor() as i64 == column;
            let range = |points: &[Point]| {
                let ys: Vec<f64> = points.iter().filter(inside).map(|p| p.1).collect();
                (ys.iter().copied().fold(f64::MAX, f64::min), ys.iter().copied().fold(f64::MIN, f64::max))
            };
            assert_eq!(range(&points), range(&thin), "column {column}");
        }
    }

    #[test]
    fn short_lines_and_backward_lines_are_untouched() {
        let zigzag = [(0.0, 0.0), (10.0, 5.0), (5.0, 7.0), (0.0, 9.0)];
        assert_eq!(line(&zigzag, 100.0), zigzag);
        assert!(line(&[], 100.0).is_empty());
    }

    #[test]
    fn dots_cover_exactly_the_rounded_positions() {
        let points = noisy(10_000, 10.0);
        let strokes = dots(points.iter().copied());
        let mut covered = BTreeSet::new();
        for (x, y, down) in &strokes {
            for k in 0..=(2.0 * down) as i64 {
                covered.insert(((2.0 * x) as i64, (2.0 * y) as i64 + k));
            }
        }
        let expected: BTreeSet<(i64, i64)> =
            points.iter().map(|p| ((2.0 * p.0).round() as i64, (2.0 * p.1).round() as i64)).collect();
        assert_eq!(covered, expected);
        assert!(strokes.len() < expected.len() / 2);
    }

    #[test]
    fn bands_keep_the_outermost_edges() {
        let points: Vec<(f64, f64, f64)> =
            noisy(5_000, 100.0).into_iter().map(|(x, y)| (x, y, y + 10.0)).collect();
        let thin = band(&points, 100.0);
        assert!(thin.len() <= 200);
        let top = |p: &[(f64, f64, f64)]| p.iter().fold(f64::MAX, |m, q| m.min(q.1));
        let low = |p: &[(f64, f64, f64)]| p.iter().fold(f64::MIN, |m, q| m.max(q.2));
        assert_eq!((top(&points), low(&points)), (top(&thin), low(&thin)));
    }
}
