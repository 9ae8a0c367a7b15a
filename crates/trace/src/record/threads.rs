//! Which process a thread is of, and who has started that.

use std::collections::{HashMap, HashSet};

use super::KERNEL;
use crate::format::TraceThread;

/// The threads that have been seen.
#[derive(Default)]
pub(super) struct ThreadTable {
    told: HashSet<u32>,
    /// Processes that run, each with those that it has waited for.
    running: HashMap<u32, Vec<u32>>,
    /// Processes that have ended, and that none of these has waited for.
    ended: Vec<u32>,
}

impl ThreadTable {
    /// What to tell of a thread, before its first call.
    pub fn told(&mut self, thread: u32) -> Option<TraceThread> {
        if !self.told.insert(thread) {
            return None;
        }
        if thread == KERNEL {
            let name = "the kernel".to_owned();
            return Some(TraceThread {
                thread,
                process: 0,
                parent: None,
                name,
                waited: Vec::new(),
            });
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
        let is_new = !self.running.contains_key(&process);
        let waited = if is_new { self.ended() } else { Vec::new() };
        self.running.entry(process).or_insert_with(|| waited.clone());
        Some(TraceThread {
            thread,
            process,
            parent,
            name: field("Name:").unwrap_or_default(),
            waited,
        })
    }

    /// The processes that have ended by now: nobody waits for them any more (proc(5)). Those that
    /// one of them had waited for itself are left out.
    fn ended(&mut self) -> Vec<u32> {
        let is_gone = |process: &u32| !std::path::Path::new(&format!("/proc/{process}")).exists();
        let gone: Vec<u32> = self.running.keys().copied().filter(is_gone).collect();
        for process in gone {
            let waited = self.running.remove(&process).unwrap_or_default();
            self.ended.retain(|other| !waited.contains(other));
            self.ended.push(process);
        }
        self.ended.sort_unstable();
        self.ended.clone()
    }
}
