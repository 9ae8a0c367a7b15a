//! Which part of a write goes to which leg.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{Payload, Request};

use super::leg::{LegRequest, bit, slots};
use super::policy::{BEHIND_MAX, WritePolicy};
use super::ranges::Ticket;
use super::regions::Regions;
use super::state::State;
use crate::ondisk::BLOCK;

/// Zeros to fill a region with.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Which legs a write goes to, and what of it.
pub(super) struct Plan {
    pub pieces: Vec<LegRequest>,
    pub regions: Range<u32>,
    /// Bytes of the volume: where, and how many.
    pub range: (u64, u64),
    /// Legs that must have it before it is acknowledged.
    pub awaited: u8,
    /// Legs that are not memory.
    pub durable: u8,
}

/// A write to the volume.
#[derive(Clone, Copy)]
pub(super) struct MirrorWrite<'a> {
    pub offset: u64,
    pub data: &'a Payload,
    pub fua: bool,
    /// The checksums of its blocks, where the mirror has them.
    pub sums: Option<&'a [u32]>,
}

/// What goes to which leg: all of the range where the leg holds its regions.
pub(super) fn plan(state: &mut State, write: MirrorWrite<'_>) -> Plan {
    let MirrorWrite { offset, data, fua, sums } = write;
    let len = data.len() as u64;
    let regions = state.regions.of(offset, len);
    let (active, durable) = (state.legs.active(), state.legs.durable());
    let mut pieces = Vec::new();
    for slot in slots(active) {
        let held = |r: u32| state.regions.lacking(r) & bit(slot) == 0;
        let runs = runs(&state.regions, &regions, (offset, len), held);
        let Some((leg, device)) = state.legs.leg(slot) else { continue };
        let epoch = leg.epoch;
        for (at, bytes) in &runs {
            let data = data.slice((at - offset) as usize, *bytes as usize);
            let fua = fua && durable & bit(slot) != 0;
            let request = Request::Write { offset: leg.data_start + at, data, fua };
            pieces.push(LegRequest { slot, epoch, device: Arc::clone(device), request });
        }
        if let Some((_, counters, _)) = state.legs.tallied(slot) {
            counters.writes += runs.len() as u64;
            counters.written_bytes += runs.iter().map(|(_, bytes)| bytes).sum::<u64>();
        }
    }
    regions.clone().for_each(|r| state.regions.touch(r));
    let behind = state.policies.write == WritePolicy::WriteBehind
        && state.ranges.behind_count() < BEHIND_MAX;
    let awaited = if behind { durable } else { u8::MAX };
    if let (Some(known), Some(sums)) = (state.checksums.as_mut(), sums) {
        known.set(offset, sums);
    }
    Plan { pieces, regions, range: (offset, len), awaited, durable }
}

/// The same of a write whose range is held by itself: it may be acknowledged before all legs have
/// it.
pub(super) fn plan_held(state: &mut State, ticket: Ticket, write: MirrorWrite<'_>) -> Plan {
    let plan = plan(state, write);
    if plan.awaited != u8::MAX {
        state.ranges.plan_behind(ticket);
    }
    plan
}

/// The parts of a range in regions for which `held` is true.
fn runs(
    map: &Regions,
    regions: &Range<u32>,
    (offset, len): (u64, u64),
    held: impl Fn(u32) -> bool,
) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for region in regions.clone().filter(|r| held(*r)) {
        let (start, bytes) = map.bytes_of(region);
        let (from, to) = (start.max(offset), (start + bytes).min(offset + len));
        match runs.last_mut() {
            Some((at, run)) if *at + *run == from => *run += to - from,
            _ => runs.push((from, to - from)),
        }
    }
    runs
}

/// The write with zeros before and after it where it begins or ends in a blank region.
pub(super) fn filled_up(
    state: &State,
    offset: u64,
    data: &Payload,
    blank: &[u32],
) -> (u64, Payload) {
    let end = offset + data.len() as u64;
    let (mut from, mut to) = (offset, end);
    for region in blank {
        let (start, len) = state.regions.bytes_of(*region);
        (from, to) = (from.min(start), to.max(start + len));
    }
    if (from, to) == (offset, end) {
        return (offset, data.clone());
    }
    let mut whole = Payload::new();
    zeros(&mut whole, offset - from);
    data.parts().iter().for_each(|part| whole.push(part.clone()));
    zeros(&mut whole, to - end);
    (from, whole)
}

/// The checksum of each block of a write of whole blocks.
pub(super) fn sums_of(data: &Payload) -> Vec<u32> {
    let mut sums = Vec::with_capacity(data.len() / BLOCK as usize);
    let (mut sum, mut left) = (0, BLOCK as usize);
    for part in data.parts() {
        let mut part = &part[..];
        while !part.is_empty() {
            let (here, rest) = part.split_at(left.min(part.len()));
            sum = crc32c::crc32c_append(sum, here);
            (part, left) = (rest, left - here.len());
            if left == 0 {
                sums.push(sum);
                (sum, left) = (0, BLOCK as usize);
            }
        }
    }
    sums
}

fn zeros(to: &mut Payload, mut count: u64) {
    while count > 0 {
        let piece = count.min(ZEROS.len() as u64);
        to.push(Bytes::from_static(&ZEROS[..piece as usize]));
        count -= piece;
    }
}
