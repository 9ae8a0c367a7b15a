//! Reads region by region, each locked, so that no write is in flight: of what a leg could not
//! give, or gave wrong, and of everything that is copied.
//!
//! The legs are asked one after the other until every block is right. With checksums a block is
//! right if it matches (`verdict`), whichever leg holds it: its checksum comes from the write
//! itself, or from a durable leg. A block of which nothing is known is that of the first trusted
//! leg that answers. If no leg is right the read fails.
//!
//! Legs that were wrong, or could not be read, are given what is right (self-healing). A durable
//! leg may be repaired from a volatile one only with a matching checksum, or if no durable leg
//! holds the region.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{BlockDevice, BlockError, Result};

use super::checksums::{Sum, Verdict};
use super::core::Replicas;
use super::events::{Event, LegError};
use super::leg::{LegFailure, bit, mask_of, slots};
use super::ranges::Ticket;
use super::state::State;
use crate::ondisk::{BLOCK, checksums};
use crate::planted::Bug;

/// A leg that holds a region.
pub(super) struct Holder {
    pub slot: usize,
    pub epoch: u64,
    pub device: Arc<dyn BlockDevice>,
    pub data_start: u64,
    pub map_blocks: u32,
    pub durable: bool,
}

/// Bytes whose blocks are all verified, or come from a trusted leg.
pub(super) struct VerifiedBytes {
    pub bytes: Bytes,
    /// Of each block: the leg that it is from, and whether a checksum proves it.
    from: Vec<(usize, bool)>,
    /// Legs that held something else, by their slot and the number of the block.
    wrong: Vec<(usize, usize)>,
    /// Legs that could not be read.
    failed: Vec<LegFailure>,
}

impl State {
    /// The legs that hold a region, durable ones first.
    pub(super) fn holders_of(&self, region: u32) -> Vec<Holder> {
        match self.regions.is_blank(region) {
            true => Vec::new(),
            false => self.holders(!self.regions.lacking(region)),
        }
    }

    /// Those of these legs that are in use, durable ones first.
    pub(super) fn holders(&self, legs: u8) -> Vec<Holder> {
        let (legs, durable) = (self.legs.active() & legs, self.legs.durable());
        let found = slots(legs & durable).chain(slots(legs & !durable)).filter_map(|slot| {
            let (leg, device) = self.legs.leg(slot)?;
            Some(Holder {
                slot,
                epoch: leg.epoch,
                device: Arc::clone(device),
                data_start: leg.data_start,
                map_blocks: leg.map_blocks,
                durable: durable & bit(slot) != 0,
            })
        });
        found.collect()
    }

    /// What is known of the blocks of a range inside of a region. A mirror without checksums knows
    /// nothing of the range as a whole.
    pub(super) fn sums(&self, region: u32, at: u64, len: u64) -> Vec<Sum> {
        let Some(known) = &self.checksums else { return vec![Sum::None] };
        let first = ((at - self.regions.bytes_of(region).0) / BLOCK) as usize;
        known.known(region, first, (len / BLOCK) as usize)
    }

    /// Whether a read changes no state: the mirror is only being assembled, or nothing can be
    /// written any more.
    pub(super) fn looks_only(&self) -> bool {
        self.assembling || self.info.read_only || self.failed.is_some()
    }

    /// Legs from which a region may be repaired on another holder. Not a volatile leg if another
    /// durable leg, present or missing, holds the region.
    pub(super) fn repairs(&self, region: u32, to: usize) -> u8 {
        let holders = !self.regions.lacking(region) & !bit(to);
        if self.regions.is_blank(region) || self.regions.lacking(region) & bit(to) != 0 {
            return 0;
        }
        let durable = self.legs.durable() & holders;
        let only = if durable != 0 { durable } else { u8::MAX };
        self.legs.active() & holders & only
    }
}

impl Replicas {
    /// Whether bytes that a leg answered are what was written, as far as anything is known.
    pub(super) fn is_good(&self, at: u64, bytes: &[u8]) -> bool {
        if !self.checksums || self.planted.has(Bug::NothingCompared) {
            return true;
        }
        let sums = checksums::of(bytes);
        let mut state = self.state.lock();
        let known = state.checksums.as_mut();
        known.is_none_or(|known| known.verdict(at, &sums) == Verdict::Good)
    }

    /// The same where records are to be read first: `false` also where none is.
    pub(super) fn is_good_now(&self, at: u64, bytes: &[u8]) -> bool {
        let cold: Vec<u32> = {
            let state = self.state.lock();
            let cold = |r: &u32| state.checksums.as_ref().is_some_and(|k| k.needs_load(*r));
            state.regions.of(at, bytes.len() as u64).filter(cold).collect()
        };
        for region in &cold {
            let (_, ticket) = self.take_regions(self.state.lock(), *region..region + 1);
            self.load(*region, true);
            self.release(ticket);
        }
        !cold.is_empty() && self.is_good(at, bytes)
    }

    /// Reads region by region, each locked meanwhile. `first` is the leg that is asked first,
    /// because its answer was not right; `failed` is one that could not be read.
    pub(super) fn read_by_region(
        &self,
        at: u64,
        len: u64,
        first: Option<usize>,
        failed: Option<LegFailure>,
    ) -> Result<Bytes> {
        let pieces = super::read::cut(&self.state.lock(), (at, len));
        // Of several regions it may be the only leg with one of them, and can be read there.
        let failed = failed.filter(|_| pieces.len() == 1);
        let mut all = Vec::with_capacity(len as usize);
        for (at, len) in pieces {
            let (regions, ticket) = self.take_synced(at, len)?;
            let read = self.read_held(regions.start, at, len, first, failed.clone());
            self.release(ticket);
            all.extend_from_slice(&read?);
        }
        Ok(all.into())
    }

    /// Locks regions that are in sync, or cannot be synced.
    fn take_synced(&self, at: u64, len: u64) -> Result<(Range<u32>, Ticket)> {
        loop {
            let state = self.state.lock();
            let regions = state.regions.of(at, len);
            let (regions, ticket) = self.take_regions(state, regions);
            let undecided = {
                let state = self.state.lock();
                !state.looks_only() && state.needs_sync(regions.clone())
            };
            if !undecided {
                return Ok((regions, ticket));
            }
            self.release(ticket);
            self.sync_to_read(at, len)?;
        }
    }

    /// Reads a part of a region that is held; legs that are wrong are repaired.
    pub(super) fn read_held(
        &self,
        region: u32,
        at: u64,
        len: u64,
        first: Option<usize>,
        failed: Option<LegFailure>,
    ) -> Result<Bytes> {
        let _pin = self.pin(region);
        self.load(region, true);
        let mut order = {
            let state = self.state.lock();
            if let Some(closed) = state.closed.as_ref().and_then(|_| state.stopped()) {
                return Err(closed);
            }
            if state.regions.is_blank(region) {
                return Ok(vec![0; len as usize].into());
            }
            let mut order = state.holders_of(region);
            if state.looks_only() {
                // Who only looks, and cannot read one leg, may be answered by another.
                let out_of_sync = state.regions.out_of_sync(region) & state.regions.lacking(region);
                order.extend(state.holders(out_of_sync));
            }
            order
        };
        order.sort_by_key(|holder| Some(holder.slot) != first);
        let verified = self.verify_blocks(region, (at, len), &order, u8::MAX, failed)?;
        self.self_heal(region, at, &verified, &order);
        Ok(verified.bytes)
    }

    /// Asks legs in this order until each block is proved. Where nothing is known of a block, the
    /// first of the `trusted` legs is trusted.
    pub(super) fn verify_blocks(
        &self,
        region: u32,
        (at, len): (u64, u64),
        order: &[Holder],
        trusted: u8,
        failed: Option<LegFailure>,
    ) -> Result<VerifiedBytes> {
        let known = self.state.lock().sums(region, at, len);
        let unit = if self.checksums { BLOCK } else { len } as usize;
        let mut found: Vec<Option<(usize, bool, Bytes)>> = vec![None; known.len()];
        let mut wrong = Vec::new();
        let mut failed: Vec<LegFailure> = failed.into_iter().collect();
        for holder in order {
            if found.iter().all(Option::is_some) {
                break;
            }
            let (slot, epoch) = (holder.slot, holder.epoch);
            if mask_of(&failed) & bit(slot) != 0 {
                continue;
            }
            let answer = match holder.device.read(holder.data_start + at, len) {
                Ok(answer) => answer,
                Err(error) => {
                    self.answered((slot, epoch), None, false);
                    failed.push(LegFailure { slot, epoch, error });
                    continue;
                }
            };
            for (n, found) in found.iter_mut().enumerate().filter(|(_, found)| found.is_none()) {
                let block = answer.slice(n * unit..(n + 1) * unit);
                let proves = match known[n] {
                    Sum::Known(sum) if crc32c::crc32c(&block) == sum => true,
                    Sum::Known(_) => {
                        wrong.push((slot, n));
                        continue;
                    }
                    // A record that no leg could give proves nothing.
                    Sum::None | Sum::Stored if trusted & bit(slot) != 0 => false,
                    Sum::None | Sum::Stored => continue,
                };
                *found = Some((slot, proves, block));
            }
            if found.iter().flatten().filter(|(from, ..)| *from == slot).count() == known.len() {
                let from = found.into_iter().flatten().map(|(slot, proves, _)| (slot, proves));
                return Ok(VerifiedBytes { bytes: answer, from: from.collect(), wrong, failed });
            }
        }
        if let Some(block) = found.iter().position(Option::is_none) {
            self.count_wrong(at, &wrong, order, false);
            return Err(self.mismatch(at, block, &wrong, &failed));
        }
        let (mut bytes, mut from) = (Vec::with_capacity(len as usize), Vec::new());
        for (slot, proves, block) in found.into_iter().flatten() {
            bytes.extend_from_slice(&block);
            from.push((slot, proves));
        }
        Ok(VerifiedBytes { bytes: bytes.into(), from, wrong, failed })
    }

    /// Why a block cannot be read: which legs hold something else.
    fn mismatch(
        &self,
        at: u64,
        block: usize,
        wrong: &[(usize, usize)],
        failed: &[LegFailure],
    ) -> BlockError {
        let here = wrong.iter().filter(|(_, n)| *n == block);
        let here = slots(here.fold(0, |all, (slot, _)| all | bit(*slot)));
        let legs: Vec<String> = {
            let state = self.state.lock();
            let name = |slot: usize| state.legs[slot].as_ref().map_or("", |l| &l.name).to_owned();
            here.map(|slot| format!("leg {slot} ({})", name(slot))).collect()
        };
        if legs.is_empty() {
            failed.iter().for_each(|failed| self.note_error(failed));
            let nobody = || self.unverified(at, "no leg that is there holds it");
            return failed.first().map_or_else(nobody, |failed| failed.error.clone());
        }
        let unread: String = failed
            .first()
            .map(|failed| format!("; leg {} could not be read: {}", failed.slot, failed.error))
            .unwrap_or_default();
        let reason = format!(
            "its checksum says that what {} holds is not what was written{unread}; write the block \
             again, or restore it",
            legs.join(" and ")
        );
        self.unverified(at + block as u64 * BLOCK, &reason)
    }

    fn unverified(&self, offset: u64, reason: &str) -> BlockError {
        BlockError::Io { device: self.name.clone(), op: "read", offset, reason: reason.into() }
    }

    /// Counts and reports wrong blocks, leg by leg.
    fn count_wrong(&self, at: u64, wrong: &[(usize, usize)], order: &[Holder], repaired: bool) {
        for holder in order {
            let of_leg = || wrong.iter().filter(|(slot, _)| *slot == holder.slot);
            let Some((_, first)) = of_leg().next() else { continue };
            let (blocks, offset) = (of_leg().count() as u64, at + *first as u64 * BLOCK);
            let what = format!("{blocks} blocks from byte {offset} on are not what was written");
            self.report_wrong(holder, blocks, what, repaired);
        }
    }

    /// Counts and reports what a leg holds and nobody has written.
    pub(super) fn report_wrong(&self, holder: &Holder, count: u64, error: String, repaired: bool) {
        let mut state = self.state.lock();
        let slot = holder.slot;
        let leg = state.legs[slot].as_mut().filter(|leg| leg.epoch == holder.epoch);
        let Some(leg) = leg else { return };
        leg.counters.checksum_errors += count;
        let leg_error = LegError { slot, name: leg.name.clone(), volatile: leg.volatile, error };
        state.notify(&Event::WrongData { leg_error, repaired });
    }

    /// Gives legs that were wrong, or could not be read, what was proved; the region is held.
    pub(super) fn self_heal(
        &self,
        region: u32,
        at: u64,
        verified: &VerifiedBytes,
        order: &[Holder],
    ) {
        if verified.wrong.is_empty() && verified.failed.is_empty() {
            return;
        }
        // Read-only, closed or failed, or being assembled: no repair.
        let may = !self.state.lock().assembling && self.settled().is_ok();
        let mut dropped: Vec<LegFailure> = Vec::new();
        let writes = |holder: &Holder, from: usize, to: usize| {
            let bytes = verified.bytes.slice(from..to);
            holder.device.write(holder.data_start + at + from as u64, bytes.into())
        };
        for holder in order.iter().filter(|_| may) {
            let (slot, epoch) = (holder.slot, holder.epoch);
            let wrong = verified.wrong.iter().filter(|(s, _)| *s == slot);
            for (_, block) in wrong {
                let from = block * BLOCK as usize;
                if let Err(error) = writes(holder, from, from + BLOCK as usize) {
                    dropped.push(LegFailure { slot, epoch, error });
                    break;
                }
            }
            let Some(failed) = verified.failed.iter().find(|f| f.slot == slot) else { continue };
            if matches!(failed.error, BlockError::Gone { .. }) {
                dropped.push(failed.clone());
                continue;
            }
            let sources = self.state.lock().repairs(region, slot);
            let may = verified.from.iter().all(|(from, sure)| *sure || sources & bit(*from) != 0);
            if may && let Err(error) = writes(holder, 0, verified.bytes.len()) {
                dropped.push(LegFailure { slot, epoch, error });
            }
        }
        // One that was gone before it was asked: no holder any more.
        self.count_wrong(at, &verified.wrong, order, may && dropped.is_empty());
        if !dropped.is_empty() {
            // An error here is in `failed` of the state, and every write and flush reports it.
            drop(self.fail(&dropped, region..region + 1, 0));
        }
    }
}
