//! Which process a thread is of, and who has started that.

use std::collections::HashSet;

use super::KERNEL;
use crate::format::Thread;

/// The threads that have been seen.
#[derive(Default)]
pub(super) struct Threads {
    told: HashSet<u32>,
}

impl Threads {
    /// What to tell of a thread, before its first call.
    pub fn told(&mut self, thread: u32) -> Option<Thread> {
        if !self.told.insert(thread) {
            return None;
        }
        if thread == KERNEL {
            let name = "the kernel".to_owned();
            return Some(Thread { thread, process: 0, parent: None, name });
        }
        let status = std::fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
        let field = |name: &str| {
            status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .map(|text| text.trim().to_owned())
        };
        let number = |name: &str| field(name).and_then(|text| text.parse::<u32>().ok());
        let process = number("Tgid:").unwrap_or(thread);
        let parent = number("PPid:").filter(|parent| *parent > 1);
        Some(Thread { thread, process, parent, name: field("Name:").unwrap_or_default() })
    }
}
