//! The chip: its bus, its flash, its open erase groups and its cache.

use std::collections::BTreeSet;

use super::params::{EmmcMapping, EmmcParams};
use crate::model::ModelError;
use crate::model::buffer::BufferSpace;
use crate::model::engine::{Command, CommandKind, Physics};
use crate::model::units::{kib, ms, transfer_ns, us};
use crate::store::Store;

/// An erase group open for writing.
#[derive(Debug)]
struct Group {
    number: u64,
    /// Bytes written since it was opened (at most the group's size counts).
    written: u64,
    /// Whether it held something when it was opened.
    was_used: bool,
}

#[derive(Debug, Default)]
pub struct Chip {
    p: EmmcParams,
    /// Bytes of an erase group.
    group: u64,
    bus_until_ns: u64,
    flash_until_ns: u64,
    /// Open groups, the one written last at the end.
    open: Vec<Group>,
    used: BTreeSet<u64>,
    /// Where pages are mapped: bytes written since a group was erased.
    since_erasure: u64,
    /// Where the last read and the last write ended.
    read_end: u64,
    write_end: u64,
    cache: BufferSpace,
    /// Whether something was written since the last flush.
    unflushed: bool,
}

impl Chip {
    fn read(&mut self, at: u64, offset: u64, len: u64) -> u64 {
        // Reads go before what the cache still has to write out, but not into a program.
        let access = if offset == self.read_end { 0 } else { us(self.p.read_access_us) };
        self.read_end = offset + len;
        let start = if self.p.cache { at } else { at.max(self.flash_until_ns) };
        let flash_ns = access + transfer_ns(len, self.p.read_mb_per_s);
        self.flash_until_ns = self.flash_until_ns.max(start) + flash_ns;
        (start + flash_ns).max(at + transfer_ns(len, self.p.bus_mb_per_s))
    }

    /// What closing a group costs: copying what was not rewritten, erasing the old one.
    fn close_time(&self, group: &Group) -> u64 {
        if !group.was_used {
            return 0;
        }
        let rest = self.group.saturating_sub(group.written);
        transfer_ns(rest, self.p.read_mb_per_s)
            + transfer_ns(rest, self.p.write_mb_per_s)
            + ms(self.p.erase_ms)
    }

    /// What it costs that `bytes` are written to a group, beside programming them.
    fn write_to_group(&mut self, number: u64, bytes: u64) -> u64 {
        let mut cost = 0;
        if self.p.mapping == EmmcMapping::Pages {
            // The part is full: as much is erased as is written.
            self.since_erasure += bytes;
            let erased = self.since_erasure / self.group;
            self.since_erasure %= self.group;
            return erased * ms(self.p.erase_ms);
        }
        let group = match self.open.iter().position(|g| g.number == number) {
            Some(i) => self.open.remove(i),
            None => {
                if self.open.len() >= self.p.open_groups as usize {
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
        let mut cost = transfer_ns(len, self.p.write_mb_per_s);
        let continues = self.p.cache && offset == self.write_end;
        if !continues {
            cost += us(self.p.write_access_us);
        }
        self.write_end = offset + len;
        for number in offset / self.group..(offset + len).div_ceil(self.group) {
            let begin = offset.max(number * self.group);
            let end = (offset + len).min((number + 1) * self.group);
            cost += self.write_to_group(number, end - begin);
        }
        self.flash_until_ns = self.flash_until_ns.max(at) + cost;
        self.flash_until_ns
    }

    fn write(&mut self, at: u64, offset: u64, len: u64, fua: bool) -> u64 {
        let received_in = transfer_ns(len, self.p.bus_mb_per_s);
        if !self.p.cache {
            // Programming goes on while the rest comes over the faster bus.
            return self.program(at, offset, len).max(at + received_in);
        }
        self.unflushed = true;
        let received = self.cache.take(at, len) + received_in;
        let programmed = self.program(received, offset, len);
        self.cache.leave(programmed, len);
        if fua { programmed } else { received }
    }

    fn flush(&mut self, at: u64) -> u64 {
        if !std::mem::take(&mut self.unflushed) {
            return at;
        }
        self.flash_until_ns = self.flash_until_ns.max(at) + us(self.p.flush_us);
        self.flash_until_ns
    }

    /// Groups that a discard covers whole hold nothing any more.
    fn discard(&mut self, offset: u64, len: u64) {
        let gone = offset.div_ceil(self.group)..(offset + len) / self.group;
        let numbers: Vec<u64> =
            self.used.range(gone.start..gone.end.max(gone.start)).copied().collect();
        for number in numbers {
            self.used.remove(&number);
            self.open.retain(|g| g.number != number);
        }
    }
}

impl Physics for Chip {
    type Params = EmmcParams;

    const DISCARDS: bool = true;

    fn new(params: &EmmcParams) -> Result<Self, ModelError> {
        Ok(Chip {
            group: kib(params.erase_group_kb),
            read_end: u64::MAX,
            write_end: u64::MAX,
            cache: BufferSpace::new(kib(params.cache_kb)),
            p: params.clone(),
            ..Chip::default()
        })
    }

    fn queue_depth(_: &EmmcParams) -> u32 {
        1
    }

    fn arrive(&mut self, at_ns: u64, command: Command) -> Option<u64> {
        let at = self.bus_until_ns.max(at_ns) + us(self.p.command_us);
        let Command { op, offset, len, .. } = command;
        self.bus_until_ns = match op {
            CommandKind::Read => self.read(at, offset, len),
            CommandKind::Write { fua } => self.write(at, offset, len, fua),
            CommandKind::Flush => self.flush(at),
            CommandKind::Discard => {
                self.discard(offset, len);
                at
            }
        };
        Some(self.bus_until_ns)
    }

    /// Counts every erase group that is not empty as written before.
    fn contents_replaced(&mut self, contents: &Store) {
        self.open.clear();
        self.used.clear();
        for (offset, len) in contents.populated() {
            self.used.extend(offset / self.group..(offset + len).div_ceil(self.group));
        }
    }
}
