//! Text utilities.

use std::borrow::Cow;

/// Text for a CSV cell: an apostrophe keeps spreadsheets from reading it as a formula.
///
/// ```
/// use album_base::text::cell;
/// assert_eq!(cell("=HYPERLINK(...)"), "'=HYPERLINK(...)");
/// assert_eq!(cell("-0.5"), "-0.5");
/// ```
pub fn cell(text: &str) -> Cow<'_, str> {
    match text.starts_with(['=', '+', '@', '\t', '\r']) {
        true => Cow::Owned(format!("'{text}")),
        false => Cow::Borrowed(text),
    }
}

/// Width of text on a terminal; combining marks take no columns.
pub fn columns(text: &str) -> usize {
    text.chars().filter(|c| !matches!(*c, '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200d}')).count()
}

/// Wraps text at words into lines of at most this many columns; a longer word gets its own line.
///
/// ```
/// assert_eq!(album_base::text::wrapped("to be or not", 5), ["to be", "or", "not"]);
/// ```
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        let length = columns(&lines[last]);
        if length > 0 && length + 1 + columns(word) > width {
            lines.push(word.to_owned());
            continue;
        }
        if length > 0 {
            lines[last].push(' ');
        }
        lines[last].push_str(word);
    }
    lines
}
