//! Number formatting in one place, so that axes, tables and text agree.

/// Formats an integer with commas between groups of three digits.
///
/// ```
/// assert_eq!(album_base::number::grouped(9693), "9,693");
/// assert_eq!(album_base::number::grouped(-1000000), "-1,000,000");
/// ```
pub fn grouped(value: i64) -> String {
    group_digits(&value.to_string())
}

/// Formats a count with its noun.
///
/// ```
/// assert_eq!(album_base::number::plural(1, "episode", "episodes"), "1 episode");
/// assert_eq!(album_base::number::plural(2000, "episode", "episodes"), "2,000 episodes");
/// ```
pub fn plural(n: usize, one: &str, many: &str) -> String {
    format!("{} {}", grouped(n as i64), if n == 1 { one } else { many })
}

/// Formats a number with about three significant digits.
///
/// Values of at least 1,000 are rounded to integers and grouped, tiny and huge ones use scientific notation,
/// trailing zeros are dropped.
///
/// ```
/// use album_base::number::compact;
/// assert_eq!(compact(1.2e-12), "1.2e-12");
/// assert_eq!(compact(0.034), "0.034");
/// assert_eq!(compact(9693.2), "9,693");
/// assert_eq!(compact(-12.345), "-12.3");
/// assert_eq!(compact(f64::NAN), "nan");
/// ```
pub fn compact(value: f64) -> String {
    significant(value, 3)
}

/// Formats a number of bytes with a suitable unit.
///
/// ```
/// assert_eq!(album_base::number::bytes(1_234_567), "1.23 MB");
/// ```
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["B", "kB", "MB", "GB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{} {}", compact(value), UNITS[unit])
}

/// Like [`compact`], with the given number of significant digits (1 to 17).
pub fn significant(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return non_finite(value);
    }
    if value == 0.0 {
        return "0".into();
    }
    let digits = digits.clamp(1, 17);
    let size = value.abs();
    if !(1e-3..1e7).contains(&size) {
        return scientific(value, digits);
    }
    if size >= 1000.0 && digits <= 4 {
        return fixed(value, 0);
    }
    // The exponent after rounding: 9.996 with three digits is 10.0, not 10.00.
    let exponent = exponent_of(value, digits);
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    trim_zeros(&fixed(value, decimals))
}

/// Formats a number with exactly `decimals` decimals and grouped thousands.
///
/// ```
/// assert_eq!(album_base::number::fixed(12345.678, 1), "12,345.7");
/// assert_eq!(album_base::number::fixed(-0.001, 2), "0.00");
/// ```
pub fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return non_finite(value);
    }
    without_negative_zero(group_digits(&format!("{value:.decimals$}")))
}

/// Formats a number in scientific notation, dropping trailing zeros of the mantissa.
///
/// ```
/// assert_eq!(album_base::number::scientific(0.000123456, 3), "1.23e-4");
/// assert_eq!(album_base::number::scientific(5e20, 3), "5e20");
/// ```
pub fn scientific(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return non_finite(value);
    }
    let text = format!("{value:.precision$e}", precision = digits.clamp(1, 17) - 1);
    match text.split_once('e') {
        Some((mantissa, exponent)) => format!("{}e{exponent}", trim_zeros(mantissa)),
        None => text,
    }
}

/// Formats a fraction as a percentage: `percent(0.0123, 1)` is `1.2%`.
pub fn percent(fraction: f64, decimals: usize) -> String {
    format!("{}%", fixed(100.0 * fraction, decimals))
}

/// Formats a mean with its spread: `plus_minus(81.24, 3.1, 1)` is `81.2 ± 3.1`.
pub fn plus_minus(mean: f64, spread: f64, decimals: usize) -> String {
    format!("{} ± {}", fixed(mean, decimals), fixed(spread, decimals))
}

/// Formats a duration in seconds with a suitable unit.
///
/// ```
/// use album_base::number::seconds;
/// assert_eq!(seconds(0.0123), "12.3 ms");
/// assert_eq!(seconds(75.0), "1 min 15 s");
/// ```
pub fn seconds(value: f64) -> String {
    if !value.is_finite() || value < 0.0 {
        return format!("{} s", compact(value));
    }
    if value < 1e-3 {
        format!("{} µs", compact(value * 1e6))
    } else if value < 0.9995 {
        format!("{} ms", compact(value * 1e3))
    } else if value < 59.5 {
        format!("{} s", compact(value))
    } else {
        let whole = value.round().min(9e15) as i64;
        if whole < 3600 {
            format!("{} min {} s", whole / 60, whole % 60)
        } else {
            format!("{} h {} min", grouped(whole / 3600), whole % 3600 / 60)
        }
    }
}

/// Labels for the ticks of a linear axis, all with the same number of decimals, so that they align, in the
/// markup of `album-plot` (superscripts as `^{…}`).
pub fn tick_labels(ticks: &[f64]) -> Vec<String> {
    let largest = ticks.iter().fold(0.0f64, |m, t| m.max(t.abs()));
    let step = ticks.windows(2).map(|w| (w[1] - w[0]).abs()).fold(f64::INFINITY, f64::min);
    let step = if step.is_finite() && step > 0.0 { step } else { largest };
    if largest == 0.0 {
        return ticks.iter().map(|_| "0".into()).collect();
    }
    let scientific_form = !(1e-3..1e7).contains(&largest);
    let exponent = if scientific_form { largest.log10().floor() as i32 } else { 0 };
    let unit = 10f64.powi(exponent);
    let decimals = (0..=12).find(|&d| {
        // Enough decimals to write every tick exactly, to within a thousandth of a step.
        ticks.iter().all(|t| {
            let scaled = t / unit * 10f64.powi(d);
            (scaled - scaled.round()).abs() <= 1e-3 * (step / unit * 10f64.powi(d)).min(1.0)
        })
    });
    let decimals = decimals.unwrap_or(12) as usize;
    let label = |t: &f64| {
        let mut text = fixed(t / unit, decimals);
        if exponent != 0 && *t != 0.0 {
            text = format!("{text}×10^{{{}}}", minus(&exponent.to_string()));
        }
        minus(&text)
    };
    ticks.iter().map(label).collect()
}

/// Labels for the ticks of a logarithmic axis, in the markup of `album-plot`.
///
/// Powers of ten are written as powers if any of them is far from one, so that they match.
pub fn log_tick_labels(ticks: &[f64]) -> Vec<String> {
    let exponent = |t: f64| t.log10().round();
    let powers = ticks.iter().all(|t| (t / 10f64.powf(exponent(*t)) - 1.0).abs() < 1e-9);
    let far = ticks.iter().any(|t| !(-3.0..=5.0).contains(&exponent(*t)));
    let label = |t: &f64| {
        if powers && far {
            return format!("10^{{{}}}", minus(&format!("{}", exponent(*t))));
        }
        let text = significant(*t, 4);
        match text.split_once('e') {
            Some((mantissa, exponent)) => minus(&format!("{mantissa}×10^{{{exponent}}}")),
            None => text,
        }
    };
    ticks.iter().map(label).collect()
}

/// A coordinate in SVG text: at most `decimals` decimals, never `-0`, never non-finite.
pub fn coordinate(value: f64, decimals: usize) -> String {
    // A coordinate this large is far outside any figure; the limit bounds the text.
    let value = if value.is_nan() { 0.0 } else { value.clamp(-1e6, 1e6) };
    without_negative_zero(trim_zeros(&format!("{value:.decimals$}")))
}

fn minus(text: &str) -> String {
    text.replace('-', "−")
}

fn non_finite(value: f64) -> String {
    if value.is_nan() {
        "nan".into()
    } else if value > 0.0 {
        "inf".into()
    } else {
        "-inf".into()
    }
}

fn exponent_of(value: f64, digits: usize) -> i32 {
    let text = format!("{value:.precision$e}", precision = digits - 1);
    text.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0)
}

fn trim_zeros(text: &str) -> String {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text.into() }
}

fn without_negative_zero(text: String) -> String {
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|c| matches!(c, '0' | '.')) => rest.into(),
        _ => text,
    }
}

fn group_digits(text: &str) -> String {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text),
    };
    let (whole, fraction) = match rest.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (rest, None),
    };
    let mut out = String::from(sign);
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_covers_the_magnitudes() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (0.999_96, "1"),
            (9.996, "10"),
            (99.96, "100"),
            (999.96, "1,000"),
            (0.034_04, "0.034"),
            (0.001, "0.001"),
            (0.000_999, "9.99e-4"),
            (1e6, "1,000,000"),
            (1.5e7, "1.5e7"),
            (-2.5e-9, "-2.5e-9"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(compact(value), text, "{value:?}");
        }
    }

    #[test]
    fn tick_labels_share_their_decimals() {
        assert_eq!(tick_labels(&[0.0, 0.5, 1.0]), ["0.0", "0.5", "1.0"]);
        assert_eq!(tick_labels(&[-0.25, 0.0, 0.25]), ["−0.25", "0.00", "0.25"]);
        assert_eq!(tick_labels(&[0.0, 5000.0, 10000.0]), ["0", "5,000", "10,000"]);
        assert_eq!(tick_labels(&[0.0, 1e-5, 2e-5]), ["0", "1×10^{−5}", "2×10^{−5}"]);
        assert_eq!(tick_labels(&[0.0, 2e6, 4e6]), ["0", "2,000,000", "4,000,000"]);
    }

    #[test]
    fn log_labels_are_powers_all_or_none() {
        assert_eq!(log_tick_labels(&[1e-12, 1e-6, 1.0]), ["10^{−12}", "10^{−6}", "10^{0}"]);
        assert_eq!(log_tick_labels(&[0.01, 1.0, 1e4]), ["0.01", "1", "10,000"]);
        assert_eq!(log_tick_labels(&[10.0, 20.0]), ["10", "20"]);
        assert_eq!(log_tick_labels(&[1e-5, 2e-5]), ["1×10^{−5}", "2×10^{−5}"]);
    }

    #[test]
    fn coordinates_are_finite_text() {
        assert_eq!(coordinate(-0.01, 1), "0");
        assert_eq!(coordinate(12.50, 2), "12.5");
        assert_eq!(coordinate(f64::NAN, 2), "0");
        assert_eq!(coordinate(f64::INFINITY, 2), "1000000");
    }

    #[test]
    fn durations_choose_a_unit() {
        assert_eq!(seconds(2e-6), "2 µs");
        assert_eq!(seconds(0.9999), "1 s");
        assert_eq!(seconds(3725.0), "1 h 2 min");
    }
}
