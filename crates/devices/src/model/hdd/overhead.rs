//! What the controller takes for each command, by its kind and the one before it.

use super::params::{HddParams, Overheads, WriteOverheads};
use crate::model::units::ms;

/// When things happen to one command, beside the arm and the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Timing {
    /// It is ready for the arm or the cache.
    pub ready_ns: u64,
    /// From then until the link may take the first sector of a write.
    pub data_ns: u64,
    /// From the last sector to the answer.
    pub end_ns: u64,
}

/// The command completed last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastCommand {
    Read,
    /// Up to this sector.
    Write(u64),
}

#[derive(Debug)]
pub(super) struct Controller {
    overhead_ms: f64,
    special: Overheads,
    pub last: LastCommand,
}

impl Controller {
    pub(super) fn new(p: &HddParams) -> Self {
        let (overhead_ms, special) = (p.controller_overhead_ms, *p.overheads);
        Controller { overhead_ms, special, last: LastCommand::Read }
    }

    fn timing(&self, at_ns: u64, before: Option<f64>, data: f64, end: f64) -> Timing {
        let ready_ns = at_ns + ms(before.unwrap_or(self.overhead_ms));
        Timing { ready_ns, data_ns: ms(data), end_ns: ms(end) }
    }

    /// Of a command that is neither a read nor a write.
    pub(super) fn other(&self, at_ns: u64) -> Timing {
        self.timing(at_ns, None, 0.0, 0.0)
    }

    /// Whether a read from the cache has an overhead of its own.
    pub(super) fn looks_at_cache(&self) -> bool {
        let o = &self.special;
        [o.read_hit, o.read_hit_after_write, o.read_miss, o.read_miss_after_write]
            .iter()
            .any(Option::is_some)
    }

    pub(super) fn read(&self, at_ns: u64, is_cached: bool) -> Timing {
        let o = &self.special;
        let after_write = self.last != LastCommand::Read;
        let (after, before) = match is_cached {
            true => (o.read_hit_after_write, o.read_hit),
            false => (o.read_miss_after_write, o.read_miss),
        };
        self.timing(at_ns, after.filter(|_| after_write).or(before), 0.0, o.read_end)
    }

    pub(super) fn write(&self, at_ns: u64, sector: u64) -> Timing {
        let o = &self.special;
        match (self.last, o.write_apart) {
            (LastCommand::Write(end), Some(WriteOverheads { before, data, end: after }))
                if end != sector =>
            {
                self.timing(at_ns, Some(before), data, after)
            }
            (last, _) => {
                let after = o.write_after_write.filter(|_| last != LastCommand::Read);
                self.timing(at_ns, after.or(o.write), o.write_data, o.write_end)
            }
        }
    }
}
