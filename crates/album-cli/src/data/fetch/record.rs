//! What is remembered about a fetched file, beside it.

use super::part::Origin;
use album::Error as Failure;
use album_base::atomic;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Where a file came from, and how to recognise it.
#[derive(Serialize, Deserialize)]
pub struct Record {
    /// The address it was asked for at; empty if the file was put there by somebody else.
    pub url: String,
    pub size: u64,
    pub sha256: String,
    pub etag: Option<String>,
    pub last_modified: Option<String>,
    /// When it was whole, in UTC.
    pub date: String,
}

impl Record {
    pub fn new(url: &str, size: u64, sha256: String, origin: &Origin) -> Self {
        Record {
            url: url.to_owned(),
            size,
            sha256,
            etag: origin.etag.clone(),
            last_modified: origin.last_modified.clone(),
            date: utc(SystemTime::now()),
        }
    }

    pub fn of_unknown_origin(size: u64, sha256: String) -> Self {
        Record { url: String::new(), size, sha256, etag: None, last_modified: None, date: String::new() }
    }

    /// The record of an earlier fetch of this file, if there is one that can be read.
    pub fn of(file: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(beside(file)).ok()?).ok()
    }

    pub fn write(&self, file: &Path) -> Result<(), Failure> {
        let path = beside(file);
        let text = serde_json::to_string_pretty(self).map_err(|e| Failure::Numerical(e.to_string()))?;
        atomic::write(&path, format!("{text}\n").as_bytes()).map_err(Failure::io(&path))
    }
}

/// The name of a file with `.json` behind it.
pub fn beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".json");
    PathBuf::from(name)
}

/// A time as 2026-11-16T00:27:27Z.
fn utc(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (mut day, second) = (seconds / 86_400, seconds % 86_400);
    let leap = |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let mut year = 1970;
    while day >= 365 + u64::from(leap(year)) {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let mut month = 0;
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    while day >= lengths[month] {
        day -= lengths[month];
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", month + 1, day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn dates() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(UNIX_EPOCH + Duration::from_secs(seconds)), expected);
        }
    }
}
