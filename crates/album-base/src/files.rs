//! Untrusted files: only regular files are opened, and links only if the caller follows them.
//!
//! A pipe would block forever, a device has no end, and a link in an untrusted folder leads out of it. All
//! reads of files that the user did not write by hand go through this module.
//!
//! ```
//! use album_base::files::{self, Links};
//!
//! # fn main() -> std::io::Result<()> {
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("result.json");
//! # std::fs::write(&path, "{}")?;
//! assert_eq!(files::read(&path, Links::Refuse, 1 << 20)?, b"{}");
//! assert!(files::read(&path, Links::Refuse, 1).is_err());
//! assert!(files::open(dir.path(), Links::Follow).is_err());
//! # Ok(())
//! # }
//! ```

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The longest text that is read at once: configurations, records, logs of a run.
pub const LONGEST_TEXT: u64 = 1 << 30;

/// Whether symbolic links are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// For paths given by the user.
    Follow,
    /// For the contents of an untrusted folder.
    Refuse,
}

/// Something other than the expected file. Wrapped in the `io::Error`s of this module, see [`is_wrong_kind`].
#[derive(Debug, thiserror::Error)]
#[error("found {found}, expected {expected}")]
struct WrongKind {
    found: String,
    expected: &'static str,
}

/// Whether the error is a refusal (not a regular file, a link, or too long a file): a fault of the data, not
/// of the disk.
pub fn is_wrong_kind(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<WrongKind>())
}

fn wrong_kind(found: impl Into<String>, expected: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, WrongKind { found: found.into(), expected })
}

/// Opens a regular file for reading.
pub fn open(path: &Path, links: Links) -> io::Result<File> {
    open_with(OpenOptions::new().read(true), path, links)
}

/// Opens a regular file with these options. Never follows a link to create a new file.
pub fn open_with(options: &OpenOptions, path: &Path, links: Links) -> io::Result<File> {
    // Checked before opening, because opening a device may already have effects.
    match metadata(path, links) {
        Ok(found) => refuse_irregular(&found)?,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(e),
    }
    let mut options = options.clone();
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        // If it has become a pipe in the meantime, opening must not block.
        let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        flags.set(OFlags::NOFOLLOW, links == Links::Refuse);
        options.custom_flags(flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    refuse_irregular(&file.metadata()?)?;
    Ok(file)
}

fn metadata(path: &Path, links: Links) -> io::Result<Metadata> {
    match links {
        Links::Follow => fs::metadata(path),
        Links::Refuse => fs::symlink_metadata(path),
    }
}

fn refuse_irregular(found: &Metadata) -> io::Result<()> {
    if found.is_file() { Ok(()) } else { Err(wrong_kind(kind(found), "a regular file")) }
}

fn kind(found: &Metadata) -> &'static str {
    if found.is_dir() {
        "a directory"
    } else if found.is_symlink() {
        "a symbolic link, which is not followed here"
    } else {
        "a pipe, socket or device"
    }
}

/// Reads a regular file of at most `longest` bytes.
pub fn read(path: &Path, links: Links, longest: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // The reported length may be wrong or change.
    open(path, links)?.take(longest.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > longest {
        return Err(wrong_kind(format!("more than {longest} bytes"), "a shorter file"));
    }
    Ok(bytes)
}

/// The same for text.
pub fn read_text(path: &Path, links: Links, longest: u64) -> io::Result<String> {
    String::from_utf8(read(path, links, longest)?)
        .map_err(|_| wrong_kind("bytes that are not UTF-8", "a text"))
}

/// Refuses a folder that contains, at any depth, anything but regular files and folders.
pub fn refuse_links_inside(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let found = entry.metadata()?; // of the entry itself, not of its target
        if found.is_dir() {
            refuse_links_inside(&entry.path())?;
        } else if !found.is_file() {
            let found = format!("{}: {}", entry.path().display(), kind(&found));
            return Err(wrong_kind(found, "regular files and folders only"));
        }
    }
    Ok(())
}

/// Whether two paths refer to the same file, through any names and links.
pub fn same(a: &Path, b: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let id = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino()));
        if let (Ok(a), Ok(b)) = (id(a), id(b)) {
            return a == b;
        }
    }
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

/// A path without links and `..`; its last part need not exist.
fn whole(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok().or_else(|| {
        let path = std::path::absolute(path).ok()?;
        Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?))
    })
}

/// Whether a path lies in a folder, through any names and links. It need not exist.
pub fn is_inside(path: &Path, folder: &Path) -> bool {
    matches!((whole(path), folder.canonicalize()), (Some(path), Ok(folder)) if path.starts_with(&folder))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn pipe(path: &Path) {
        let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
    }

    #[test]
    fn only_regular_files_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("file"), "text").unwrap();
        symlink("file", at("link")).unwrap();
        pipe(&at("pipe"));
        for links in [Links::Follow, Links::Refuse] {
            assert_eq!(read(&at("file"), links, 4).unwrap(), b"text");
            for path in [at("pipe"), "/dev/zero".into(), dir.path().into()] {
                assert!(is_wrong_kind(&open(&path, links).unwrap_err()), "{}", path.display());
                let write = open_with(OpenOptions::new().write(true).create(true), &path, links);
                assert!(is_wrong_kind(&write.unwrap_err()), "{}", path.display());
            }
            assert!(is_wrong_kind(&read(&at("file"), links, 3).unwrap_err()));
            assert_eq!(open(&at("none"), links).unwrap_err().kind(), io::ErrorKind::NotFound);
        }
        assert_eq!(read(&at("link"), Links::Follow, 4).unwrap(), b"text");
        let message = open(&at("link"), Links::Refuse).unwrap_err().to_string();
        assert_eq!(message, "found a symbolic link, which is not followed here, expected a regular file");
        symlink("new", at("dangling")).unwrap();
        assert!(
            open_with(OpenOptions::new().write(true).create(true), &at("dangling"), Links::Refuse).is_err()
        );
        assert!(!at("new").exists());
        assert!(is_wrong_kind(&refuse_links_inside(dir.path()).unwrap_err()));
    }

    #[test]
    fn a_file_has_many_names() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("inside")).unwrap();
        fs::write(at("file"), "").unwrap();
        fs::hard_link(at("file"), at("hard")).unwrap();
        symlink("file", at("link")).unwrap();
        for other in ["hard", "link", "inside/../file", "./file"] {
            assert!(same(&at("file"), &at(other)), "{other}");
        }
        fs::write(at("other"), "").unwrap();
        assert!(!same(&at("file"), &at("other")));
        assert!(same(&at("new"), &at("inside/../new")) && !same(&at("new"), &at("file")));
        assert!(is_inside(&at("inside/new"), dir.path()) && is_inside(&at("link"), dir.path()));
        assert!(!is_inside(&at("inside/../new"), &at("inside")));
    }
}
