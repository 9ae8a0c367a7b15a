//! Labels and map, written so that they can be trusted after a power cut.
//!
//! Both are written to all active durable legs (labels also to volatile ones) before any action
//! that depends on them. A leg that fails is dropped. This changes the labels of the others, and so
//! on, until all remaining legs agree.

use std::sync::Arc;

use steadfast_block::{BlockError, Payload, Request};

use super::events::KeepReason;
use super::leg::{Leg, LegFailure, LegRequest, bit, send_all, slots};
use super::metadata::Metadata;
use super::regions::MapBlockWrite;
use super::state::State;
use crate::ondisk::label::GENERATION_MAX;
use crate::ondisk::map::slot_at;
use crate::ondisk::{LABEL_AT, MAP_AT, second_label_at};

/// One generation of the labels.
struct LabelGeneration {
    generation: u64,
    /// Up to which change of the members.
    version: u64,
    first: Vec<LegRequest>,
    second: Vec<LegRequest>,
    /// Legs that are in use again since the generation before, and their epochs.
    back: Vec<(usize, u64)>,
}

impl Metadata {
    /// Makes the labels say who the members are, durably. Each change is written twice: the first
    /// edition still has the generation from before the change as the newest that is on all legs
    /// (`base`), so a copy of a leg from then would be trusted. Of the second one only the first
    /// is the base, which says that everybody has it.
    pub(crate) fn publish(&self) -> Result<(), BlockError> {
        self.publish_as(false)
    }

    pub(super) fn publish_as(&self, closed: bool) -> Result<(), BlockError> {
        let _one = self.labels.lock();
        // The change that is on all legs, once.
        let mut once = None;
        loop {
            let Some(edition) = self.next_edition(closed)? else { return Ok(()) };
            let mut failed = send_all(edition.first);
            if failed.is_empty() {
                failed = send_all(edition.second);
            }
            let mut state = self.state.lock();
            if !failed.is_empty() {
                self.drop_all(&mut state, &failed);
                continue;
            }
            state.base = state.base.max(edition.generation);
            state.confirm(&edition.back);
            if once != Some(edition.version) {
                once = Some(edition.version);
                continue;
            }
            state.published = edition.version;
            drop(state);
            self.changed.notify_all();
            return Ok(());
        }
    }

    /// The labels to be written now; `None` if they are as they should be.
    fn next_edition(&self, closed: bool) -> Result<Option<LabelGeneration>, BlockError> {
        let mut state = self.state.lock();
        if let Some(failed) = state.failed.clone() {
            return Err(failed);
        }
        if state.published >= state.membership && !closed {
            return Ok(None);
        }
        if let Some(alone) = self.nobody_durable(&mut state) {
            return Err(alone);
        }
        if state.generation >= GENERATION_MAX {
            let what = "its labels have been changed as often as they can be";
            return Err(self.ends(&mut state, LABEL_AT, what));
        }
        state.generation += 1;
        let (first, second) = self.labels_of(&state, closed);
        let back = slots(state.legs.active()).filter_map(|slot| {
            let (leg, _) = state.legs.leg(slot).filter(|(leg, _)| leg.left.is_some())?;
            Some((slot, leg.epoch))
        });
        Ok(Some(LabelGeneration {
            generation: state.generation,
            version: state.membership,
            back: back.collect(),
            first,
            second,
        }))
    }

    /// Without a durable leg nothing can be promised, now or later.
    fn nobody_durable(&self, state: &mut State) -> Option<BlockError> {
        if state.legs.active() & state.legs.durable() != 0 {
            return None;
        }
        let (device, reason) = (self.name.clone(), "no durable leg is in use".into());
        let alone = BlockError::Gone { device, reason };
        state.failed.get_or_insert(alone.clone());
        self.changed.notify_all();
        Some(alone)
    }

    /// Nothing can be written down any more: requests that wait for it would wait for ever.
    fn ends(&self, state: &mut State, offset: u64, what: &str) -> BlockError {
        let (device, reason) = (state.info.name.clone(), what.into());
        let error = BlockError::Io { device, op: "write", offset, reason };
        state.failed.get_or_insert(error.clone());
        self.changed.notify_all();
        error
    }

    /// Drops legs; where the mirror cannot do without one of them, nothing works any more. If no
    /// durable leg would be left all stay: none of them holds less than another.
    pub(super) fn drop_all(&self, state: &mut State, failed: &[LegFailure]) {
        let in_use = state.legs.active() & state.legs.durable();
        let all = in_use != 0 && in_use & !state.legs.still_in_use(failed) == 0;
        for failed in failed {
            if all && in_use & bit(failed.slot) != 0 {
                state.keep_failed(failed, KeepReason::AllFailed);
                state.failed.get_or_insert(failed.error.clone());
                self.changed.notify_all();
                continue;
            }
            if !state.drop_failed(failed) {
                state.failed.get_or_insert(failed.error.clone());
                self.changed.notify_all();
            }
        }
    }

    /// Both copies of the label of every active leg.
    fn labels_of(&self, state: &State, closed: bool) -> (Vec<LegRequest>, Vec<LegRequest>) {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for slot in slots(state.legs.active()) {
            let Some((leg, device)) = state.legs.leg(slot).filter(|(leg, _)| !leg.joining) else {
                continue;
            };
            let label = state.label(self.volume, &self.name, slot, leg, closed);
            let (data, epoch) = (Payload::from(label.encode()), leg.epoch);
            let end = second_label_at(leg.device_bytes);
            let to = |offset, data| {
                let request = Request::Write { offset, data, fua: true };
                LegRequest { slot, epoch, device: Arc::clone(device), request }
            };
            first.push(to(LABEL_AT, data.clone()));
            second.push(to(end, data));
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
            if !state.regions.can_commit() {
                let what = "its map has been changed as often as it can be";
                return Err(self.ends(&mut state, MAP_AT, what));
            }
            state.passes_begun += 1;
            let snapshots = state.regions.begin_commit();
            let writes = self.map_writes(&state, &snapshots);
            drop(state);
            let failed = send_all(writes);
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
    fn without(&self, failed: &[LegFailure]) -> Result<(), BlockError> {
        if failed.is_empty() {
            return Ok(());
        }
        self.drop_all(&mut self.state.lock(), failed);
        self.publish()
    }

    fn map_writes(&self, state: &State, snapshots: &[MapBlockWrite]) -> Vec<LegRequest> {
        let durable = state.legs.durable();
        let writes = snapshots.iter().flat_map(|MapBlockWrite { block, contents }| {
            let data = Payload::from(contents.encode(self.volume, *block));
            let offset = slot_at(*block, contents.sequence);
            let write = |_: &Leg| Request::Write { offset, data: data.clone(), fua: true };
            state.legs.requests(durable, write)
        });
        writes.collect()
    }

    /// After writes or flushes to `failed` legs: drops them durably, except for those that are to
    /// `stay`. Of one that stays, because of that or because the mirror cannot do without it, those
    /// of these regions that others hold become stale, durably.
    pub(super) fn fail(
        &self,
        failed: &[LegFailure],
        regions: std::ops::Range<u32>,
        stay: u8,
    ) -> Result<(), BlockError> {
        let mut kept = 0;
        {
            let mut state = self.state.lock();
            for failed in failed {
                let slot = failed.slot;
                if let Some(leg) = state.legs[slot].as_mut().filter(|l| l.epoch == failed.epoch) {
                    leg.counters.errors += 1;
                }
                let stays =
                    stay & bit(slot) != 0 && state.keep_failed(failed, KeepReason::AllFailed);
                if stays || !state.drop_failed(failed) {
                    kept |= bit(slot);
                }
            }
        }
        self.publish()?;
        if kept == 0 {
            return Ok(());
        }
        self.keep_copied(regions.clone())?;
        {
            let mut state = self.state.lock();
            let others =
                state.legs.active() & state.legs.durable() & !state.legs.still_in_use(failed);
            for region in regions {
                if others & !state.regions.get(region).stale != 0 {
                    state.regions.set_stale(region, kept);
                    state.replace_primaries([region]);
                }
            }
        }
        self.commit()
    }

    /// Of these regions, what was copied to a leg and not flushed is made to stay: the leg is to
    /// hold them for another one. The map says so with the next commit.
    fn keep_copied(&self, regions: std::ops::Range<u32>) -> Result<(), BlockError> {
        let copied = |state: &State| -> Vec<(u32, u8)> {
            let whole = !state.legs.partial();
            let all = regions.clone().map(|r| (r, state.regions.copied(r) & whole));
            all.filter(|(_, legs)| *legs != 0).collect()
        };
        let (before, epochs, records) = {
            let state = self.settled()?;
            let records = state.checksums.as_ref().map(|known| known.written.clone());
            (copied(&state), state.legs.epochs(), records.unwrap_or_default())
        };
        let legs = before.iter().fold(0, |all, (_, legs)| all | legs);
        if legs == 0 {
            return Ok(());
        }
        self.flush_some(legs)?;
        let mut state = self.state.lock();
        let flushed = state.legs.of_same_epoch(epochs);
        for (region, legs) in before {
            state.set_fresh(region, legs & flushed, &records);
        }
        Ok(())
    }
}

impl State {
    /// A label that has these legs in use again is on all legs: from now on only that generation is
    /// theirs, and no longer the one that they left with. The next edition says so.
    fn confirm(&mut self, back: &[(usize, u64)]) {
        for (slot, epoch) in back {
            if let Some(leg) = self.legs[*slot].as_mut().filter(|leg| leg.epoch == *epoch) {
                leg.left = None;
            }
        }
    }
}
