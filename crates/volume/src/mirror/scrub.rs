//! Scrub: every region is read from every leg that holds it, and compared.
//!
//! If legs differ, the right one is not known. A volatile leg has no vote. The majority of the
//! durable legs counts, and the first one if there is no majority. Differences are repaired only on
//! request. An unreadable block is no difference: it is rewritten from another leg, as after any
//! failed read.
//!
//! With checksums the right leg is known, also in a mirror of one leg. A repair creates checksums
//! that a power cut or damage has removed.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use steadfast_block::Result;

use super::checksums::Sum;
use super::core::Replicas;
use super::leg::{LegFailure, bit};
use super::resync::ResyncThrottle;
use super::verify::Holder;
use crate::ondisk::checksums;

/// Bytes that are compared at once.
const COMPARED_BYTES: u64 = 1 << 20;
/// Regions between two times that checksums that were made are made durable.
const CHECKPOINT_REGIONS: usize = 64;
/// Unit of a difference.
const BLOCK: usize = 4096;

/// What a scrub found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ScrubReport {
    /// Bytes of the volume that were compared: what was ever written, and more than one leg holds
    /// or checksums show.
    pub bytes: u64,
    /// Blocks of 4096 bytes, of one leg, that are not what counts.
    pub differing: u64,
    /// Reads of up to 1 MiB, of one leg, that failed.
    pub unreadable: u64,
    /// Differing blocks and failed reads of which the leg was written again.
    pub repaired: u64,
    /// Blocks of which no leg holds what the checksum says: they cannot be read.
    #[serde(default)]
    pub lost: u64,
    /// All legs hold the same now, and what was written.
    pub clean: bool,
    /// It came to the end.
    #[serde(skip)]
    pub complete: bool,
}

impl Replicas {
    /// See [`super::Mirror::scrub`].
    pub(super) fn scrub(&self, repair: bool, throttle: ResyncThrottle) -> Result<ScrubReport> {
        let mut done = ScrubReport::default();
        let count = self.settled()?.regions.count();
        let most = throttle.regions.unwrap_or(usize::MAX);
        let mut looked_at = 0;
        for region in 0..count {
            if self.state.lock().closing || looked_at == most {
                return Ok(done);
            }
            if repair && self.checksums {
                // Out-of-sync regions get no checksums.
                let (start, len) = self.state.lock().regions.bytes_of(region);
                self.sync_range(start, len)?;
            }
            let (_, ticket) = self.take_regions(self.settled()?, region..region + 1);
            let compared = self.scrub_held(region, repair, &mut done);
            self.release(ticket);
            let bytes = compared?;
            looked_at += usize::from(bytes > 0);
            if self.checksums && bytes > 0 && looked_at.is_multiple_of(CHECKPOINT_REGIONS) {
                self.checkpoint()?;
            }
            self.keep_to(throttle, bytes);
        }
        if done.repaired > 0 {
            self.flush_legs()?;
        }
        if self.checksums {
            self.checkpoint()?;
        }
        done.complete = true;
        Ok(done)
    }

    fn scrub_held(&self, region: u32, repair: bool, done: &mut ScrubReport) -> Result<u64> {
        let _pin = self.pin(region);
        self.inspect(region, repair);
        self.load(region, repair);
        let (holders, (start, len)) = {
            let state = self.settled()?;
            (state.holders_of(region), state.regions.bytes_of(region))
        };
        if holders.len() < if self.checksums { 1 } else { 2 } {
            return Ok(0);
        }
        let mut at = start;
        while at < start + len {
            let piece = COMPARED_BYTES.min(start + len - at);
            let failed = self.compare(&holders, (region, at, piece), repair, done);
            if !failed.is_empty() {
                self.fail(&failed, region..region + 1, 0)?;
            }
            at += piece;
        }
        if repair && self.checksums {
            self.save_copied(region, 0)?;
        }
        done.bytes += len;
        Ok(len)
    }

    /// Compares one piece on all legs that hold it; which legs did not take a repair.
    fn compare(
        &self,
        holders: &[Holder],
        (region, at, len): (u32, u64, u64),
        repair: bool,
        done: &mut ScrubReport,
    ) -> Vec<LegFailure> {
        let read: Vec<Option<Bytes>> =
            holders.iter().map(|h| h.device.read(h.data_start + at, len).ok()).collect();
        let unread = holders.iter().zip(&read).filter(|(_, read)| read.is_none());
        let unread = unread.fold(0, |mask, (holder, _)| mask | bit(holder.slot));
        let known = self.state.lock().sums(region, at, len);
        let right = right(holders, &read, &known).map(|(right, lost)| {
            done.lost += lost.len() as u64;
            let sums = checksums::of(&right);
            let mut state = self.state.lock();
            // While it is out of sync another leg may become the primary, with other contents.
            if repair
                && lost.is_empty()
                && state.regions.out_of_sync(region) == 0
                && let Some(known) = state.checksums.as_mut()
            {
                known.learn(at, &sums);
            }
            drop(state);
            (right, lost)
        });
        let mut failed = Vec::new();
        for (holder, read) in holders.iter().zip(&read) {
            let (slot, epoch) = (holder.slot, holder.epoch);
            if let Some(bytes) = read.as_ref().filter(|_| self.checksums) {
                self.count_differing(holder, &known, bytes);
            }
            let (blocks, written) = match (read, &right) {
                (None, Some((right, lost))) => {
                    done.unreadable += 1;
                    let source = known.iter().all(|sum| matches!(sum, Sum::Known(_)))
                        || self.state.lock().repairs(region, slot) & !unread != 0;
                    let to = holder.data_start + at;
                    match lost.is_empty() && source {
                        true => (1, holder.device.write(to, right.clone().into())),
                        false => continue,
                    }
                }
                (None, None) => {
                    done.unreadable += 1;
                    continue;
                }
                (Some(bytes), Some((right, lost))) if bytes != right => {
                    let pairs = bytes.chunks(BLOCK).zip(right.chunks(BLOCK)).enumerate();
                    let differ = pairs.filter(|(n, (a, b))| a != b && !lost.contains(n));
                    let count = differ.count() as u64;
                    done.differing += count;
                    if !repair || count == 0 {
                        continue;
                    }
                    // A block that no leg has stays as it is.
                    let mut whole = right.to_vec();
                    for n in lost {
                        let here = n * BLOCK..((n + 1) * BLOCK).min(whole.len());
                        whole[here.clone()].copy_from_slice(&bytes[here]);
                    }
                    let to = holder.data_start + at;
                    (count, holder.device.write(to, whole.into()))
                }
                (Some(_), _) => continue,
            };
            match written {
                Ok(()) => done.repaired += blocks,
                Err(error) => failed.push(LegFailure { slot, epoch, error }),
            }
        }
        failed
    }

    /// Counts the blocks of a leg that are not what their checksum says.
    fn count_differing(&self, holder: &Holder, known: &[Sum], bytes: &[u8]) {
        let wrong = known
            .iter()
            .zip(bytes.chunks(BLOCK))
            .filter(|(sum, bytes)| matches!(sum, Sum::Known(sum) if crc32c::crc32c(bytes) != *sum));
        let count = wrong.count() as u64;
        let mut state = self.state.lock();
        if let Some(leg) = state.legs[holder.slot].as_mut().filter(|l| l.epoch == holder.epoch) {
            leg.counters.checksum_errors += count;
        }
    }
}

/// What counts: block by block what the checksum proves, whoever holds it; where there is none, of
/// durable legs, if one could be read. With the numbers of the blocks that nobody holds.
fn right(holders: &[Holder], read: &[Option<Bytes>], known: &[Sum]) -> Option<(Bytes, Vec<usize>)> {
    let with = |durable: bool| -> Vec<&Bytes> {
        let those = holders.iter().zip(read).filter(|(holder, _)| holder.durable == durable);
        those.filter_map(|(_, read)| read.as_ref()).collect()
    };
    let durable = with(true);
    let voted = most(if durable.is_empty() { with(false) } else { durable }.as_slice())?;
    let proves = |bytes: &[u8], sum: u32| crc32c::crc32c(bytes) == sum;
    let mut lost = Vec::new();
    let mut right: Option<Vec<u8>> = None;
    for (n, sum) in known.iter().enumerate() {
        let Sum::Known(sum) = sum else { continue };
        let here = n * BLOCK..((n + 1) * BLOCK).min(voted.len());
        if proves(&voted[here.clone()], *sum) {
            continue;
        }
        let block = |bytes: &Bytes| bytes.slice(here.clone());
        let all = read.iter().flatten().map(block);
        match all.into_iter().find(|bytes| proves(bytes, *sum)) {
            Some(bytes) => {
                right.get_or_insert_with(|| voted.to_vec())[here].copy_from_slice(&bytes);
            }
            None => lost.push(n),
        }
    }
    Some((right.map_or(voted, Bytes::from), lost))
}

/// Block by block what most hold; the first of those that as many hold.
fn most(good: &[&Bytes]) -> Option<Bytes> {
    let (first, others) = good.split_first()?;
    if others.iter().all(|bytes| bytes == first) {
        return Some(Bytes::clone(first));
    }
    let mut right = Vec::with_capacity(first.len());
    for from in (0..first.len()).step_by(BLOCK) {
        let block = |bytes: &Bytes| bytes.slice(from..(from + BLOCK).min(bytes.len()));
        let votes = |n: &usize| good.iter().filter(|bytes| block(bytes) == block(good[*n])).count();
        // The first of several with as many votes: `max_by_key` would take the last.
        let best = (0..good.len()).rev().max_by_key(votes).unwrap_or(0);
        right.extend_from_slice(&block(good[best]));
    }
    Some(right.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_majority_counts_and_the_first_of_two() {
        let bytes = |n: u8| Bytes::from(vec![n; 2 * BLOCK]);
        assert_eq!(most(&[&bytes(1), &bytes(2), &bytes(2)]), Some(bytes(2)));
        assert_eq!(most(&[&bytes(1), &bytes(2)]), Some(bytes(1)));
        assert_eq!(most(&[&bytes(1), &bytes(2), &bytes(3)]), Some(bytes(1)));
        assert_eq!(most(&[]), None);
    }
}
