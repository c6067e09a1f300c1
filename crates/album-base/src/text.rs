//! Text for people.

/// Breaks text between words into lines of at most this many letters; longer words keep a line of their own.
///
/// ```
/// assert_eq!(album_base::text::wrapped("to be or not", 5), ["to be", "or", "not"]);
/// ```
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        let length = lines[last].chars().count();
        if length > 0 && length + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if length > 0 {
                lines[last].push(' ');
            }
            lines[last].push_str(word);
        }
    }
    lines
}
