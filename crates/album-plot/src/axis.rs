//! Axes: ranges, ticks and the mapping from data to pixels.

use album_base::number;

/// How values are laid out along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Equal distances are equal differences.
    #[default]
    Linear,
    /// Equal distances are equal ratios; non-positive values are left out.
    Log,
}

/// Larger values count as infinite, so that differences cannot overflow.
const HUGE: f64 = 1e150;

impl Scale {
    /// Whether a value can be drawn on this scale.
    pub(crate) fn accepts(self, value: f64) -> bool {
        value.abs() <= HUGE && (self == Scale::Linear || value >= 1.0 / HUGE)
    }

    fn forward(self, value: f64) -> f64 {
        match self {
            Scale::Linear => value,
            Scale::Log => value.log10(),
        }
    }

    fn backward(self, value: f64) -> f64 {
        match self {
            Scale::Linear => value,
            Scale::Log => 10f64.powf(value),
        }
    }
}

/// Round tick positions within `[lo, hi]`, about `target` of them, in increasing order.
///
/// On a linear scale the steps are 1, 2 or 5 times a power of ten. On a logarithmic scale the
/// ticks are powers of ten, every so many decades if there are many, with 2 and 5 between
/// them if there are few; ranges within one decade fall back to linear steps.
pub fn ticks(scale: Scale, lo: f64, hi: f64, target: usize) -> Vec<f64> {
    let target = target.clamp(2, 50);
    if !(scale.accepts(lo) && scale.accepts(hi) && lo < hi) {
        return Vec::new();
    }
    match scale {
        Scale::Linear => linear_ticks(lo, hi, target),
        Scale::Log => log_ticks(lo, hi, target),
    }
}

fn linear_ticks(lo: f64, hi: f64, target: usize) -> Vec<f64> {
    let raw = (hi - lo) / target as f64;
    let power = raw.log10().floor() as i32;
    let magnitude = 10f64.powi(power);
    // A small tolerance, so that an end computed as 0.30000000000000004 gets its tick.
    let ends = |step: f64| ((lo / step - 1e-9).ceil(), (hi / step + 1e-9).floor());
    let miss = |factor: f64| {
        let (first, last) = ends(factor * magnitude);
        // A single tick shows no scale.
        if last - first < 1.0 { f64::INFINITY } else { ((last - first + 1.0) / target as f64).ln().abs() }
    };
    // The round step whose number of ticks is closest to the target, the larger one in a tie.
    let factor =
        [10.0, 5.0, 2.0, 1.0].into_iter().fold(10.0, |best, f| if miss(f) < miss(best) { f } else { best });
    let step = factor * magnitude;
    if step <= 0.0 || !step.is_finite() {
        return Vec::new();
    }
    let (first, last) = ends(step);
    if last - first > 200.0 {
        return Vec::new(); // the range is below the resolution of its own size
    }
    let count = (last - first).max(-1.0) as i64;
    (0..=count)
        .map(|i| {
            let index = first + i as f64;
            // For small steps dividing by an integer is exact where multiplying is not: 3 * 0.1 is not 0.3,
            // but 3 / 10 is.
            if power < 0 && power > -300 { index * factor / 10f64.powi(-power) } else { index * step }
        })
        .collect()
}

fn log_ticks(lo: f64, hi: f64, target: usize) -> Vec<f64> {
    let (first, last) = ((lo.log10() - 1e-9).ceil() as i32, (hi.log10() + 1e-9).floor() as i32);
    let decades = last - first + 1;
    if decades > target as i32 {
        let stride = [2, 3, 4, 5, 10, 20, 25, 50, 100]
            .into_iter()
            .find(|stride| decades.div_euclid(*stride) < target as i32)
            .unwrap_or(200);
        return (first..=last).filter(|e| e.rem_euclid(stride) == 0).map(|e| 10f64.powi(e)).collect();
    }
    let within = |mantissas: &[f64]| -> Vec<f64> {
        (first - 1..=last)
            .flat_map(|e| mantissas.iter().map(move |m| m * 10f64.powi(e)))
            .filter(|v| *v >= lo * (1.0 - 1e-9) && *v <= hi * (1.0 + 1e-9))
            .collect()
    };
    let with_thirds = within(&[1.0, 2.0, 5.0]);
    if decades >= 2 && with_thirds.len() > target {
        return within(&[1.0]);
    }
    if with_thirds.len() >= 3 { with_thirds } else { linear_ticks(lo, hi, target) }
}

/// The user's settings of an axis.
#[derive(Clone, Debug, Default)]
pub(crate) struct AxisSpec {
    pub label: String,
    pub scale: Scale,
    pub range: Option<(f64, f64)>,
    pub include: Vec<f64>,
    pub ticks: Option<Vec<f64>>,
    /// Names for the positions 0, 1, 2, … instead of numbers.
    pub names: Option<Vec<String>>,
}

impl AxisSpec {
    /// The range to draw, given the values to be shown.
    pub(crate) fn resolve(&self, values: impl Iterator<Item = f64>) -> (f64, f64) {
        let scale = self.scale;
        if let Some((lo, hi)) = self.range
            && scale.accepts(lo)
            && scale.accepts(hi)
            && lo < hi
        {
            return (lo, hi);
        }
        let (mut lo, mut hi) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.chain(self.include.iter().copied()).filter(|v| scale.accepts(*v)) {
            lo = lo.min(value);
            hi = hi.max(value);
        }
        if lo > hi {
            return if scale == Scale::Log { (0.1, 10.0) } else { (0.0, 1.0) };
        }
        let (a, b) = (scale.forward(lo), scale.forward(hi));
        let least = 1e-9 * a.abs().max(b.abs());
        if b - a <= least {
            // All values are equal: centre them in some range.
            let half = match scale {
                Scale::Linear if a == 0.0 => 1.0,
                Scale::Linear => 0.1 * a.abs(),
                Scale::Log => 0.5,
            };
            return (scale.backward(a - half), scale.backward(b + half));
        }
        // A margin keeps markers at the ends whole, but a range that starts at an included value (usually
        // zero) starts exactly there.
        let room = 0.03 * (b - a);
        let exact = |end: f64| self.include.contains(&end);
        let low = if exact(lo) { lo } else { scale.backward(a - room) };
        let high = if exact(hi) { hi } else { scale.backward(b + room) };
        (low, high)
    }
}

/// An axis with known range and length in pixels.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub scale: Scale,
    pub lo: f64,
    pub hi: f64,
    pub length: f64,
    /// Positions in data and their labels.
    pub ticks: Vec<(f64, String)>,
    /// Whether the axis is reversed, as for a list of names from top to bottom.
    pub reversed: bool,
}

impl Axis {
    pub(crate) fn new(spec: &AxisSpec, (lo, hi): (f64, f64), length: f64, target: usize) -> Self {
        if let Some(names) = &spec.names {
            let ticks = names.iter().enumerate().map(|(place, name)| (place as f64, name.clone())).collect();
            return Axis { scale: spec.scale, lo, hi, length, ticks, reversed: true };
        }
        let chosen = match &spec.ticks {
            Some(given) => {
                given.iter().copied().filter(|t| spec.scale.accepts(*t) && *t >= lo && *t <= hi).collect()
            }
            None => ticks(spec.scale, lo, hi, target),
        };
        let wide = spec.scale == Scale::Log && chosen.len() > 1 && hi / lo > 10.0;
        let labels = if wide || (spec.scale == Scale::Log && spec.ticks.is_some()) {
            number::log_tick_labels(&chosen)
        } else {
            number::tick_labels(&chosen)
        };
        let ticks = chosen.into_iter().zip(labels).collect();
        Axis { scale: spec.scale, lo, hi, length, ticks, reversed: false }
    }

    /// The distance of a value from the left or lower end, in pixels. The scale must accept the value.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let (a, b) = (self.scale.forward(self.lo), self.scale.forward(self.hi));
        let share = (self.scale.forward(value) - a) / (b - a);
        if self.reversed { (1.0 - share) * self.length } else { share * self.length }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_ticks_are_round_inside_and_few() {
        let ranges = [
            (0.0, 1.0),
            (0.0, 0.3),
            (-1.0, 1.0),
            (3.2, 9693.0),
            (-1e-7, 2e-7),
            (1e6, 1e6 + 3.0),
            (0.1, 0.100_1),
            (-5e20, 7e21),
        ];
        for (lo, hi) in ranges {
            for target in [2, 4, 7, 12] {
                let t = ticks(Scale::Linear, lo, hi, target);
                assert!(t.len() >= 2 && t.len() <= target + target / 2 + 1, "{lo}..{hi} {target}: {t:?}");
                assert!(t.windows(2).all(|w| w[0] < w[1]), "{t:?}");
                let slack = 1e-6 * (hi - lo);
                assert!(t.iter().all(|v| *v >= lo - slack && *v <= hi + slack), "{lo}..{hi}: {t:?}");
                if t.len() > 1 {
                    let step = t[1] - t[0];
                    let mantissa = step / 10f64.powf(step.log10().floor());
                    let round = [1.0, 2.0, 5.0, 10.0].iter().any(|m| (mantissa - m).abs() < 1e-3);
                    assert!(round, "{lo}..{hi} {target}: step {step}");
                }
            }
        }
    }

    #[test]
    fn ticks_are_the_exact_decimals() {
        assert_eq!(ticks(Scale::Linear, 0.0, 0.3, 4), [0.0, 0.1, 0.2, 0.3]);
        assert_eq!(ticks(Scale::Linear, 0.0, 10_000.0, 5), [0.0, 2000.0, 4000.0, 6000.0, 8000.0, 10_000.0]);
    }

    #[test]
    fn log_ticks_are_powers_over_many_decades() {
        let t = ticks(Scale::Log, 1e-14, 3.0, 6);
        assert!(t.len() >= 3 && t.len() <= 8, "{t:?}");
        assert!(t.iter().all(|v| (v.log10() - v.log10().round()).abs() < 1e-9));
        assert_eq!(ticks(Scale::Log, 1.0, 100.0, 7), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        assert!(ticks(Scale::Log, 3.0, 4.0, 5).len() >= 3);
        assert!(ticks(Scale::Log, 1e-140, 1e140, 6).len() <= 8);
    }

    #[test]
    fn odd_ranges_give_no_ticks_rather_than_many() {
        assert!(ticks(Scale::Linear, 1.0, 1.0, 5).is_empty());
        assert!(ticks(Scale::Linear, 2.0, 1.0, 5).is_empty());
        assert!(ticks(Scale::Linear, f64::NAN, 1.0, 5).is_empty());
        assert!(ticks(Scale::Linear, 0.0, f64::INFINITY, 5).is_empty());
        assert!(ticks(Scale::Log, -1.0, 1.0, 5).is_empty());
        assert!(ticks(Scale::Linear, 1e15, 1e15 + 0.25, 5).len() <= 7);
    }

    #[test]
    fn ranges_cover_the_data_and_never_collapse() {
        let linear = AxisSpec::default();
        let log = AxisSpec { scale: Scale::Log, ..AxisSpec::default() };
        for values in
            [vec![], vec![f64::NAN], vec![0.0], vec![5.0, 5.0], vec![-3.0, 8.0], vec![1e-9, f64::INFINITY]]
        {
            for spec in [&linear, &log] {
                let (lo, hi) = spec.resolve(values.iter().copied());
                assert!(lo < hi && spec.scale.accepts(lo) && spec.scale.accepts(hi));
                for v in values.iter().filter(|v| spec.scale.accepts(**v)) {
                    assert!(lo <= *v && *v <= hi, "{v} outside {lo}..{hi}");
                }
            }
        }
    }

    #[test]
    fn an_included_zero_is_the_end_of_the_axis() {
        let spec = AxisSpec { include: vec![0.0], ..AxisSpec::default() };
        let (lo, hi) = spec.resolve([1.0, 4.0].into_iter());
        assert_eq!(lo, 0.0);
        assert!(hi > 4.0);
    }

    #[test]
    fn places_run_from_zero_to_the_length() {
        let spec = AxisSpec { scale: Scale::Log, ..AxisSpec::default() };
        let axis = Axis::new(&spec, (1.0, 100.0), 200.0, 5);
        assert_eq!(axis.place(1.0), 0.0);
        assert!((axis.place(10.0) - 100.0).abs() < 1e-9);
        assert!((axis.place(100.0) - 200.0).abs() < 1e-9);
    }
}
