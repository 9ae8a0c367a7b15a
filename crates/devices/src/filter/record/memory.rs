//! Recording a memory device, and when a cache line of it is durable.

use std::collections::HashMap;

use bytes::Bytes;
use steadfast_block::{BlockError, DirectMemory, Result};

use super::{Action, Event, Record};
use crate::store::PackedBytes;

/// Bytes of a cache line: what is written back at a time.
const LINE: u64 = 64;
/// Bytes that a power cut leaves old or new, never mixed, where they are aligned.
pub(super) const WORD: u32 = 8;

/// The write-backs of each cache line.
#[derive(Debug, Clone, Default)]
pub(super) struct Lines {
    /// By the line's number, in the order of the persists: the tick at which the persist began,
    /// and that at which the first fence after it had returned.
    lines: HashMap<u64, Vec<(u64, u64)>>,
}

impl Lines {
    /// From one device's events, in the order in which they were begun.
    pub fn of<'e>(events: impl Iterator<Item = &'e Event>) -> Lines {
        let mut lines = Lines::default();
        // Persists that no fence has covered yet.
        let mut waiting: Vec<(u64, u64, u64, u64)> = Vec::new();
        for event in events.filter(|event| !event.failed) {
            let Some(done) = event.completed else { continue };
            match event.action {
                Action::Persist { offset, len } if len > 0 => {
                    waiting.push((
                        offset / LINE,
                        (offset + len - 1) / LINE,
                        event.submitted.tick,
                        done.tick,
                    ));
                }
                Action::Fence => waiting.retain(|&(first, last, begun, ended)| {
                    // One that was still in flight is covered by a later fence.
                    let covered = ended < event.submitted.tick;
                    if covered {
                        for line in first..=last {
                            lines.lines.entry(line).or_default().push((begun, done.tick));
                        }
                    }
                    !covered
                }),
                _ => {}
            }
        }
        lines.lines.values_mut().for_each(|line| line.sort_unstable());
        lines
    }

    /// Whether what was stored at `offset` by a store that ended at tick `stored` is durable at a
    /// power cut.
    pub fn durable(&self, offset: u64, stored: u64, cut: u64) -> bool {
        let Some(line) = self.lines.get(&(offset / LINE)) else { return false };
        let after = line.partition_point(|(begun, _)| *begun <= stored);
        line[after..].iter().any(|(_, fenced)| *fenced < cut)
    }

    /// Whether all of `len` bytes at `offset` are.
    pub fn all_durable(&self, offset: u64, len: u64, stored: u64, cut: u64) -> bool {
        let lines = offset / LINE..(offset + len).div_ceil(LINE);
        lines.into_iter().all(|line| self.durable(line * LINE, stored, cut))
    }
}

impl Record {
    fn memory(&self) -> Result<&dyn DirectMemory> {
        let gone = || BlockError::Gone {
            device: self.info.name.clone(),
            reason: "it is no longer memory".into(),
        };
        self.next.direct_memory().ok_or_else(gone)
    }

    /// Does something and notes it. What lies outside is refused by the memory and not noted.
    fn noted(
        &self,
        (offset, len): (u64, u64),
        action: Action,
        work: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        if offset.checked_add(len).is_none_or(|end| end > self.info.size) {
            return work();
        }
        let number = self.log.begin(self.device, action);
        let outcome = work();
        if let Some(number) = number {
            self.log.end(number, outcome.is_err());
        }
        outcome
    }
}

impl DirectMemory for Record {
    fn load(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.memory()?.load(offset, out)
    }

    fn store(&self, offset: u64, data: &[u8]) -> Result<()> {
        let memory = self.memory()?;
        let packed = PackedBytes::pack(&Bytes::copy_from_slice(data));
        self.noted((offset, data.len() as u64), Action::Store { offset, data: packed }, || {
            memory.store(offset, data)
        })
    }

    fn persist(&self, offset: u64, len: u64) -> Result<()> {
        let memory = self.memory()?;
        self.noted((offset, len), Action::Persist { offset, len }, || memory.persist(offset, len))
    }

    /// A store and then a persist, in the record; one call for the memory, which may have a faster
    /// way for both.
    fn store_through(&self, offset: u64, data: &[u8]) -> Result<()> {
        let memory = self.memory()?;
        let (packed, len) = (PackedBytes::pack(&Bytes::copy_from_slice(data)), data.len() as u64);
        self.noted((offset, len), Action::Store { offset, data: packed }, || {
            memory.store_through(offset, data)
        })?;
        self.noted((offset, len), Action::Persist { offset, len }, || Ok(()))
    }

    fn fence(&self) -> Result<()> {
        let memory = self.memory()?;
        self.noted((0, 0), Action::Fence, || memory.fence())
    }
}
