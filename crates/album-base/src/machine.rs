//! The memory of this machine.

use crate::number;

/// More memory than the machine has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} needs about {}, and this machine has {}", number::bytes(*needed), number::bytes(*available))]
pub struct NotEnough {
    /// What needs it.
    pub what: String,
    /// Bytes needed.
    pub needed: u64,
    /// Bytes of the machine.
    pub available: u64,
}

/// Refuses what cannot fit into the memory of this machine, before anything is allocated.
pub fn check_memory(what: impl Into<String>, needed: u64) -> Result<(), NotEnough> {
    match memory() {
        Some(available) if needed > available => Err(NotEnough { what: what.into(), needed, available }),
        _ => Ok(()),
    }
}

/// Memory in bytes that a process may use: the machine's, or the limit of its container or `ulimit`; `None`
/// if the system does not report it.
pub fn memory() -> Option<u64> {
    let container = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .into_iter()
        .filter_map(|file| std::fs::read_to_string(file).ok()?.trim().parse().ok());
    meminfo("MemTotal:").into_iter().chain(container).chain(limit()).min()
}

/// Currently available memory in bytes; `None` if the system does not report it.
pub fn available() -> Option<u64> {
    meminfo("MemAvailable:")
}

fn meminfo(field: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with(field))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The limits of `ulimit -v` and `ulimit -d`.
fn limit() -> Option<u64> {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit};
        [Resource::As, Resource::Data].into_iter().filter_map(|which| getrlimit(which).current).min()
    }
    #[cfg(not(unix))]
    None
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_has_some_memory() {
        let (all, now) = (super::memory().unwrap(), super::available().unwrap());
        assert!(all > 1 << 24 && all < 1 << 50 && now > 0, "{all} {now}");
        assert!(super::check_memory("a test", 1).is_ok());
        let message = super::check_memory("a test", u64::MAX).unwrap_err().to_string();
        assert!(
            message.starts_with("a test needs about ") && message.contains("this machine has"),
            "{message}"
        );
    }
}
