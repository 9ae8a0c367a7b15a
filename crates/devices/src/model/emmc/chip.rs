//! The chip: its bus, its flash, its open erase groups and its cache.

use std::collections::BTreeSet;

use super::params::EmmcTimings;
use crate::model::agenda::Agenda;
use crate::model::engine::{Command, CommandCompletion, CommandKind, Physics};

/// An erase group open for writing.
#[derive(Debug)]
struct Group {
    number: u64,
    /// Bytes written since it was opened (at most the group's size counts).
    written: u64,
    /// Whether it held something when it was opened.
    was_used: bool,
}

#[derive(Debug)]
pub(super) struct Chip {
    p: EmmcTimings,
    bus_until_ns: u64,
    flash_until_ns: u64,
    /// Open groups, the one written last at the end.
    open: Vec<Group>,
    used: BTreeSet<u64>,
    /// Where the last read and the last write ended.
    read_end: u64,
    write_end: u64,
    cached: u64,
    leaving: Agenda<u64>,
    /// Whether something was written since the last flush.
    unflushed: bool,
    host_events: Agenda<u64>,
}

impl Chip {
    pub(super) fn new(p: EmmcTimings) -> Self {
        Chip {
            p,
            bus_until_ns: 0,
            flash_until_ns: 0,
            open: Vec::new(),
            used: BTreeSet::new(),
            read_end: u64::MAX,
            write_end: u64::MAX,
            cached: 0,
            leaving: Agenda::default(),
            unflushed: false,
            host_events: Agenda::default(),
        }
    }

    /// The groups under these ranges (offset, length) hold something, all others nothing.
    pub(super) fn set_used(&mut self, ranges: &[(u64, u64)]) {
        self.open.clear();
        self.used.clear();
        for (offset, len) in ranges {
            self.used.extend(offset / self.p.group..(offset + len).div_ceil(self.p.group));
        }
    }

    fn read(&mut self, at: u64, offset: u64, len: u64) -> u64 {
        // Reads go before what the cache still has to write out, but not into a program.
        let access = if offset == self.read_end { 0 } else { self.p.read_access_ns };
        self.read_end = offset + len;
        let start = if self.p.cache { at } else { at.max(self.flash_until_ns) };
        let flash_ns = access + self.p.read.time(len);
        self.flash_until_ns = self.flash_until_ns.max(start) + flash_ns;
        (start + flash_ns).max(at + self.p.bus.time(len))
    }

    /// What closing a group costs: copying what was not rewritten, erasing the old one.
    fn close_time(&self, group: &Group) -> u64 {
        if !group.was_used {
            return 0;
        }
        let rest = self.p.group.saturating_sub(group.written);
        self.p.read.time(rest) + self.p.write.time(rest) + self.p.erase_ns
    }

    /// What it costs that `bytes` are written to a group, beside programming them.
    fn write_to_group(&mut self, number: u64, bytes: u64) -> u64 {
        let mut cost = 0;
        let group = match self.open.iter().position(|g| g.number == number) {
            Some(i) => self.open.remove(i),
            None => {
                if self.open.len() >= self.p.open_groups {
                    let oldest = self.open.remove(0);
                    cost = self.close_time(&oldest);
                }
                Group { number, written: 0, was_used: !self.used.insert(number) }
            }
        };
        self.open.push(Group { written: group.written + bytes, ..group });
        cost
    }

    /// Programs a write from `at` on; returns when it is in flash.
    fn program(&mut self, at: u64, offset: u64, len: u64) -> u64 {
        let mut cost = self.p.write.time(len);
        let continues = self.p.cache && offset == self.write_end;
        if !continues {
            cost += self.p.write_access_ns;
        }
        self.write_end = offset + len;
        for number in offset / self.p.group..(offset + len).div_ceil(self.p.group) {
            let begin = offset.max(number * self.p.group);
            let end = (offset + len).min((number + 1) * self.p.group);
            cost += self.write_to_group(number, end - begin);
        }
        self.flash_until_ns = self.flash_until_ns.max(at) + cost;
        self.flash_until_ns
    }

    fn write(&mut self, at: u64, offset: u64, len: u64, fua: bool) -> u64 {
        if !self.p.cache {
            let received = at + self.p.bus.time(len);
            // Programming goes on while the rest comes over the faster bus.
            return self.program(at, offset, len).max(received);
        }
        self.unflushed = true;
        let received = self.space(at, len) + self.p.bus.time(len);
        let programmed = self.program(received, offset, len);
        self.leaving.enter(programmed, len);
        if fua { programmed } else { received }
    }

    /// When the cache has space for `len` more bytes.
    fn space(&mut self, at: u64, len: u64) -> u64 {
        let mut when = at;
        while let Some((_, bytes)) = self.leaving.take_due(at) {
            self.cached -= bytes;
        }
        while self.cached > 0 && self.cached + len > self.p.cache_bytes {
            let Some((left_at, bytes)) = self.leaving.take_due(u64::MAX) else { break };
            self.cached -= bytes;
            when = when.max(left_at);
        }
        self.cached += len;
        when
    }

    fn flush(&mut self, at: u64) -> u64 {
        if !std::mem::take(&mut self.unflushed) {
            return at;
        }
        self.flash_until_ns = self.flash_until_ns.max(at) + self.p.flush_ns;
        self.flash_until_ns
    }

    /// Groups that a discard covers whole hold nothing any more.
    fn discard(&mut self, offset: u64, len: u64) {
        let gone = offset.div_ceil(self.p.group)..(offset + len) / self.p.group;
        let numbers: Vec<u64> =
            self.used.range(gone.start..gone.end.max(gone.start)).copied().collect();
        for number in numbers {
            self.used.remove(&number);
            self.open.retain(|g| g.number != number);
        }
    }
}

impl Physics for Chip {
    const DISCARDS: bool = true;

    fn arrive(&mut self, at_ns: u64, command: Command) {
        let at = self.bus_until_ns.max(at_ns) + self.p.command_ns;
        let Command { id, op, offset, len } = command;
        let done_ns = match op {
            CommandKind::Read => self.read(at, offset, len),
            CommandKind::Write { fua } => self.write(at, offset, len, fua),
            CommandKind::Flush => self.flush(at),
            CommandKind::Discard => {
                self.discard(offset, len);
                at
            }
        };
        self.bus_until_ns = done_ns;
        self.host_events.enter(done_ns, id);
    }

    fn next_event(&self) -> Option<u64> {
        self.host_events.next()
    }

    fn advance(&mut self, until_ns: u64, done: &mut Vec<CommandCompletion>) {
        while let Some((_, id)) = self.host_events.take_due(until_ns) {
            done.push(CommandCompletion::well(id));
        }
    }
}
