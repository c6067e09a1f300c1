//! The cache: where album keeps what it can recreate or download again.

use std::path::PathBuf;

/// There is no cache directory.
#[derive(Debug, thiserror::Error)]
#[error("no home directory; set ALBUM_CACHE to a folder")]
pub struct NoHome;

/// `$ALBUM_CACHE`, or `album` in the user's cache directory. It may not exist yet.
pub fn folder() -> Result<PathBuf, NoHome> {
    let named = |variable| std::env::var_os(variable).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    match (named("ALBUM_CACHE"), named("XDG_CACHE_HOME")) {
        (Some(folder), _) => Ok(folder),
        (None, Some(folder)) => Ok(folder.join("album")),
        (None, None) => Ok(home()?.join(".cache").join("album")),
    }
}

/// Where the `ogbench` package keeps the official files.
pub fn ogbench_folder() -> Result<PathBuf, NoHome> {
    Ok(home()?.join(".ogbench").join("data"))
}

fn home() -> Result<PathBuf, NoHome> {
    std::env::home_dir().ok_or(NoHome)
}
