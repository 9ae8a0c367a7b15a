//! Verified reads, for mirrors with checksums.
//!
//! A read goes to one leg, and its data is compared with the checksums (`verdict`). If it does not
//! match, or no checksum is in memory, the region is locked, so that no write is in flight, its
//! record is loaded, and the legs are read one after the other until every block is verified. The
//! right block is written to a leg that was wrong (self-healing). If no leg is right the read
//! fails.
//!
//! A verified block is right, whichever leg holds it: its checksum comes from the write itself, or
//! from a durable leg. So a durable leg may be repaired from a volatile one, which is not allowed
//! without a matching checksum.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{BlockDevice, BlockError, Request, Result, check};

use super::Core;
use super::checksums::{Sum, Verdict};
use super::events::{Event, LegError};
use super::leg::{LegFailure, bit, mask_of, slots};
use super::ranges::Ticket;
use super::read::ReadRoute;
use super::state::State;
use crate::ondisk::{BLOCK, checksums, whole_blocks};
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
    pub bytes: Vec<u8>,
    /// Of each block: the leg that it is from, and whether a checksum proves it.
    from: Vec<(usize, bool)>,
    /// Legs that held something else, by their slot and the number of the block.
    pub wrong: Vec<(usize, usize)>,
    /// Legs that could not be read.
    pub failed: Vec<LegFailure>,
}

impl State {
    /// The legs that hold a region, durable ones first.
    pub(super) fn holders_of(&self, region: u32) -> Vec<Holder> {
        let durable = self.durable();
        let holders = match self.regions.is_blank(region) {
            true => 0,
            false => self.active() & !self.regions.lacking(region),
        };
        let order = slots(holders & durable).chain(slots(holders & !durable));
        let found = order.filter_map(|slot| {
            let (leg, device) = self.leg(slot)?;
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

    /// What is known of the blocks of a range inside of a region.
    pub(super) fn sums(&self, region: u32, at: u64, len: u64) -> Vec<Sum> {
        let count = (len / BLOCK) as usize;
        let first = ((at - self.regions.bytes_of(region).0) / BLOCK) as usize;
        match &self.checksums {
            Some(known) => known.known(region, first, count),
            None => vec![Sum::None; count],
        }
    }
}

impl Core {
    /// A verified read for a waiting caller.
    pub(super) fn read_verified(self: &Arc<Self>, offset: u64, len: u64) -> Result<Bytes> {
        let (at, blocks) = whole_blocks(offset, len);
        let mut way = {
            let mut state = self.state.lock();
            check(&state.info, &Request::Read { offset, len })?;
            self.way(&mut state, at, blocks, 0)
        };
        // A write that fails on all legs may leave them out of sync at any time.
        while matches!(way, ReadRoute::NeedsSync) {
            self.sync_to_read(at, blocks)?;
            way = self.way(&mut self.state.lock(), at, blocks, 0);
        }
        let bytes = match way {
            ReadRoute::Leg { slot, epoch, device, at: below, timed } => {
                let begun = timed.then(steadfast_runtime::now);
                let answer = device.read(below, blocks);
                self.answered((slot, epoch), begun, answer.is_ok());
                match answer {
                    Ok(bytes) if self.is_good(at, &bytes) || self.is_good_now(at, &bytes) => bytes,
                    Ok(_) => self.verify_range(at, blocks, Some(slot), None)?,
                    Err(error) => {
                        let failed = LegFailure { slot, epoch, error };
                        self.verify_range(at, blocks, None, Some(failed))?
                    }
                }
            }
            ReadRoute::Pieces(pieces) => {
                let mut all = Vec::with_capacity(blocks as usize);
                for (at, len) in pieces {
                    all.extend_from_slice(&self.read_verified(at, len)?);
                }
                all.into()
            }
            ReadRoute::Zeros => vec![0; blocks as usize].into(),
            ReadRoute::Nowhere(error) => return Err(error),
            // Not after the loop above.
            ReadRoute::NeedsSync => return Err(self.unverified(at, "its legs are out of sync")),
        };
        let from = (offset - at) as usize;
        Ok(bytes.slice(from..from + len as usize))
    }

    /// Whether bytes that a leg answered are what was written, as far as anything is known.
    pub(super) fn is_good(&self, at: u64, bytes: &[u8]) -> bool {
        if self.planted.has(Bug::NothingCompared) {
            return true;
        }
        let sums = checksums::of(bytes);
        let mut state = self.state.lock();
        let known = state.checksums.as_mut();
        known.is_none_or(|known| known.verdict(at, &sums) == Verdict::Good)
    }

    /// The same where records are to be read first: `false` also where none is.
    pub(super) fn is_good_now(self: &Arc<Self>, at: u64, bytes: &[u8]) -> bool {
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

    /// Reads whole blocks region by region, each held meanwhile. `first` is the leg that is asked
    /// first, because its answer was not right; `failed` is one that could not be read.
    pub(super) fn verify_range(
        self: &Arc<Self>,
        at: u64,
        len: u64,
        first: Option<usize>,
        failed: Option<LegFailure>,
    ) -> Result<Bytes> {
        let pieces = {
            let state = self.state.lock();
            super::read::cut(&state, (at, len))
        };
        let mut all = Vec::with_capacity(len as usize);
        for (at, len) in pieces {
            let (regions, ticket) = self.take_synced(at, len)?;
            let verified = self.read_held(regions.start, at, len, first, failed.clone());
            self.release(ticket);
            all.extend_from_slice(&verified?);
        }
        Ok(all.into())
    }

    /// Locks regions that are in sync, or cannot be synced.
    fn take_synced(self: &Arc<Self>, at: u64, len: u64) -> Result<(Range<u32>, Ticket)> {
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

    /// Reads whole blocks of a region that is held; legs that are wrong are repaired.
    pub(super) fn read_held(
        self: &Arc<Self>,
        region: u32,
        at: u64,
        len: u64,
        first: Option<usize>,
        failed: Option<LegFailure>,
    ) -> Result<Vec<u8>> {
        let _pin = self.pin(region);
        self.load(region, true);
        let (mut order, blank) = {
            let state = self.state.lock();
            if let Some(closed) = state.closed.as_ref().and_then(|_| state.stopped()) {
                return Err(closed);
            }
            (state.holders_of(region), state.regions.is_blank(region))
        };
        if blank {
            return Ok(vec![0; len as usize]);
        }
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
        let mut bytes = vec![0; len as usize];
        let mut from: Vec<Option<(usize, bool)>> = vec![None; known.len()];
        let mut wrong = Vec::new();
        let mut failed: Vec<LegFailure> = failed.into_iter().collect();
        for holder in order {
            if from.iter().all(Option::is_some) {
                break;
            }
            let slot = holder.slot;
            if mask_of(&failed) & bit(slot) != 0 {
                continue;
            }
            let answer = match holder.device.read(holder.data_start + at, len) {
                Ok(answer) => answer,
                Err(error) => {
                    self.answered((slot, holder.epoch), None, false);
                    failed.push(LegFailure { slot, epoch: holder.epoch, error });
                    continue;
                }
            };
            for (n, block) in answer.chunks(BLOCK as usize).enumerate() {
                if from[n].is_some() {
                    continue;
                }
                let proves = match known[n] {
                    Sum::Known(sum) if crc32c::crc32c(block) == sum => true,
                    Sum::Known(_) => {
                        wrong.push((slot, n));
                        continue;
                    }
                    // A record that no leg could give proves nothing.
                    Sum::None | Sum::Stored if trusted & bit(slot) != 0 => false,
                    Sum::None | Sum::Stored => continue,
                };
                let start = n * BLOCK as usize;
                bytes[start..start + block.len()].copy_from_slice(block);
                from[n] = Some((slot, proves));
            }
        }
        let missing = from.iter().position(Option::is_none);
        match (from.into_iter().collect::<Option<Vec<_>>>(), missing) {
            (Some(from), _) => Ok(VerifiedBytes { bytes, from, wrong, failed }),
            (None, block) => {
                let block = block.unwrap_or(0);
                self.count_wrong(at, &wrong, order, false);
                Err(self.mismatch(at, block, &wrong, &failed))
            }
        }
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
            return match failed.first() {
                Some(failed) => {
                    self.note_error(failed);
                    failed.error.clone()
                }
                None => self.unverified(at, "no leg that is there holds it"),
            };
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
        let mut state = self.state.lock();
        for holder in order {
            let of_leg = || wrong.iter().filter(|(slot, _)| *slot == holder.slot);
            let Some((slot, first)) = of_leg().next().copied() else { continue };
            let Some(leg) = state.legs[slot].as_mut().filter(|l| l.epoch == holder.epoch) else {
                continue;
            };
            let blocks = of_leg().count() as u64;
            leg.counters.checksum_errors += blocks;
            let (name, volatile) = (leg.name.clone(), leg.volatile);
            let offset = at + first as u64 * BLOCK;
            let error = format!("{blocks} blocks from byte {offset} on are not what was written");
            let leg_error = LegError { slot, name, volatile, error };
            state.notify(&Event::WrongData { leg_error, repaired });
        }
    }

    /// Gives legs that were wrong, or could not be read, what was proved; the region is held.
    pub(super) fn self_heal(
        self: &Arc<Self>,
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
            let bytes = Bytes::copy_from_slice(&verified.bytes[from..to]);
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
