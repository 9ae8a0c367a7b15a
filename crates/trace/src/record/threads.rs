//! Which process a thread is of, and who has started that.

use std::collections::HashMap;
use std::path::Path;

use super::KERNEL;
use crate::format::TraceThread;

/// The threads that have been seen.
#[derive(Default)]
pub(super) struct ThreadTable {
    /// Of each thread its process.
    told: HashMap<u32, u32>,
    /// Threads that run, but for those that are alone.
    beside: HashMap<u32, Vec<u32>>,
    /// Processes that run, each with those that it has waited for.
    running: HashMap<u32, Vec<u32>>,
    /// Processes that have ended, and that none of these has waited for.
    ended: Vec<u32>,
}

impl ThreadTable {
    /// What to tell of a thread, before its first call.
    pub fn told(&mut self, thread: u32) -> Option<TraceThread> {
        if self.told.contains_key(&thread) {
            return None;
        }
        if thread == KERNEL {
            self.told.insert(thread, KERNEL);
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
        self.told.insert(thread, process);
        self.beside.entry(process).or_default().push(thread);
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

    /// The other threads of its process that have ended since this was last asked for one of it.
    pub fn ended_beside(&mut self, thread: u32) -> Vec<u32> {
        let Some(process) = self.told.get(&thread) else { return Vec::new() };
        let Some(beside) = self.beside.get_mut(process).filter(|all| all.len() > 1) else {
            return Vec::new();
        };
        let is_gone = |other: &u32| {
            *other != thread && !Path::new(&format!("/proc/{process}/task/{other}")).exists()
        };
        beside.extract_if(.., |other| is_gone(other)).collect()
    }

    /// The processes that have ended by now: nobody waits for them any more (proc(5)). Those that
    /// one of them had waited for itself are left out.
    fn ended(&mut self) -> Vec<u32> {
        let is_gone = |process: &u32| !Path::new(&format!("/proc/{process}")).exists();
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
