//! The validation file beside a dataset.

use std::path::{Path, PathBuf};

/// The validation data beside a dataset, if there is any: `NAME-val.npz` for `NAME.npz`, and
/// `NAME-val.columns` or else `NAME-val.npz` for a folder `NAME.columns`.
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let dir = tempfile::tempdir()?;
/// # std::fs::write(dir.path().join("walk-val.npz"), [])?;
/// let found = album_data::validation_beside(&dir.path().join("walk.npz"));
/// assert_eq!(found, Some(dir.path().join("walk-val.npz")));
/// # Ok(())
/// # }
/// ```
pub fn validation_beside(dataset: &Path) -> Option<PathBuf> {
    let stem = dataset.file_stem()?.to_str()?;
    if stem.ends_with("-val") {
        return None;
    }
    let beside = |extension: &str| dataset.with_file_name(format!("{stem}-val.{extension}"));
    let folder = dataset.is_dir().then(|| beside("columns")).filter(|path| path.is_dir());
    folder.or_else(|| Some(beside("npz")).filter(|path| path.is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_folders() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir(path("a.columns")).unwrap();
        assert_eq!(validation_beside(&path("a.columns")), None);
        std::fs::write(path("a-val.npz"), []).unwrap();
        assert_eq!(validation_beside(&path("a.columns")), Some(path("a-val.npz")));
        assert_eq!(validation_beside(&path("a.npz")), Some(path("a-val.npz")));
        assert_eq!(validation_beside(&path("a-val.npz")), None);
        assert_eq!(validation_beside(&path("b.npz")), None);
        std::fs::create_dir(path("a-val.columns")).unwrap();
        assert_eq!(validation_beside(&path("a.columns")), Some(path("a-val.columns")));
    }
}
