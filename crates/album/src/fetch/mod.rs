//! Downloads of data files: resumable, verified, never incomplete under the final name.
//!
//! ```text
//! NAME.npz            only ever a complete, checked file
//! NAME.npz.json       its [`Record`]: where it came from, size, SHA-256
//! NAME.npz.part       what has arrived so far, locked by the process that downloads it
//! NAME.npz.part.json  which file it is a part of, so that the next call can resume
//! ```
//!
//! ```no_run
//! use album::fetch::{OGBENCH, Options, fetch};
//!
//! # fn main() -> Result<(), album::fetch::FetchError> {
//! let url = format!("{OGBENCH}/antmaze-large-navigate-v0.npz");
//! let file = fetch(&url, "antmaze.npz".as_ref(), Options::default(), &|_| Ok(()), &mut |_| {})?;
//! println!("{:?}", file.record.sha256);
//! # Ok(())
//! # }
//! ```

mod part;
#[cfg(test)]
mod tests;
mod transfer;

use crate::error::Error;
use album_base::files::{self, Links};
use album_base::number::bytes;
use part::Part;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use transfer::Transfer;

/// Where the Python package `ogbench` gets its files.
pub const OGBENCH: &str = "https://rail.eecs.berkeley.edu/datasets/ogbench";

/// How long to wait and how much to accept.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long a server may be silent. Pauses between attempts grow with it.
    pub patience: Duration,
    /// The longest file in bytes to accept from a server that announces no length.
    pub limit: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options { patience: Duration::from_secs(30), limit: 16 << 30 }
    }
}

/// Progress of a download.
#[derive(Debug)]
pub enum Event {
    /// Bytes received so far, and the size of the whole file if known.
    Received(u64, Option<u64>),
    /// A message for the user: a wait, a retry, a restart.
    Note(String),
}

/// A complete file.
#[derive(Debug, Serialize)]
pub struct Fetched {
    /// Its path.
    pub path: PathBuf,
    /// Whether it existed before.
    pub kept: bool,
    /// The SHA-256 of an earlier download of the same name, if its bytes were different.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier_sha256: Option<String>,
    /// Where it came from.
    #[serde(flatten)]
    pub record: Record,
}

impl fmt::Display for Fetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.kept { "exists already (delete it to download it again)" } else { "downloaded" };
        let (size, sha256) = (self.record.size.unwrap_or(0), self.record.sha256.as_deref().unwrap_or("?"));
        write!(f, "{}: {what}, {}, sha256 {sha256}", self.path.display(), bytes(size))
    }
}

/// Origin and hash of a file, stored beside it; beside a partial download, what the server announced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The address without credentials; empty if album did not download the file.
    pub url: String,
    /// The length in bytes.
    pub size: Option<u64>,
    /// The SHA-256 in hexadecimal.
    pub sha256: Option<String>,
    /// The server's ETag.
    pub etag: Option<String>,
    /// The server's modification date.
    pub last_modified: Option<String>,
    /// The server's time when the transfer began.
    pub date: Option<String>,
}

/// Why a download failed.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// An invalid address, or one with a query.
    #[error("`{0}` is not an address such as {OGBENCH}")]
    Address(String),
    /// A write failure or a full disk.
    #[error("{0}: {1}")]
    Io(String, #[source] io::Error),
    /// The server is unreachable, or the connection keeps breaking.
    #[error("{0}: {1}")]
    Server(String, String),
    /// The server refuses the request.
    #[error("{0}: {1}")]
    Refused(String, String),
    /// The file, downloaded or already present, is not the expected dataset.
    #[error("{0}: {1}")]
    Content(String, String),
}

impl From<FetchError> for Error {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Address(_) => Error::Usage(format!("{error}; see --from and ALBUM_DATA_URL")),
            FetchError::Io(what, source) => Error::Io { what, source },
            FetchError::Content(..) => Error::Load(format!("{error}; --from names a mirror")),
            FetchError::Server(..) | FetchError::Refused(..) => {
                Error::Tool(format!("{error}; --from names a mirror"))
            }
        }
    }
}

impl FetchError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> FetchError {
        let path = path.display().to_string();
        move |source| FetchError::Io(path, source)
    }
}

/// Downloads a file to `path` unless it exists; `check` validates the content before the file gets its final
/// name.
///
/// User and password in the address are sent but never stored or shown. If another process is downloading the
/// same file, the call waits. The process may be killed at any time: the next call resumes.
pub fn fetch(
    url: &str,
    path: &Path,
    options: Options,
    check: &dyn Fn(&Path) -> Result<(), String>,
    report: &mut dyn FnMut(Event),
) -> Result<Fetched, FetchError> {
    let shown = &shown(url);
    let named =
        |uri: ureq::http::Uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host() != Some("");
    if !url.parse().is_ok_and(named) || url.contains(['?', '#']) {
        return Err(FetchError::Address(shown.clone()));
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(FetchError::io(folder))?;
    }
    let earlier = part::read_record(path);
    let fetched = |record: Record, kept| {
        let earlier = earlier.clone().and_then(|earlier| earlier.sha256);
        let earlier_sha256 = earlier.filter(|earlier| Some(earlier) != record.sha256.as_ref());
        Fetched { path: path.to_path_buf(), kept, earlier_sha256, record }
    };
    let content = |file: &str, problem| FetchError::Content(file.to_owned(), problem);
    let Some(mut part) = Part::claim(path, report)? else {
        let advice = |problem| format!("{problem}; it existed already; delete it to download it again");
        check(path).map_err(|problem| content(&path.display().to_string(), advice(problem)))?;
        let (size, sha256) = digest(path)?;
        let record = earlier.clone().filter(|record| record.sha256 == sha256);
        return Ok(fetched(record.unwrap_or(Record { size, sha256, ..Record::default() }), true));
    };
    let arrived = Transfer { url, shown, part: &mut part, options, report }.run().and_then(|()| {
        check(&part.path).or_else(|problem| {
            part.restart(Record::default())?;
            Err(content(shown, format!("{problem}; nothing was kept")))
        })?;
        digest(&part.path)
    });
    let (size, sha256) = arrived.inspect_err(|_| part.remove_unless_resumable())?;
    let record = Record { size, sha256, ..part.origin.clone() };
    // The record first: a downloaded file never exists without one.
    part::write_record(path, &record)?;
    part.publish(path)?;
    Ok(fetched(record, false))
}

fn digest(path: &Path) -> Result<(Option<u64>, Option<String>), FetchError> {
    let mut hasher = Sha256::new();
    let size = files::open(path, Links::Follow).and_then(|mut file| io::copy(&mut file, &mut hasher));
    Ok((Some(size.map_err(FetchError::io(path))?), Some(format!("{:x}", hasher.finalize()))))
}

/// An address without user, password and query.
fn shown(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = url.split_at(url.find("://").map_or(0, |at| at + 3));
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    format!("{scheme}{}{path}", authority.rsplit('@').next().unwrap_or_default()).escape_debug().to_string()
}
