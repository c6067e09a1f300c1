//! Golden files: outputs that must be reproduced byte for byte.

use std::path::Path;

/// Compares text with a file; with `ALBUM_BLESS=1` in the environment, writes it there instead.
///
/// # Panics
///
/// If they differ, naming the first different line.
#[track_caller]
pub fn golden(path: &Path, actual: &str) {
    let shown = path.display();
    if std::env::var_os("ALBUM_BLESS").is_some() {
        std::fs::write(path, actual).unwrap_or_else(|e| panic!("{shown}: {e}"));
        return;
    }
    let expected =
        std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{shown}: {e}; ALBUM_BLESS=1 writes it"));
    if expected != actual {
        let line = expected.lines().zip(actual.lines()).position(|(a, b)| a != b);
        let line = line.unwrap_or(expected.lines().count().min(actual.lines().count()));
        panic!(
            "{shown} differs first in line {}; ALBUM_BLESS=1 rewrites it\n  expected: {}\n  actual:   {}",
            line + 1,
            expected.lines().nth(line).unwrap_or("(end)"),
            actual.lines().nth(line).unwrap_or("(end)")
        );
    }
}
