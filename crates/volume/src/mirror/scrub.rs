//! Scrub: every region is read from every leg that holds it, and compared.
//!
//! Where legs differ nobody knows by itself which is right. A volatile leg has no vote: of the
//! durable ones the majority counts, and where there is none the first. Only who asks for a repair
//! has that written to the others. What a leg cannot read is no question of which is right: it is
//! written from another leg that holds it, as after any read that fails.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{BlockDevice, Result};

use super::Core;
use super::resync::Throttle;
use super::state::{Failed, bit, slots};

/// Bytes that are compared at once.
const COMPARED_BYTES: u64 = 1 << 20;
/// Unit of a difference.
const BLOCK: usize = 4096;

/// What a scrub found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scrubbed {
    /// Bytes of the volume that were compared: what was ever written, and more than one leg holds.
    pub bytes: u64,
    /// Blocks of 4096 bytes, of one leg, that are not what counts.
    pub differing: u64,
    /// Reads of up to 1 MiB, of one leg, that failed.
    pub unreadable: u64,
    /// Differing blocks and failed reads of which the leg was written again.
    pub repaired: u64,
    /// It came to the end.
    pub complete: bool,
}

impl Scrubbed {
    /// Whether all legs hold the same now.
    pub fn is_clean(&self) -> bool {
        self.repaired == self.differing + self.unreadable
    }
}

/// A leg that holds a region.
struct Holder {
    slot: usize,
    epoch: u64,
    device: Arc<dyn BlockDevice>,
    data_start: u64,
    durable: bool,
}

impl Core {
    /// See [`super::Mirror::scrub`].
    pub(super) fn scrub(self: &Arc<Self>, repair: bool, throttle: Throttle) -> Result<Scrubbed> {
        let mut done = Scrubbed::default();
        let count = self.settled()?.regions.count();
        let most = throttle.regions.unwrap_or(usize::MAX);
        let mut looked_at = 0;
        for region in 0..count {
            if self.state.lock().closing || looked_at == most {
                return Ok(done);
            }
            let (_, ticket) = self.take_regions(self.settled()?, region..region + 1);
            let compared = self.scrub_held(region, repair, &mut done);
            self.release(ticket);
            let bytes = compared?;
            looked_at += usize::from(bytes > 0);
            self.keep_to(throttle, bytes);
        }
        if done.repaired > 0 {
            self.flush_legs()?;
        }
        done.complete = true;
        Ok(done)
    }

    fn scrub_held(&self, region: u32, repair: bool, done: &mut Scrubbed) -> Result<u64> {
        let (holders, (start, len)) = self.holders(region)?;
        if holders.len() < 2 {
            return Ok(0);
        }
        let mut at = start;
        while at < start + len {
            let piece = COMPARED_BYTES.min(start + len - at);
            let failed = self.compare(&holders, at, piece, repair, done);
            if !failed.is_empty() {
                self.fail(&failed, region..region + 1)?;
            }
            at += piece;
        }
        done.bytes += len;
        Ok(len)
    }

    /// The legs that hold a region, durable ones first, and where it is.
    fn holders(&self, region: u32) -> Result<(Vec<Holder>, (u64, u64))> {
        let state = self.settled()?;
        let durable = state.durable();
        let holders = match state.regions.is_blank(region) {
            true => 0,
            false => state.active() & !state.regions.lacking(region),
        };
        let order = slots(holders & durable).chain(slots(holders & !durable));
        let found = order.filter_map(|slot| {
            let (leg, device) = state.leg(slot)?;
            Some(Holder {
                slot,
                epoch: leg.epoch,
                device: Arc::clone(device),
                data_start: leg.data_start,
                durable: durable & bit(slot) != 0,
            })
        });
        Ok((found.collect(), state.regions.bytes_of(region)))
    }

    /// Compares one piece on all legs that hold it; which legs did not take a repair.
    fn compare(
        &self,
        holders: &[Holder],
        at: u64,
        len: u64,
        repair: bool,
        done: &mut Scrubbed,
    ) -> Vec<Failed> {
        let read: Vec<Option<Bytes>> =
            holders.iter().map(|h| h.device.read(h.data_start + at, len).ok()).collect();
        let unread = holders.iter().zip(&read).filter(|(_, read)| read.is_none());
        let unread = unread.fold(0, |mask, (holder, _)| mask | bit(holder.slot));
        let right = right(holders, &read);
        let mut failed = Vec::new();
        for (holder, read) in holders.iter().zip(&read) {
            let (slot, epoch) = (holder.slot, holder.epoch);
            let (blocks, written) = match (read, &right) {
                (None, _) => {
                    done.unreadable += 1;
                    (1, self.copy_range(slot, unread, at, len))
                }
                (Some(bytes), Some(right)) if bytes != right => {
                    let pairs = bytes.chunks(BLOCK).zip(right.chunks(BLOCK));
                    let count = pairs.filter(|(a, b)| a != b).count() as u64;
                    done.differing += count;
                    if !repair {
                        continue;
                    }
                    let to = holder.data_start + at;
                    (count, holder.device.write(to, right.clone().into()).map(|()| true))
                }
                (Some(_), _) => continue,
            };
            match written {
                Ok(written) => done.repaired += if written { blocks } else { 0 },
                Err(error) => failed.push(Failed { slot, epoch, error }),
            }
        }
        failed
    }
}

/// What counts: of durable legs, if one could be read.
fn right(holders: &[Holder], read: &[Option<Bytes>]) -> Option<Bytes> {
    let with = |durable: bool| -> Vec<&Bytes> {
        let those = holders.iter().zip(read).filter(|(holder, _)| holder.durable == durable);
        those.filter_map(|(_, read)| read.as_ref()).collect()
    };
    let durable = with(true);
    most(if durable.is_empty() { with(false) } else { durable }.as_slice())
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
