//! The memory that the machine can still provide.

use std::fs;

/// Allocations below this number of bytes are made without looking at what is left.
const SMALL: usize = 64 << 20;

/// Whether the machine can provide `bytes` more bytes of memory. The system itself often grants memory
/// that it does not have, and ends the process when it is used.
pub fn is_available(bytes: usize) -> bool {
    if bytes < SMALL {
        return true;
    }
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let left = available(&read("/proc/meminfo"), &read("/sys/fs/cgroup/memory.max"));
    left.is_none_or(|left| bytes as u64 <= left)
}

/// The bytes that are left according to Linux: memory and swap space, at most the limit of the control
/// group; `None` if it does not say.
fn available(meminfo: &str, limit: &str) -> Option<u64> {
    let field = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
        let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(kibibytes.saturating_mul(1024))
    };
    let left = field("MemAvailable:").map(|bytes| bytes + field("SwapFree:").unwrap_or(0));
    let limit = limit.trim().parse().ok();
    left.into_iter().chain(limit).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_memory_and_swap_space_up_to_the_limit() {
        let meminfo = "MemTotal: 9 kB\nMemAvailable:    4 kB\nSwapFree: 2 kB\n";
        assert_eq!(available(meminfo, "max\n"), Some(6 * 1024));
        assert_eq!(available(meminfo, "100\n"), Some(100));
        assert_eq!(available("", ""), None);
    }

    #[test]
    fn no_machine_has_all_bytes() {
        assert!(is_available(1));
        #[cfg(target_os = "linux")]
        assert!(!is_available(isize::MAX as usize));
    }
}
