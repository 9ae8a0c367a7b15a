//! Checksum records: loaded on demand, and written before the map says that a region is clean and
//! has one.
//!
//! # Order
//!
//! 1. A region's record goes to every durable leg that holds it, while the region is locked.
//! 2. These legs are flushed.
//! 3. The map says that the region is clean and has a record (`summed`).
//!
//! The next write makes the region dirty in the map before it goes to a leg; a dirty region has no
//! valid record, whatever is in the area. So at every crash point the record is right or ignored.
//! If a durable leg that holds the region is missing, it would not get the record: then none is
//! written.

use std::collections::BTreeMap;

use bytes::Bytes;
use steadfast_block::{Completion, Request, Result};

use super::checksums::UnflushedRecord;
use super::core::Replicas;
use super::events::Event;
use super::leg::{LegFailure, bit, mask_of};
use super::ranges::Ticket;
use super::state::State;
use super::verify::Holder;
use crate::ondisk::checksums::{self, ChecksumRecord, record_at};
use crate::ondisk::label::LEGS_MAX;
use crate::ondisk::map::{Region, RegionState};

/// Regions whose records are written together, while they are locked.
const SAVED_AT_ONCE: usize = 16;
/// Bytes of a region that are read at once to learn its checksums.
const LEARNED_BYTES: u64 = 1 << 20;

/// A record that is to be written, and to which legs.
struct PendingRecord {
    region: u32,
    version: u64,
    record: ChecksumRecord,
    legs: Vec<Holder>,
    /// Legs that have it already.
    have: u8,
    epochs: [u64; LEGS_MAX],
}

/// While it is there, what is known of a region stays in memory: between reading a record and
/// comparing with it others may be short of memory.
pub(super) struct Pin<'a> {
    replicas: &'a Replicas,
    region: u32,
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        if let Some(known) = self.replicas.state.lock().checksums.as_mut() {
            known.unpin(self.region);
        }
    }
}

impl State {
    /// Whether the map may say that a region has a record: all durable legs that hold it do, and
    /// it is what is known. They were flushed since it was written.
    pub(super) fn is_summable(&self, region: u32, written: &UnflushedRecord) -> bool {
        let holders = self.legs.durable() & !self.regions.get(region).stale;
        let have = written.took & self.legs.of_same_epoch(written.epochs);
        let known = self.checksums.as_ref();
        holders & !have == 0 && known.is_some_and(|known| known.is_as_written(region, written))
    }

    /// Legs were given a region, and flushed: they do not lack it any more, durably once the map
    /// is. Where the map has a record of the region that they may not have, there is none from now
    /// on: an older one of theirs must not be taken for it.
    pub(super) fn set_fresh(
        &mut self,
        region: u32,
        legs: u8,
        records: &BTreeMap<u32, UnflushedRecord>,
    ) {
        self.regions.set_fresh(region, legs);
        let now = self.regions.get(region);
        let durable = legs & self.legs.durable();
        let took = records.get(&region).is_some_and(|record| {
            let have = record.took & self.legs.of_same_epoch(record.epochs);
            let known = self.checksums.as_ref();
            durable & !have == 0 && known.is_some_and(|known| known.is_as_written(region, record))
        });
        if now.summed && durable != 0 && !took {
            self.regions.set(region, Region { summed: false, ..now });
            if let Some(known) = self.checksums.as_mut() {
                known.not_saved(region);
            }
        }
    }

    /// Legs were flushed since these records were written.
    pub(super) fn set_summed(&mut self, written: &BTreeMap<u32, UnflushedRecord>) {
        for (region, written) in written {
            let now = self.regions.get(*region);
            if now.state == RegionState::Clean && self.is_summable(*region, written) {
                self.regions.set(*region, Region { summed: true, ..now });
            }
        }
    }
}

impl Replicas {
    /// Keeps in memory what is known of a region that is held.
    pub(super) fn pin(&self, region: u32) -> Pin<'_> {
        if let Some(known) = self.state.lock().checksums.as_mut() {
            known.pin(region);
        }
        Pin { replicas: self, region }
    }

    /// Loads the record of a locked region, if it has one. With `self_heal` a leg with a damaged or
    /// old record gets the newest one.
    pub(super) fn load(&self, region: u32, self_heal: bool) {
        let known = |state: &State| state.checksums.as_ref().is_some_and(|k| k.needs_load(region));
        if known(&self.state.lock()) {
            self.load_all(region, self_heal);
        }
    }

    /// The same for who wants to know that all legs have the record, also if it is known here.
    pub(super) fn inspect(&self, region: u32, self_heal: bool) {
        let is_saved = |state: &State| state.checksums.as_ref().is_some_and(|k| k.is_saved(region));
        if is_saved(&self.state.lock()) {
            self.load_all(region, self_heal);
        }
    }

    fn load_all(&self, region: u32, self_heal: bool) {
        let (holders, blocks, region_bytes) = {
            let state = self.state.lock();
            let Some(known) = state.checksums.as_ref() else { return };
            let mut holders = state.holders_of(region);
            holders.retain(|holder| holder.durable);
            (holders, known.blocks_of(region), state.regions.region_bytes())
        };
        let mut found: Vec<(&Holder, Result<Option<ChecksumRecord>>)> = Vec::new();
        for holder in &holders {
            let (at, len) = record_at(holder.map_blocks, region_bytes, region);
            let answer = holder.device.read(at, len);
            if answer.is_err() {
                self.answered((holder.slot, holder.epoch), None, false);
            }
            let decode = |bytes: Bytes| ChecksumRecord::decode(&bytes, self.volume, region, blocks);
            found.push((holder, answer.map(decode)));
        }
        let records = found.iter().filter_map(|(_, record)| record.as_ref().ok()?.as_ref());
        let newest = records.max_by_key(|record| record.edition).cloned();
        let unread = found.iter().any(|(_, record)| record.is_err());
        if newest.is_none() && (unread || holders.is_empty()) {
            // Not all legs could be read: the record stays unknown.
            return;
        }
        {
            let mut state = self.state.lock();
            if let Some(known) = state.checksums.as_mut() {
                known.loaded(region, newest.as_ref());
            }
            if newest.is_none() {
                let now = state.regions.get(region);
                state.regions.set(region, Region { summed: false, ..now });
                let (offset, len) = state.regions.bytes_of(region);
                state.notify(&Event::ChecksumsLost { offset, len });
            }
        }
        let Some(newest) = newest else { return };
        found.retain(|(_, record)| !matches!(record, Ok(Some(record)) if *record == newest));
        if found.is_empty() {
            // Who only reads has nothing written down.
            return;
        }
        let may = self_heal && !self.state.lock().assembling && self.settled().is_ok();
        let bytes = Bytes::from(newest.encode(self.volume, region, region_bytes));
        let mut failed = Vec::new();
        for (holder, record) in found {
            let (slot, epoch) = (holder.slot, holder.epoch);
            let (at, _) = record_at(holder.map_blocks, region_bytes, region);
            // What cannot be read cannot be relied on either when the others are gone.
            if may && let Err(error) = holder.device.write(at, bytes.clone().into()) {
                failed.push(LegFailure { slot, epoch, error });
            }
            if record.is_ok() {
                let what = format!("the checksums at byte {at} of the device are damaged or old");
                self.report_wrong(holder, 1, what, may);
            }
        }
        if !failed.is_empty() {
            drop(self.fail(&failed, region..region + 1, 0));
        }
    }

    /// Learns what is not known of a region that is held, from what its legs hold: what a power cut
    /// left is what counts from now on.
    fn learn(&self, region: u32) -> Result<()> {
        let _pin = self.pin(region);
        self.load(region, true);
        let (order, (start, len)) = {
            let state = self.state.lock();
            let nothing = state.checksums.as_ref().is_none_or(|known| known.covers_all(region));
            // While it is out of sync another leg may become the primary, with other contents.
            if nothing || state.regions.out_of_sync(region) != 0 {
                return Ok(());
            }
            (state.holders_of(region), state.regions.bytes_of(region))
        };
        let mut at = start;
        while at < start + len {
            let piece = LEARNED_BYTES.min(start + len - at);
            self.learn_from(region, (at, piece), &order, u8::MAX)?;
            at += piece;
        }
        Ok(())
    }

    /// Bytes of a region that is held, from these legs in their order; they count from now on.
    pub(super) fn learn_from(
        &self,
        region: u32,
        (at, len): (u64, u64),
        order: &[Holder],
        trusted: u8,
    ) -> Result<Bytes> {
        let verified = self.verify_blocks(region, (at, len), order, trusted, None)?;
        self.self_heal(region, at, &verified, order);
        if self.checksums {
            let sums = checksums::of(&verified.bytes);
            if let Some(known) = self.state.lock().checksums.as_mut() {
                known.learn(at, &sums);
            }
        }
        Ok(verified.bytes)
    }

    /// The record of a region that is held, if all of it is known and it may be written. `also`
    /// are legs that are being given the region.
    fn ready(&self, region: u32, also: u8) -> Option<PendingRecord> {
        let mut state = self.state.lock();
        let generation = state.generation;
        let (record, saved, version) = state.checksums.as_ref()?.record(region)?;
        let (active, durable) = (state.legs.active(), state.legs.durable());
        let Region { stale, summed, .. } = state.regions.get(region);
        let lacking = state.regions.lacking(region) & !also;
        let holders = active & durable & !lacking;
        // What the map does not promise, a leg that was away meanwhile may not have.
        let is_there = saved && summed;
        if !is_there && durable & !stale & !active != 0 {
            return None;
        }
        let targets = if is_there { holders & also } else { holders };
        if is_there && targets == 0 {
            return None;
        }
        let edition = match saved {
            true => record.edition,
            false => state.checksums.as_mut()?.next_edition(generation),
        };
        let legs = state.holders(targets);
        let record = ChecksumRecord { edition, ..record };
        let (have, epochs) = (holders & !targets, state.legs.epochs());
        Some(PendingRecord { region, version, record, legs, have, epochs })
    }

    /// Writes records; those that are on all legs that hold their region.
    fn write_records(&self, ready: Vec<PendingRecord>) -> Result<BTreeMap<u32, UnflushedRecord>> {
        let region_bytes = self.state.lock().regions.region_bytes();
        let mut sent: Vec<(PendingRecord, Vec<Completion>)> = Vec::new();
        for ready in ready {
            let bytes = Bytes::from(ready.record.encode(self.volume, ready.region, region_bytes));
            let ask = |holder: &Holder| {
                let (offset, _) = record_at(holder.map_blocks, region_bytes, ready.region);
                let data = bytes.clone().into();
                holder.device.submit(Request::Write { offset, data, fua: false })
            };
            let asked = ready.legs.iter().map(ask).collect();
            sent.push((ready, asked));
        }
        let mut all = BTreeMap::new();
        for (ready, asked) in sent {
            let mut failed = Vec::new();
            let mut took = ready.have;
            for (holder, completion) in ready.legs.iter().zip(asked) {
                let (slot, epoch) = (holder.slot, holder.epoch);
                match completion.wait() {
                    Ok(_) => took |= bit(slot),
                    Err(error) => failed.push(LegFailure { slot, epoch, error }),
                }
            }
            let region = ready.region;
            if !failed.is_empty() {
                self.fail(&failed, region..region + 1, 0)?;
            }
            let mut state = self.state.lock();
            let stays = state.legs.still_in_use(&failed) & mask_of(&failed);
            let same = state.legs.of_same_epoch(ready.epochs);
            let Some(known) = state.checksums.as_mut() else { continue };
            if stays == 0 && took & same != 0 {
                let edition = ready.record.edition;
                known.saved(region, ready.version, edition);
                let written = UnflushedRecord { edition, took, epochs: ready.epochs };
                all.insert(region, written);
            } else {
                known.not_saved(region);
            }
        }
        Ok(all)
    }

    /// After a region that is held was copied to `also`, or compared: its record is written. Legs
    /// that hold the region have it; the map says so with the next checkpoint.
    pub(super) fn save_copied(&self, region: u32, also: u8) -> Result<()> {
        let _pin = self.pin(region);
        self.load(region, true);
        let Some(ready) = self.ready(region, also) else { return Ok(()) };
        let written = self.write_records(vec![ready])?;
        if let Some(known) = self.state.lock().checksums.as_mut() {
            known.written.extend(written);
        }
        Ok(())
    }

    /// Writes the records of regions that are about to be clean, many at once.
    pub(super) fn save(&self, regions: &[u32]) -> Result<BTreeMap<u32, UnflushedRecord>> {
        let mut all = BTreeMap::new();
        for batch in regions.chunks(SAVED_AT_ONCE) {
            let mut held: Vec<(u32, Ticket)> = Vec::new();
            let mut busy: Vec<u32> = Vec::new();
            {
                // No task waits for a range while it holds another.
                let mut state = self.state.lock();
                for region in batch {
                    let (start, len) = state.regions.bytes_of(*region);
                    match state.ranges.try_take(start, start + len) {
                        Some(ticket) => held.push((*region, ticket)),
                        None => busy.push(*region),
                    }
                }
            }
            let ready = held.iter().filter_map(|(region, _)| self.learned(*region)).collect();
            let written = self.write_records(ready);
            held.into_iter().for_each(|(_, ticket)| self.release(ticket));
            all.extend(written?);
            for region in busy {
                let (_, ticket) = self.take_regions(self.state.lock(), region..region + 1);
                let written = self.write_records(self.learned(region).into_iter().collect());
                self.release(ticket);
                all.extend(written?);
            }
        }
        Ok(all)
    }

    /// A region that cannot be read has no record.
    fn learned(&self, region: u32) -> Option<PendingRecord> {
        if self.state.lock().regions.is_blank(region) {
            return None;
        }
        self.learn(region).ok()?;
        self.ready(region, 0)
    }

    /// Where memory is short of checksums that are not on the legs, those that were not used for
    /// longest are written.
    pub(super) fn save_oldest(&self) -> Result<()> {
        let oldest = {
            let state = self.state.lock();
            match state.checksums.as_ref().filter(|known| known.must_save()) {
                Some(known) => known.oldest_unsaved(SAVED_AT_ONCE),
                None => return Ok(()),
            }
        };
        self.save(&oldest).map(drop)
    }
}
