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
use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{BlockDevice, Completion, Request, Result};

use super::Core;
use super::checksums::UnflushedRecord;
use super::events::{Event, LegError};
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
pub(super) struct Pin {
    core: Arc<Core>,
    region: u32,
}

impl Drop for Pin {
    fn drop(&mut self) {
        if let Some(known) = self.core.state.lock().checksums.as_mut() {
            known.unpin(self.region);
        }
    }
}

impl State {
    /// Whether the map may say that a region has a record: all durable legs that hold it do, and
    /// it is what is known. They were flushed since it was written.
    pub(super) fn is_summable(&self, region: u32, written: &UnflushedRecord) -> bool {
        let holders = self.durable() & !self.regions.get(region).stale;
        let have = written.took & self.of_same_epoch(written.epochs);
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
        let durable = legs & self.durable();
        let took = records.get(&region).is_some_and(|record| {
            let have = record.took & self.of_same_epoch(record.epochs);
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

impl Core {
    /// Keeps in memory what is known of a region that is held.
    pub(super) fn pin(self: &Arc<Self>, region: u32) -> Pin {
        if let Some(known) = self.state.lock().checksums.as_mut() {
            known.pin(region);
        }
        Pin { core: Arc::clone(self), region }
    }

    /// Loads the record of a locked region, if it has one. With `self_heal` a leg with a damaged or
    /// old record gets the newest one.
    pub(super) fn load(self: &Arc<Self>, region: u32, self_heal: bool) {
        let known = |state: &State| state.checksums.as_ref().is_some_and(|k| k.needs_load(region));
        if known(&self.state.lock()) {
            self.load_all(region, self_heal);
        }
    }

    /// The same for who wants to know that all legs have the record, also if it is known here.
    pub(super) fn inspect(self: &Arc<Self>, region: u32, self_heal: bool) {
        let is_saved = |state: &State| state.checksums.as_ref().is_some_and(|k| k.is_saved(region));
        if is_saved(&self.state.lock()) {
            self.load_all(region, self_heal);
        }
    }

    fn load_all(self: &Arc<Self>, region: u32, self_heal: bool) {
        let (holders, blocks, region_bytes) = {
            let state = self.state.lock();
            let Some(known) = state.checksums.as_ref() else { return };
            let mut holders = state.holders_of(region);
            holders.retain(|holder| holder.durable);
            (holders, known.blocks_of(region), state.regions.region_bytes())
        };
        let mut failed = Vec::new();
        let mut found: Vec<(&Holder, Option<ChecksumRecord>)> = Vec::new();
        for holder in &holders {
            let (at, len) = record_at(holder.map_blocks, region_bytes, region);
            match holder.device.read(at, len) {
                Ok(bytes) => {
                    found.push((
                        holder,
                        ChecksumRecord::decode(&bytes, self.volume, region, blocks),
                    ));
                }
                Err(error) => {
                    let (slot, epoch) = (holder.slot, holder.epoch);
                    self.answered((slot, epoch), None, false);
                    failed.push(LegFailure { slot, epoch, error });
                }
            }
        }
        let records = found.iter().filter_map(|(_, record)| record.as_ref());
        let newest = records.max_by_key(|record| record.edition).cloned();
        if newest.is_none() && (!failed.is_empty() || holders.is_empty()) {
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
        let is_behind =
            |(_, record): &&(&Holder, Option<ChecksumRecord>)| record.as_ref() != Some(&newest);
        let behind: Vec<&Holder> = found.iter().filter(is_behind).map(|(h, _)| *h).collect();
        if behind.is_empty() && failed.is_empty() {
            // Who only reads has nothing written down.
            return;
        }
        let may = self_heal && !self.state.lock().assembling && self.settled().is_ok();
        let bytes = Bytes::from(newest.encode(self.volume, region, region_bytes));
        for holder in behind {
            let (slot, epoch) = (holder.slot, holder.epoch);
            let (at, _) = record_at(holder.map_blocks, region_bytes, region);
            if may && let Err(error) = holder.device.write(at, bytes.clone().into()) {
                failed.push(LegFailure { slot, epoch, error });
            }
            self.report_record(holder, at, may);
        }
        // What cannot be read cannot be relied on when the others are gone.
        failed.retain(|f| may && self.rewrite(&holders, f, region_bytes, region, &bytes).is_err());
        if !failed.is_empty() {
            drop(self.fail(&failed, region..region + 1, 0));
        }
    }

    /// Writes a record to a leg on which it could not be read.
    fn rewrite(
        &self,
        holders: &[Holder],
        failed: &LegFailure,
        region_bytes: u64,
        region: u32,
        bytes: &Bytes,
    ) -> Result<()> {
        let holder = holders.iter().find(|holder| holder.slot == failed.slot);
        holder.map_or(Ok(()), |holder| {
            let (at, _) = record_at(holder.map_blocks, region_bytes, region);
            holder.device.write(at, bytes.clone().into())
        })
    }

    fn report_record(&self, holder: &Holder, at: u64, repaired: bool) {
        let mut state = self.state.lock();
        let slot = holder.slot;
        let Some(leg) = state.legs[slot].as_mut().filter(|leg| leg.epoch == holder.epoch) else {
            return;
        };
        leg.counters.checksum_errors += 1;
        let (name, volatile) = (leg.name.clone(), leg.volatile);
        let error = format!("the checksums at byte {at} of the device are damaged or old");
        state.notify(&Event::WrongData {
            leg_error: LegError { slot, name, volatile, error },
            repaired,
        });
    }

    /// Learns what is not known of a region that is held, from what its legs hold: what a power cut
    /// left is what counts from now on.
    fn learn(self: &Arc<Self>, region: u32) -> Result<()> {
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
            let verified = self.verify_blocks(region, (at, piece), &order, u8::MAX, None)?;
            self.self_heal(region, at, &verified, &order);
            let sums = checksums::of(&verified.bytes);
            if let Some(known) = self.state.lock().checksums.as_mut() {
                known.learn(at, &sums);
            }
            at += piece;
        }
        Ok(())
    }

    /// The record of a region that is held, if all of it is known and it may be written. `also`
    /// are legs that are being given the region.
    fn ready(&self, region: u32, also: u8) -> Option<PendingRecord> {
        let mut state = self.state.lock();
        let generation = state.generation;
        let (record, saved, version) = state.checksums.as_ref()?.record(region)?;
        let (active, durable) = (state.active(), state.durable());
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
        let mut legs = Vec::new();
        for slot in super::slots(targets) {
            let (leg, device) = state.leg(slot)?;
            legs.push(Holder {
                slot,
                epoch: leg.epoch,
                device: Arc::clone(device),
                data_start: leg.data_start,
                map_blocks: leg.map_blocks,
                durable: true,
            });
        }
        let record = ChecksumRecord { edition, ..record };
        let (have, epochs) = (holders & !targets, state.epochs());
        Some(PendingRecord { region, version, record, legs, have, epochs })
    }

    /// Writes records; those that are on all legs that hold their region.
    fn write_records(
        self: &Arc<Self>,
        ready: Vec<PendingRecord>,
    ) -> Result<BTreeMap<u32, UnflushedRecord>> {
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
            let stays = state.still_in_use(&failed) & mask_of(&failed);
            let same = state.of_same_epoch(ready.epochs);
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
    pub(super) fn save_copied(self: &Arc<Self>, region: u32, also: u8) -> Result<()> {
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
    pub(super) fn save(
        self: &Arc<Self>,
        regions: &[u32],
    ) -> Result<BTreeMap<u32, UnflushedRecord>> {
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
    fn learned(self: &Arc<Self>, region: u32) -> Option<PendingRecord> {
        if self.state.lock().regions.is_blank(region) {
            return None;
        }
        self.learn(region).ok()?;
        self.ready(region, 0)
    }

    /// Where memory is short of checksums that are not on the legs, those that were not used for
    /// longest are written.
    pub(super) fn save_oldest(self: &Arc<Self>) -> Result<()> {
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
