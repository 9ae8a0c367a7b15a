//! The processors of the machine, as the kernel counts its queues.

use std::fs;

/// So many there may be: `num_possible_cpus`.
pub(super) fn possible() -> usize {
    list("/sys/devices/system/cpu/possible").map_or_else(online_count, |all| all.len()).max(1)
}

/// Numbers of those that run.
pub(super) fn online() -> Vec<usize> {
    list("/sys/devices/system/cpu/online").unwrap_or_else(|| (0..online_count()).collect())
}

fn online_count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn list(path: &str) -> Option<Vec<usize>> {
    parse(fs::read_to_string(path).ok()?.trim())
}

/// A list as the kernel writes it: `0-3,8`.
fn parse(list: &str) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    for range in list.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        // The kernel's own limit (NR_CPUS) is 8192.
        if last >= 1 << 16 {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_the_kernels() {
        assert_eq!(parse("0-3,8"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse("0"), Some(vec![0]));
        assert_eq!((parse(""), parse("0-x"), parse("0-4294967295")), (None, None, None));
        assert!(possible() >= online().len());
    }
}
