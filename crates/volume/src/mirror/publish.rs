//! Labels and map, written so that a cut leaves what can be trusted.
//!
//! Both are written to all active legs that count (labels also to volatile ones) before anything
//! that depends on them is done or acknowledged. A leg that does not take them is dropped, which is
//! a change of the labels of the others, and so on until all that are left agree.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{BlockDevice, BlockError, Completion, Request};

use super::Core;
use super::regions::Snapshot;
use super::state::{State, bit, slots};
use crate::ondisk::map::slot_at;
use crate::ondisk::{LABEL_AT, second_label_at};

type Device = Arc<dyn BlockDevice>;

/// A write to one leg: the leg's slot, its device, where, and what.
struct ToLeg {
    slot: usize,
    device: Device,
    offset: u64,
    bytes: Bytes,
}

/// Writes all at once, with FUA; which legs failed, and how.
fn write_all(writes: Vec<ToLeg>) -> Vec<(usize, BlockError)> {
    let sent: Vec<(usize, Completion)> = writes
        .into_iter()
        .map(|w| {
            let data = w.bytes.into();
            (w.slot, w.device.submit(Request::Write { offset: w.offset, data, fua: true }))
        })
        .collect();
    let mut failed: Vec<(usize, BlockError)> = Vec::new();
    for (slot, completion) in sent {
        if let Err(error) = completion.wait()
            && !failed.iter().any(|(s, _)| *s == slot)
        {
            failed.push((slot, error));
        }
    }
    failed
}

impl Core {
    /// Makes the labels say who the members are, durably.
    pub(crate) fn publish(&self) -> Result<(), BlockError> {
        self.publish_as(false)
    }

    pub(super) fn publish_as(&self, closed: bool) -> Result<(), BlockError> {
        let _one = self.labels.lock();
        loop {
            let (first, second, version) = {
                let mut state = self.state.lock();
                if let Some(failed) = state.failed.clone() {
                    return Err(failed);
                }
                if state.is_settled() && !closed {
                    return Ok(());
                }
                if let Some(alone) = self.nobody_durable(&mut state) {
                    return Err(alone);
                }
                state.generation += 1;
                let (first, second) = self.labels_of(&state, closed);
                (first, second, state.membership)
            };
            let mut failed = write_all(first);
            if failed.is_empty() {
                failed = write_all(second);
            }
            let mut state = self.state.lock();
            if failed.is_empty() {
                state.published = version;
                drop(state);
                self.changed.notify_all();
                return Ok(());
            }
            self.drop_all(&mut state, &failed);
        }
    }

    /// Without a durable leg nothing can be promised, now or later.
    fn nobody_durable(&self, state: &mut State) -> Option<BlockError> {
        if state.active() & state.durable() != 0 {
            return None;
        }
        let (device, reason) = (self.name.clone(), "no durable leg is in use".into());
        let alone = BlockError::Gone { device, reason };
        state.failed.get_or_insert(alone.clone());
        self.changed.notify_all();
        Some(alone)
    }

    /// Drops legs; where the mirror cannot do without one of them, nothing works any more.
    fn drop_all(&self, state: &mut State, failed: &[(usize, BlockError)]) {
        for (slot, error) in failed {
            if !state.drop_failed(*slot, &error.to_string()) {
                state.failed.get_or_insert(error.clone());
                self.changed.notify_all();
            }
        }
    }

    /// Both copies of the label of every active leg.
    fn labels_of(&self, state: &State, closed: bool) -> (Vec<ToLeg>, Vec<ToLeg>) {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for slot in slots(state.active()) {
            let Some((leg, device)) = state.leg(slot) else { continue };
            let label = state.label(self.volume, &self.name, slot, leg, closed);
            let (bytes, device) = (Bytes::from(label.encode()), Arc::clone(device));
            let offset = second_label_at(leg.device_bytes);
            let to = |offset, bytes| ToLeg { slot, device: Arc::clone(&device), offset, bytes };
            first.push(to(LABEL_AT, bytes.clone()));
            second.push(to(offset, bytes));
        }
        (first, second)
    }

    /// Makes every change of the map that was made before this call durable.
    pub(crate) fn commit(&self) -> Result<(), BlockError> {
        let mut state = self.state.lock();
        let target = match state.regions.is_committed() {
            true => state.passes_begun,
            false => state.passes_begun + 1,
        };
        loop {
            if let Some(failed) = state.failed.clone() {
                return Err(failed);
            }
            if state.passes_done >= target {
                return Ok(());
            }
            if state.passes_begun > state.passes_done {
                state = self.changed.wait(state);
                continue;
            }
            if let Some(alone) = self.nobody_durable(&mut state) {
                return Err(alone);
            }
            state.passes_begun += 1;
            let snapshots = state.regions.begin_commit();
            let writes = self.map_writes(&state, &snapshots);
            drop(state);
            let failed = write_all(writes);
            let published = self.without(&failed);
            state = self.state.lock();
            if published.is_ok() {
                state.regions.end_commit(&snapshots);
            } else {
                state.regions.fail_commit(&snapshots);
            }
            state.passes_done += 1;
            self.changed.notify_all();
        }
    }

    /// Drops legs that did not take a part of the map, durably.
    fn without(&self, failed: &[(usize, BlockError)]) -> Result<(), BlockError> {
        if failed.is_empty() {
            return Ok(());
        }
        self.drop_all(&mut self.state.lock(), failed);
        self.publish()
    }

    fn map_writes(&self, state: &State, snapshots: &[Snapshot]) -> Vec<ToLeg> {
        let keepers = state.active() & state.durable();
        let mut writes = Vec::new();
        for Snapshot { block, contents } in snapshots {
            let bytes = Bytes::from(contents.encode(self.volume, *block));
            let offset = slot_at(*block, contents.sequence);
            for slot in slots(keepers) {
                let Some((_, device)) = state.leg(slot) else { continue };
                let (device, bytes) = (Arc::clone(device), bytes.clone());
                writes.push(ToLeg { slot, device, offset, bytes });
            }
        }
        writes
    }

    /// After writes or flushes to `failed` legs: drops them durably. Of a leg that the mirror
    /// cannot do without, those of these regions that others hold become stale, durably.
    pub(super) fn fail(
        &self,
        failed: &[(usize, BlockError)],
        regions: std::ops::Range<u32>,
    ) -> Result<(), BlockError> {
        let mask: u8 = failed.iter().map(|(slot, _)| bit(*slot)).fold(0, |all, b| all | b);
        let mut kept = false;
        {
            let mut state = self.state.lock();
            for (slot, error) in failed {
                if let Some(leg) = state.legs[*slot].as_mut() {
                    leg.counters.errors += 1;
                }
                if state.drop_failed(*slot, &error.to_string()) {
                    continue;
                }
                kept = true;
                let others = state.active() & state.durable() & !mask;
                for region in regions.clone() {
                    if others & !state.regions.lacking(region) != 0 {
                        state.regions.set_stale(region, bit(*slot));
                    }
                }
            }
        }
        self.publish()?;
        if kept { self.commit() } else { Ok(()) }
    }
}
