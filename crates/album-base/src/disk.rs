//! Free space on the disk.

use std::path::Path;

/// Free bytes for this user on the file system of a folder; `None` if the system does not report them.
pub fn free(folder: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let disk = rustix::fs::statvfs(folder).ok()?;
        disk.f_bavail.checked_mul(disk.f_frsize)
    }
    #[cfg(not(unix))]
    {
        let _ = folder;
        None
    }
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    #[test]
    fn a_disk_has_some_room_and_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let free = super::free(folder.path()).unwrap();
        assert!(free > 0 && free < 1 << 60, "{free}");
        assert_eq!(super::free(&folder.path().join("missing")), None);
    }
}
