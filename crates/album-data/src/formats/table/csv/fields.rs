//! Types and values of CSV fields.

use super::super::data::{ColumnData, ColumnType};

/// The type that fits all fields of a column so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Guess {
    kind: Option<ColumnType>,
    missing: bool,
}

impl Guess {
    pub(super) fn see(&mut self, field: &[u8]) {
        if self.kind == Some(ColumnType::Text) {
            return;
        }
        let field = field.trim_ascii();
        if field.is_empty() {
            self.missing = true;
        } else {
            self.join(Self { kind: Some(kind_of(field)), missing: false });
        }
    }

    /// Merges the guess for other fields of the same column.
    pub(super) fn join(&mut self, other: Self) {
        self.missing |= other.missing;
        self.kind = match (self.kind, other.kind) {
            (before, None) => before,
            (None, kind) => kind,
            (before, kind) if before == kind => kind,
            (Some(ColumnType::Int | ColumnType::Float), Some(ColumnType::Int | ColumnType::Float)) => {
                Some(ColumnType::Float)
            }
            _ => Some(ColumnType::Text),
        };
    }

    pub(super) fn kind(self) -> ColumnType {
        match (self.kind, self.missing) {
            (None, _) => ColumnType::Float,
            (Some(ColumnType::Int), true) => ColumnType::Float,
            (Some(ColumnType::Bool), true) => ColumnType::Text,
            (Some(kind), _) => kind,
        }
    }
}

fn kind_of(field: &[u8]) -> ColumnType {
    if let Some(kind) = kind_of_number(field) {
        return kind;
    }
    let Ok(text) = std::str::from_utf8(field) else { return ColumnType::Text };
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        // Digits that overflow an integer are text: they may be an identifier, which must not be rounded.
        return if text.parse::<i64>().is_ok() { ColumnType::Int } else { ColumnType::Text };
    }
    match text.as_bytes()[0] {
        b'0'..=b'9' | b'-' | b'+' | b'.' | b'n' | b'N' | b'i' | b'I' if text.parse::<f64>().is_ok() => {
            ColumnType::Float
        }
        _ if flag(text).is_some() => ColumnType::Bool,
        _ => ColumnType::Text,
    }
}

/// Fast path: the type of a number in common notation, without parsing its value. `None` for other notations.
fn kind_of_number(field: &[u8]) -> Option<ColumnType> {
    let digits = |from: usize| field[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut at = usize::from(matches!(field[0], b'-' | b'+'));
    let whole = digits(at);
    at += whole;
    if whole == 0 || whole > 18 {
        return None;
    }
    if at == field.len() {
        return Some(ColumnType::Int);
    }
    if field[at] == b'.' {
        at += 1 + digits(at + 1);
    }
    if at < field.len() && matches!(field[at], b'e' | b'E') {
        at += 1 + usize::from(matches!(field.get(at + 1), Some(b'-' | b'+')));
        let exponent = digits(at.min(field.len()));
        if exponent == 0 {
            return None;
        }
        at += exponent;
    }
    (at == field.len()).then_some(ColumnType::Float)
}

fn flag(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// The powers of ten that are exact in double precision.
const TENS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// Fast path: a decimal number such as `-0.125` at the start of `bytes`, and its length. `None` if the field continues in
/// another way, or if its value may need more than one rounding (Clinger: an exact integer divided by an exact power of
/// ten is rounded once).
pub(super) fn common_float(bytes: &[u8], delimiter: u8) -> Option<(f64, usize)> {
    let negative = bytes.first() == Some(&b'-');
    let (start, mut mantissa) = (usize::from(negative), 0u64);
    let mut at = start;
    let mut digits = |at: &mut usize| {
        let first = *at;
        while let Some(digit) = bytes.get(*at).map(|byte| byte.wrapping_sub(b'0')).filter(|&digit| digit < 10)
        {
            mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
            *at += 1;
        }
        *at - first
    };
    let whole = digits(&mut at);
    let mut fraction = 0;
    if whole > 0 && bytes.get(at) == Some(&b'.') {
        at += 1;
        fraction = digits(&mut at);
    }
    let ends = bytes.get(at).is_none_or(|&byte| byte == delimiter);
    if !ends || whole == 0 || whole + fraction > 18 || mantissa > 1 << 53 {
        return None;
    }
    let size = mantissa as f64 / TENS[fraction];
    Some((if negative { -size } else { size }, at))
}

/// Fast path: an integer of at most 18 digits at the start of `bytes`, and its length.
pub(super) fn common_integer(bytes: &[u8], delimiter: u8) -> Option<(i64, usize)> {
    let negative = bytes.first() == Some(&b'-');
    let start = usize::from(negative);
    let digits = bytes[start..].iter().take(19).take_while(|byte| byte.is_ascii_digit());
    let (count, size) = digits.fold((0, 0i64), |(count, size), byte| {
        (count + 1, size.wrapping_mul(10).wrapping_add(i64::from(byte - b'0')))
    });
    let at = start + count;
    let ends = bytes.get(at).is_none_or(|&byte| byte == delimiter);
    (ends && (1..=18).contains(&count)).then_some((if negative { -size } else { size }, at))
}

/// Appends a number or boolean, or returns what was expected. This fails if the type was taken from the start of the
/// file and the rest does not fit, or if the file has changed since.
pub(super) fn push(into: &mut ColumnData, field: &str) -> Result<(), &'static str> {
    let field = field.trim_ascii();
    match into {
        ColumnData::Bool(to) => to.push(flag(field).ok_or("true or false")?),
        ColumnData::Int(to) => to.push(field.parse().map_err(|_| "an integer")?),
        ColumnData::Float(to) if field.is_empty() => to.push(f64::NAN),
        ColumnData::Float(to) => match kind_of(field.as_bytes()) {
            ColumnType::Int | ColumnType::Float => to.push(field.parse().map_err(|_| "a number")?),
            _ => return Err("a number"),
        },
        ColumnData::Text(_) | ColumnData::Float32(_) | ColumnData::List(_) => {
            return Err("a column of one kind");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_that_are_left_to_the_slow_path() {
        for field in
            ["", "-", "+1", ".5", "1e5", " 1", "1 ", "nan", "9007199254740993", "1234567890123456789", "1x"]
        {
            assert_eq!(common_float(field.as_bytes(), b','), None, "{field}");
        }
        assert_eq!(common_float(b"-0.125,7", b','), Some((-0.125, 6)));
        assert_eq!(common_float(b"3.;", b';'), Some((3.0, 2)));
        for field in ["", "-", "+1", "1.0", "1234567890123456789", "1 ", "1x"] {
            assert_eq!(common_integer(field.as_bytes(), b','), None, "{field}");
        }
        assert_eq!(common_integer(b"-12,7", b','), Some((-12, 3)));
    }

    /// An identifier of many digits is not rounded to a number, wherever the type came from.
    #[test]
    fn digits_beyond_an_integer_are_text() {
        let mut numbers = ColumnData::Float(Vec::new());
        assert!(push(&mut numbers, "12345678901234567890").is_err());
        assert!(push(&mut numbers, "1\u{a0}").is_err()); // a space that is not ASCII makes text of a field
        assert!(push(&mut numbers, " 1e3 ").is_ok() && push(&mut numbers, "").is_ok());
    }

    proptest! {
        #[test]
        fn the_fast_paths_agree_with_the_standard_library(field in "-?[0-9]{1,19}(\\.[0-9]{0,19})?") {
            if let Some((x, length)) = common_float(field.as_bytes(), b',') {
                prop_assert_eq!((x.to_bits(), length), (field.parse::<f64>().unwrap().to_bits(), field.len()));
            }
            if let Some((x, length)) = common_integer(field.as_bytes(), b',') {
                prop_assert_eq!((x, length), (field.parse::<i64>().unwrap(), field.len()));
            }
        }
    }
}
