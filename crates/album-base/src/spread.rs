//! Evenly spread samples.

/// At most `most` of the items, evenly spread, including the first and the last.
///
/// ```
/// assert_eq!(album_base::spread::evenly(&[0, 1, 2, 3, 4], 3), [&0, &2, &4]);
/// assert_eq!(album_base::spread::evenly(&[0, 1, 2], 1), [&0]);
/// assert_eq!(album_base::spread::evenly(&[0, 1], 9), [&0, &1]);
/// ```
pub fn evenly<T>(items: &[T], most: usize) -> Vec<&T> {
    let count = items.len().min(most);
    (0..count).map(|i| &items[i * (items.len() - 1) / (count - 1).max(1)]).collect()
}
