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

/// Appends a number or boolean, or returns what was expected. Types were determined on opening, so this fails
/// only if the file has changed since or is not text.
pub(super) fn push(into: &mut ColumnData, field: &str) -> Result<(), &'static str> {
    let field = field.trim();
    match into {
        ColumnData::Bool(to) => to.push(flag(field).ok_or("true or false")?),
        ColumnData::Int(to) => to.push(field.parse().map_err(|_| "an integer")?),
        ColumnData::Float(to) if field.is_empty() => to.push(f64::NAN),
        ColumnData::Float(to) => to.push(field.parse().map_err(|_| "a number")?),
        ColumnData::Text(_) | ColumnData::Float32(_) | ColumnData::List(_) => {
            return Err("a column of one kind");
        }
    }
    Ok(())
}
