//! A trace that is put together: files by their paths, calls in any order.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Write;

use super::names::NameTable;
use crate::error::Result;
use crate::format::{TraceCall, TraceEnd, TraceEntry, TraceHeader, TraceThread};
use crate::order::CallOrder;
use crate::reader::{TIME_MAX, can_be};
use crate::writer::TraceWriter;

/// Of processes that have ended before a new one so many are said, those that ended last: with
/// more, a text of many processes would be the square of its length.
const WAITED_MAX: usize = 256;

/// Lines of one kind of which nothing is in the trace: how many, and the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct LeftOutPlaces {
    pub lines: u64,
    /// As [`TraceBuild::at`]; `None`: it is seen only when all are read.
    pub first: Option<(usize, u64)>,
}

/// What has been read so far.
#[derive(Default)]
pub(super) struct TraceBuild {
    pub calls: Vec<TraceCall>,
    pub left_out: BTreeMap<String, LeftOutPlaces>,
    /// Which input is read, and which line of it, from 1.
    pub at: Option<(usize, u64)>,
    /// The thread whose call is read, and when that began.
    pub now: (u32, u64),
    pub(super) names: NameTable,
    threads: BTreeMap<u32, TraceThread>,
    /// Of each process that has not ended those that it waited for.
    waited: HashMap<u32, Vec<u32>>,
    /// Processes that have ended, and that none of these has waited for.
    ended: Vec<u32>,
    handles: u64,
}

impl TraceBuild {
    /// A thread, of a process that another one has started.
    pub fn thread(&mut self, thread: u32, (process, parent): (u32, Option<u32>)) {
        if self.threads.contains_key(&thread) {
            return;
        }
        let is_new = self.waited.insert(process, self.ended.clone()).is_none();
        let waited = if is_new { self.ended.clone() } else { Vec::new() };
        let name = String::new();
        self.threads.insert(thread, TraceThread { thread, process, parent, name, waited });
    }

    /// A process has ended: those that begin later come after it.
    pub fn exited(&mut self, process: u32) {
        let Some(waited) = self.waited.remove(&process) else { return };
        let waited: HashSet<u32> = waited.into_iter().collect();
        self.ended.retain(|other| !waited.contains(other));
        if self.ended.len() == WAITED_MAX {
            self.ended.remove(0);
        }
        self.ended.push(process);
    }

    /// A line of which nothing is in the trace.
    pub fn leave_out(&mut self, why: impl Into<String>) {
        let kind = self.left_out.entry(why.into()).or_default();
        kind.lines += 1;
        kind.first = kind.first.into_iter().chain(self.at).min();
    }

    /// The same of lines that were waited for in vain.
    pub fn leave_out_lines(&mut self, lines: impl Iterator<Item = u64>, why: &str) {
        for line in lines {
            self.at = self.at.map(|(input, _)| (input, line));
            self.leave_out(why);
        }
    }

    /// The next line is read.
    pub fn next_line(&mut self) -> u64 {
        self.at = self.at.map(|(input, line)| (input, line + 1));
        self.at.map_or(0, |(_, line)| line)
    }

    /// A call; one that a trace cannot have is left out.
    pub fn add(&mut self, call: TraceCall) {
        match can_be(&call) {
            Ok(()) => self.calls.push(call),
            Err(_) => self.leave_out("an offset, a length or a name that cannot be"),
        }
    }

    pub fn new_handle(&mut self) -> u64 {
        self.handles += 1;
        self.handles
    }

    /// Puts the calls in order. Those that a trace cannot have are left out.
    pub fn put_in_order(&mut self) {
        self.calls.sort_by_key(|call| call.start);
        let first = self.calls.first().map_or(0, |call| call.start);
        let before = self.calls.len();
        self.calls.retain_mut(|call| {
            call.start -= first;
            call.end = call.end.saturating_sub(first).max(call.start);
            call.end <= TIME_MAX
        });
        self.at = None;
        for _ in self.calls.len()..before {
            self.leave_out("a time that cannot be");
        }
    }

    /// Writes it; how many calls it has.
    pub fn write(self, header: &TraceHeader, out: impl Write) -> Result<u64> {
        let mut writer = TraceWriter::new(out, header)?;
        let mut order = CallOrder::new(None);
        for thread in self.threads.into_values() {
            order.thread(&thread);
            writer.add(&TraceEntry::Thread(thread))?;
        }
        for state in self.names.states.into_values() {
            writer.add(&TraceEntry::File(state))?;
        }
        let mut at = 0;
        for mut call in self.calls {
            at = call.end.max(at);
            order.call(&mut call);
            writer.add(&TraceEntry::Call(call))?;
        }
        let calls = writer.calls();
        writer.end(TraceEnd { calls, at, status: None, interrupted: false })?;
        Ok(calls)
    }
}
