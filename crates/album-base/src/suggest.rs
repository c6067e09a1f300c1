//! Suggestions for mistyped names.

/// The names most similar to `found`, nearest first, at most `count`.
///
/// Names that start with the typed text come first; then those within an edit distance of less than a third
/// of the typed letters, by distance. A transposition of two letters counts as one edit.
///
/// ```
/// use album_base::suggest::nearest;
/// let keys = ["gamma", "lambda_b", "lambda_e", "seed"];
/// assert_eq!(nearest("lamda_b", keys, 1), ["lambda_b"]);
/// assert_eq!(nearest("gam", keys, 1), ["gamma"]);
/// assert_eq!(nearest("sede", keys, 1), ["seed"]);
/// assert!(nearest("batch", keys, 1).is_empty());
/// ```
pub fn nearest<'a>(found: &str, names: impl IntoIterator<Item = &'a str>, count: usize) -> Vec<&'a str> {
    let length = found.chars().count();
    let mut near: Vec<(usize, &str)> = names
        .into_iter()
        .filter_map(|name| {
            let begins = length > 1 && name.starts_with(found);
            let distance = if begins { 0 } else { strsim::osa_distance(found, name) };
            (begins || distance * 3 < length).then_some((distance, name))
        })
        .collect();
    near.sort_by_key(|(distance, _)| *distance); // stable: ties keep their order
    near.into_iter().take(count).map(|(_, name)| name).collect()
}

/// The end of an error message about an unknown name: similar names, or else all of them.
///
/// ```
/// use album_base::suggest::hint;
/// assert_eq!(hint("gama", ["gamma", "seed"]), "; did you mean `gamma`?");
/// assert_eq!(hint("batch", ["gamma", "seed"]), "; there are gamma, seed");
/// ```
pub fn hint<'a>(found: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let near: Vec<String> = nearest(found, names.iter().copied(), 2).into_iter().map(str::to_owned).collect();
    if near.is_empty() { format!("; there are {}", names.join(", ")) } else { did_you_mean(&near) }
}

/// `; did you mean ...?` for the end of an error message, or an empty string.
pub fn did_you_mean(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        None => String::new(),
        Some((only, [])) => format!("; did you mean {only}?"),
        Some((last, others)) => format!("; did you mean {} or {last}?", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences() {
        let names = |names: &[&str]| did_you_mean(&names.iter().map(|n| n.to_string()).collect::<Vec<_>>());
        assert_eq!(names(&[]), "");
        assert_eq!(names(&["a"]), "; did you mean `a`?");
        assert_eq!(names(&["a", "b", "c"]), "; did you mean `a`, `b` or `c`?");
    }
}
