//! What a mirror knows while it is in use, under one lock that is never held across a request.

use std::sync::Arc;

use steadfast_block::{BlockDevice, BlockError, DeviceInfo};
use uuid::Uuid;

use super::policy::{Measured, Policies};
use super::ranges::Ranges;
use super::regions::Regions;
use crate::ondisk::label::{Ancestor, HISTORY, Kind, LEGS_MAX, Label, Member, MemberState};
use crate::ondisk::map::RegionState;

/// What a leg has been asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Reads.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Errors.
    pub errors: u64,
}

/// A leg's place in the mirror.
pub(crate) struct Leg {
    pub uuid: Uuid,
    /// `None`: it was not there when the mirror was assembled.
    pub device: Option<Arc<dyn BlockDevice>>,
    pub name: String,
    pub room: u64,
    pub data_start: u64,
    pub map_blocks: u32,
    pub device_bytes: u64,
    pub volatile: bool,
    pub state: MemberState,
    /// The last error of a leg that failed, or that cannot be done without.
    pub erred: Option<String>,
    pub measured: Measured,
    pub counters: Counters,
}

impl Leg {
    pub fn is_active(&self) -> bool {
        self.state == MemberState::Active && self.device.is_some()
    }
}

/// A device that waits to take a failed leg's place.
pub(crate) struct Spare {
    pub uuid: Uuid,
    pub device: Option<Arc<dyn BlockDevice>>,
    pub name: String,
    pub bytes: u64,
}

pub(crate) struct State {
    pub info: DeviceInfo,
    pub legs: [Option<Leg>; LEGS_MAX],
    pub spares: Vec<Spare>,
    pub regions: Regions,
    pub ranges: Ranges,
    pub policies: Policies,
    pub generation: u64,
    pub data: Uuid,
    pub incarnation: Uuid,
    pub history: Vec<Ancestor>,
    /// Changes of the members in memory, and how many of them are in the labels. While they
    /// differ no request begins: what it does might depend on a change that a cut takes back.
    pub membership: u64,
    pub published: u64,
    /// Passes of writing the map: begun and done. One at a time.
    pub passes_begun: u64,
    pub passes_done: u64,
    /// Nothing can be promised any more: no durable leg took a label, a map block or a flush.
    pub failed: Option<BlockError>,
    /// Why nothing works: it was closed.
    pub closed: Option<String>,
    pub reads: u64,
    pub last: usize,
    /// A resync is running.
    pub resyncing: bool,
    /// Passes of the timer.
    pub ticks: u64,
}

pub(crate) fn bit(slot: usize) -> u8 {
    1 << slot
}

/// The slots of a mask, in order.
pub(crate) fn slots(mask: u8) -> impl Iterator<Item = usize> {
    (0..LEGS_MAX).filter(move |slot| mask & bit(*slot) != 0)
}

impl State {
    fn mask(&self, of: impl Fn(&Leg) -> bool) -> u8 {
        let legs = self.legs.iter().enumerate();
        legs.filter_map(|(slot, leg)| leg.as_ref().filter(|l| of(l)).map(|_| bit(slot))).sum()
    }

    /// Legs that take requests.
    pub fn active(&self) -> u8 {
        self.mask(Leg::is_active)
    }

    /// Legs whose contents survive the loss of power.
    pub fn durable(&self) -> u8 {
        self.mask(|leg| !leg.volatile)
    }

    /// Legs that belong to the mirror and miss what is written now.
    pub fn absent(&self) -> u8 {
        self.mask(|leg| !leg.is_active())
    }

    /// All legs that belong to the mirror.
    pub fn known(&self) -> u8 {
        self.mask(|_| true)
    }

    /// An active leg and its device.
    pub fn leg(&self, slot: usize) -> Option<(&Leg, &Arc<dyn BlockDevice>)> {
        let leg = self.legs.get(slot)?.as_ref().filter(|leg| leg.state == MemberState::Active)?;
        Some((leg, leg.device.as_ref()?))
    }

    /// Why no request can begin: closed or failed.
    pub fn stopped(&self) -> Option<BlockError> {
        let device = self.info.name.clone();
        if let Some(reason) = self.closed.clone() {
            return Some(BlockError::Gone { device, reason });
        }
        self.failed.clone()
    }

    /// Whether all changes of the members are in the labels.
    pub fn is_settled(&self) -> bool {
        self.published >= self.membership
    }

    /// Whether a write may go to the legs, as far as this region is concerned.
    pub fn is_ready(&self, region: u32) -> bool {
        let absent = self.absent();
        self.regions.is_ready(region, absent, absent & self.durable())
    }

    /// The same, where the region's first write may be made now.
    pub fn is_covered(&self, region: u32) -> bool {
        let absent = self.absent();
        self.regions.is_covered(region, absent, absent & self.durable())
    }

    /// Whether every region that was written is on a durable active leg other than these. A leg
    /// that got a region and was not flushed does not count.
    pub fn can_do_without(&self, legs: u8) -> bool {
        let others = self.active() & self.durable() & !legs;
        let held = |r: u32| {
            let region = self.regions.get(r);
            region.state == RegionState::Unwritten || others & !region.stale != 0
        };
        others != 0 && (0..self.regions.count()).all(held)
    }

    /// The volume goes on without something that it had: the data gets a new identity, so that
    /// what was left behind can be told from what went on.
    pub fn branch(&mut self) {
        let left = Ancestor { generation: self.generation, data: self.data };
        self.history.insert(0, left);
        self.history.truncate(HISTORY);
        self.data = super::random_uuid();
    }

    /// A leg leaves: it misses what is written from now on, and what was not flushed.
    pub fn leave(&mut self, slot: usize, state: MemberState) {
        let Some(leg) = self.legs[slot].as_mut() else { return };
        leg.state = state;
        let durable = !leg.volatile;
        self.regions.forget_copied(bit(slot));
        for region in self.regions.active() {
            self.regions.set_stale(region, bit(slot));
        }
        if durable {
            self.branch();
        }
        self.membership += 1;
    }

    /// Drops a leg that failed, unless the mirror cannot do without it. False: it stays, and what
    /// it may not hold must be said of the regions.
    pub fn drop_failed(&mut self, slot: usize, why: &str) -> bool {
        let can = self.can_do_without(bit(slot));
        let Some(leg) = self.legs[slot].as_mut() else { return true };
        if leg.state != MemberState::Active {
            return true;
        }
        leg.erred = Some(why.to_owned());
        if !can && !leg.volatile {
            return false;
        }
        self.leave(slot, MemberState::Failed);
        true
    }

    /// Bytes that each write of a label needs: the label as it is for one member.
    pub fn label(&self, volume: Uuid, name: &str, slot: usize, leg: &Leg, closed: bool) -> Label {
        Label {
            volume,
            name: name.to_owned(),
            kind: Kind::Mirror,
            slot,
            generation: self.generation,
            data: self.data,
            incarnation: self.incarnation,
            closed,
            size: self.regions.size(),
            // OK to truncate: at most REGION_MAX.
            region_bytes: self.regions.region_bytes() as u32,
            interlace: 0,
            data_start: leg.data_start,
            device_bytes: leg.device_bytes,
            map_blocks: leg.map_blocks,
            policies: self.policies.to_bytes(),
            history: self.history.clone(),
            members: self.members(),
        }
    }

    fn members(&self) -> Vec<Member> {
        let of_leg = |leg: &Option<Leg>| {
            leg.as_ref().map_or_else(Member::empty, |leg| Member {
                uuid: leg.uuid,
                bytes: leg.room,
                state: leg.state,
                volatile: leg.volatile,
                partial: false,
                name: leg.name.clone(),
            })
        };
        let of_spare = |spare: &Spare| Member {
            uuid: spare.uuid,
            bytes: spare.bytes,
            state: MemberState::Spare,
            volatile: false,
            partial: false,
            name: spare.name.clone(),
        };
        self.legs.iter().map(of_leg).chain(self.spares.iter().map(of_spare)).collect()
    }
}
