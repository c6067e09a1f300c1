//! Fewer points, same picture: points indistinguishable on the screen are merged, and extremes are kept, so
//! that a single outlier among ten thousand points stays visible.

use std::collections::BTreeSet;

/// A point in pixels.
pub(crate) type Point = (f64, f64);

/// Thins a polyline: of each run of points in one pixel column, the first, lowest, highest and last are kept,
/// in order.
///
/// `width` is the visible width; everything to the left of it counts as one column, and everything to the
/// right as another.
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

/// Drops points that lie on the straight line between their neighbours, to within a tenth of a pixel
/// (Douglas-Peucker).
pub(crate) fn straighten(points: Vec<Point>) -> Vec<Point> {
    const TOLERANCE: f64 = 0.1;
    if points.len() < 3 {
        return points;
    }
    let mut keep = vec![false; points.len()];
    keep[0] = true;
    keep[points.len() - 1] = true;
    let mut open = vec![(0, points.len() - 1)];
    while let Some((from, to)) = open.pop() {
        let farthest = (from + 1..to)
            .map(|i| (i, distance(points[i], points[from], points[to])))
            .max_by(|a, b| a.1.total_cmp(&b.1));
        if let Some((i, distance)) = farthest
            && distance > TOLERANCE
        {
            keep[i] = true;
            open.extend([(from, i), (i, to)]);
        }
    }
    points.into_iter().zip(keep).filter_map(|(point, kept)| kept.then_some(point)).collect()
}

/// The distance of a point from the segment between two others.
fn distance(p: Point, a: Point, b: Point) -> f64 {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let square = dx * dx + dy * dy;
    let t = if square > 0.0 { (((p.0 - a.0) * dx + (p.1 - a.1) * dy) / square).clamp(0.0, 1.0) } else { 0.0 };
    (p.0 - a.0 - t * dx).hypot(p.1 - a.1 - t * dy)
}

/// Pixels per unit of [`Stroke`].
pub(crate) const DOT_UNIT: f64 = 0.5;

/// A vertical stroke in units of half pixels: `x`, the upper `y`, and the length downwards.
pub(crate) type Stroke = (i64, i64, i64);

/// Merges dots: positions are rounded to half pixels, duplicates are dropped, and dots at most a pixel above
/// each other become one stroke. Dots are wider than two pixels, so with round ends the stroke covers the
/// same area as the dots, to within a tenth of a pixel.
pub(crate) fn dots(points: impl Iterator<Item = Point>) -> Vec<Stroke> {
    let unit = |v: f64| (v / DOT_UNIT).round() as i64;
    let rounded: BTreeSet<(i64, i64)> = points.map(|(x, y)| (unit(x), unit(y))).collect();
    let sorted: Vec<(i64, i64)> = rounded.into_iter().collect();
    sorted
        .chunk_by(|a, b| a.0 == b.0 && b.1 <= a.1 + 2)
        .map(|run| (run[0].0, run[0].1, run[run.len() - 1].1 - run[0].1))
        .collect()
}

/// Thins a band, given as `(x, upper y, lower y)` in pixels (so upper is the smaller number): each pixel
/// column keeps its outermost edges, at its first and last x.
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
    fn straightening_moves_nothing_by_more_than_its_tolerance() {
        let slope: Vec<Point> = (0..500).map(|i| (f64::from(i), 0.3 * f64::from(i))).collect();
        assert_eq!(straighten(slope.clone()), [slope[0], slope[499]]);
        let mut bent = slope;
        bent[250].1 += 0.5;
        let kept = straighten(bent.clone());
        assert!(kept.contains(&bent[250]));
        for p in &bent {
            let nearest = kept.windows(2).map(|w| distance(*p, w[0], w[1])).fold(f64::MAX, f64::min);
            assert!(nearest <= 0.1 + 1e-9, "{p:?} is {nearest} off");
        }
        let spike = vec![(0.0, 0.0), (0.0, 9.0), (0.0, 1.0)];
        assert_eq!(straighten(spike.clone()), spike);
    }

    #[test]
    fn short_lines_and_backward_lines_are_untouched() {
        let zigzag = [(0.0, 0.0), (10.0, 5.0), (5.0, 7.0), (0.0, 9.0)];
        assert_eq!(line(&zigzag, 100.0), zigzag);
        assert!(line(&[], 100.0).is_empty());
    }

    #[test]
    fn dots_cover_every_point_and_no_gap_wider_than_a_pixel() {
        let points = noisy(10_000, 10.0);
        let strokes = dots(points.iter().copied());
        let mut covered = BTreeSet::new();
        for (x, y, down) in &strokes {
            covered.extend((0..=*down).map(|k| (*x, y + k)));
        }
        let expected: BTreeSet<(i64, i64)> =
            points.iter().map(|p| ((2.0 * p.0).round() as i64, (2.0 * p.1).round() as i64)).collect();
        assert!(expected.is_subset(&covered));
        for (x, y) in covered.difference(&expected) {
            assert!(expected.contains(&(*x, y - 1)) && expected.contains(&(*x, y + 1)), "{x} {y}");
        }
        assert!(strokes.len() < expected.len() / 2);
    }

    #[test]
    fn a_lone_dot_is_kept_as_it_is() {
        assert_eq!(dots([(3.2, 7.1), (3.1, 7.2), (3.0, 20.0)].into_iter()), [(6, 14, 0), (6, 40, 0)]);
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
