//! Which reading changes a time of access.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use crate::options::{AccessTimes, MountOptions};

/// Which reading counts, for all operations that go on; `-o remount` changes it.
#[derive(Debug)]
pub(crate) struct AccessRule {
    pub times: AtomicU8,
    pub no_directories: AtomicBool,
}

impl AccessRule {
    /// As the mount options have it.
    pub fn of(options: &MountOptions) -> AccessRule {
        let (times, no_directories) = (options.access_times, options.no_directory_access_times);
        AccessRule {
            times: AtomicU8::new(times as u8),
            no_directories: AtomicBool::new(no_directories),
        }
    }

    pub fn times(&self) -> AccessTimes {
        let times = self.times.load(Ordering::Relaxed);
        let all = [AccessTimes::Never, AccessTimes::Always];
        all.into_iter().find(|t| *t as u8 == times).unwrap_or(AccessTimes::Relative)
    }
}
