//! The state of a mirror in use, under one lock that is never held across a request.

use std::collections::BTreeSet;

use steadfast_block::{BlockError, DeviceInfo};
use uuid::Uuid;

use super::checksums::MirrorChecksums;
use super::events::{Event, KeepReason, LegError, Listener};
use super::leg::{Leg, LegFailure, Spare, bit};
use super::policy::Policies;
use super::promotion::Promotion;
use super::ranges::Ranges;
use super::regions::Regions;
use super::table::Legs;
use crate::ondisk::label::{
    Ancestor, DepartureRange, HISTORY, Label, LayoutKind, Member, MemberState,
};
use crate::ondisk::map::RegionState;
use crate::ondisk::random_uuid;

/// What an assembly has to write down before the first change: nothing was written so far.
#[derive(Clone, Default)]
pub(crate) struct AssemblyChanges {
    /// Legs whose map is not trusted.
    pub clear: u8,
    /// Devices that have grown, and the label that is to be at their new end.
    pub moved: Vec<(usize, Label)>,
}

pub(crate) struct State {
    pub info: DeviceInfo,
    pub legs: Legs,
    pub spares: Vec<Spare>,
    pub regions: Regions,
    /// Of mirrors that have them.
    pub checksums: Option<MirrorChecksums>,
    pub ranges: Ranges,
    pub policies: Policies,
    pub generation: u64,
    /// The newest generation that is on all active legs, in both copies.
    pub base: u64,
    pub data: Uuid,
    pub incarnation: Uuid,
    pub history: Vec<Ancestor>,
    /// The newest generation of an identity that `history` had no room for.
    pub forgotten: u64,
    /// What the assembly decided is not written down yet.
    pub pending: Option<AssemblyChanges>,
    /// The assembly itself reads: it may read out-of-sync regions without syncing them.
    pub assembling: bool,
    /// Regions that nobody may read until it is written down which legs count: those differ after a
    /// power cut, also from some that are away.
    pub undecided: BTreeSet<u32>,
    /// Changes of the members in memory, and how many of them are in the labels. While they differ
    /// no request begins: what it does might depend on a change that a power cut takes back.
    pub membership: u64,
    pub published: u64,
    /// Passes of writing the map: begun and done. One at a time.
    pub passes_begun: u64,
    pub passes_done: u64,
    /// Nothing can be promised any more: no durable leg took a label, a map block or a flush.
    pub failed: Option<BlockError>,
    /// Why nothing works: it was closed.
    pub closed: Option<String>,
    /// It is being closed: no write begins.
    pub closing: bool,
    pub reads: u64,
    pub last: usize,
    /// A resync is running.
    pub resyncing: bool,
    /// What a partial leg is to hold next.
    pub fill: Promotion,
    /// Listener for failing legs.
    pub listener: Option<Listener>,
}

impl State {
    /// A state in which nothing has happened yet.
    pub fn new(info: DeviceInfo, regions: Regions, policies: Policies) -> State {
        State {
            info,
            legs: Legs::default(),
            spares: Vec::new(),
            regions,
            checksums: None,
            ranges: Ranges::default(),
            policies,
            generation: 0,
            base: 0,
            data: random_uuid(),
            incarnation: random_uuid(),
            history: Vec::new(),
            forgotten: 0,
            pending: None,
            assembling: true,
            undecided: BTreeSet::new(),
            // The first change is that it is assembled, or made.
            membership: 1,
            published: 0,
            passes_begun: 0,
            passes_done: 0,
            failed: None,
            closed: None,
            closing: false,
            reads: 0,
            last: 0,
            resyncing: false,
            fill: Promotion::default(),
            listener: None,
        }
    }

    /// Why no request can begin: closed or failed.
    pub fn stopped(&self) -> Option<BlockError> {
        let device = self.info.name.clone();
        if let Some(reason) = self.closed.clone() {
            return Some(BlockError::Gone { device, reason });
        }
        self.failed.clone()
    }

    /// The same, for what changes the volume: nothing begins either while it is being closed.
    pub fn refuses_writes(&self) -> Option<BlockError> {
        if self.closing {
            let (device, reason) = (self.info.name.clone(), "the volume is being closed".into());
            return Some(BlockError::Gone { device, reason });
        }
        self.stopped()
    }

    /// Whether all changes of the members are in the labels.
    pub fn is_settled(&self) -> bool {
        self.published >= self.membership
            && self.pending.is_none()
            && !self.legs.iter().flatten().any(|leg| leg.joining)
    }

    /// A region of these that no durable leg in use holds: no write to it can be acknowledged.
    pub fn orphan(&self, mut regions: std::ops::Range<u32>) -> Option<u32> {
        let durable = self.legs.active() & self.legs.durable();
        regions.find(|r| !self.regions.is_blank(*r) && durable & !self.regions.lacking(*r) == 0)
    }

    /// Whether a write may go to the legs, as far as this region is concerned.
    pub fn is_ready(&self, region: u32) -> bool {
        let absent = self.legs.absent();
        self.regions.is_ready(region, absent, absent & self.legs.durable())
    }

    /// The same, where the region's first write may be made now.
    pub fn is_covered(&self, region: u32) -> bool {
        let absent = self.legs.absent();
        self.regions.is_covered(region, absent, absent & self.legs.durable())
    }

    /// Whether something must be durable before the region is written, that can be made so.
    pub fn must_open(&self, region: u32) -> bool {
        self.regions.out_of_sync(region) == 0 && !self.is_covered(region)
    }

    /// Whether every region that was written is on a durable active leg other than these. A leg
    /// that got a region and was not flushed does not count.
    pub fn can_do_without(&self, legs: u8) -> bool {
        let joining = self.legs.mask(|leg| leg.joining);
        let others = self.legs.active() & self.legs.durable() & !legs & !joining;
        let held = |r: u32| {
            let region = self.regions.get(r);
            region.state == RegionState::Unwritten || others & !region.stale != 0
        };
        others != 0 && (0..self.regions.count()).all(held)
    }

    /// The volume goes on without something that it had: the data gets a new identity, so that
    /// what was left behind can be distinguished from what went on.
    pub fn branch(&mut self) {
        let left = Ancestor { generation: self.generation, data: self.data };
        self.history.insert(0, left);
        self.data = random_uuid();
        while self.history.len() > HISTORY {
            let gone = self.history.remove(self.least_needed());
            self.forgotten = self.forgotten.max(gone.generation);
        }
    }

    /// The ancestor that is forgotten first: the oldest with which no leg can have left. A leg that
    /// is away is known by the identity that it left with, however long ago, so where each may be
    /// somebody's, those go that came with a return that failed.
    fn least_needed(&self) -> usize {
        let left = || self.legs.iter().flatten().filter_map(|leg| leg.left);
        let within = |n: usize, left: DepartureRange| {
            (left.first..=left.last).contains(&self.history[n].generation)
        };
        let oldest_within =
            |left: DepartureRange| (0..self.history.len()).rev().find(|n| within(*n, left));
        let some_leg_has = |n: usize| left().any(|left| within(n, left));
        let leg_left_with = |n: usize| left().any(|left| oldest_within(left) == Some(n));
        let from_the_oldest = || (0..self.history.len()).rev();
        let free = from_the_oldest().find(|n| !some_leg_has(*n));
        let returned = || from_the_oldest().find(|n| !leg_left_with(*n));
        free.or_else(returned).unwrap_or(self.history.len() - 1)
    }

    /// A leg leaves: it misses what is written from now on, and what was not flushed.
    pub fn leave(&mut self, slot: usize, state: MemberState) {
        let (first, last) = (self.base, self.generation);
        let Some(leg) = self.legs[slot].as_mut() else { return };
        let was_in_use = leg.state == MemberState::Active;
        if was_in_use {
            // A leg of which the return is not on all labels may still have the one that it left
            // with before.
            let before = leg.left.map_or(first, |left| left.first);
            leg.left = Some(DepartureRange { first: first.min(before), last });
        }
        leg.state = state;
        let durable = !leg.volatile && was_in_use;
        self.legs.new_epoch(slot);
        self.regions.forget_copied(bit(slot));
        let others = self.legs.active() & self.legs.durable();
        for region in self.regions.active() {
            // What it alone has stays its own, until it comes back.
            if others & !self.regions.get(region).stale != 0 {
                self.regions.set_stale(region, bit(slot));
            }
        }
        self.replace_primaries(self.regions.all_out_of_sync());
        if durable {
            self.branch();
        }
        self.membership += 1;
    }

    /// Drops a leg that failed, unless the mirror cannot do without it. False: it stays, and what
    /// it may not hold must be said of the regions. What failed before the leg left or was replaced
    /// is nothing against who is there now.
    pub fn drop_failed(&mut self, failed: &LegFailure) -> bool {
        let slot = failed.slot;
        let can = self.can_do_without(bit(slot));
        let Some(leg) = self.legs[slot].as_mut() else { return true };
        if leg.state != MemberState::Active || leg.epoch != failed.epoch {
            return true;
        }
        let volatile = leg.volatile;
        if !can && !volatile {
            self.keep_failed(failed, KeepReason::OnlyCopy);
            return false;
        }
        let (name, error) = (leg.name.clone(), failed.error.to_string());
        leg.erred = Some(error.clone());
        let leg_error = LegError { slot, name, volatile, error };
        self.leave(slot, MemberState::Failed);
        self.notify(&Event::Dropped(leg_error));
        true
    }

    /// A leg that failed is in use all the same. False: it is not, or is another one by now.
    pub fn keep_failed(&mut self, failed: &LegFailure, why: KeepReason) -> bool {
        let slot = failed.slot;
        let leg = self.legs[slot].as_mut();
        let Some(leg) = leg.filter(|l| l.is_active() && l.epoch == failed.epoch) else {
            return false;
        };
        // One that stays may fail at every request.
        let is_news = leg.erred.is_none();
        let (name, volatile, error) = (leg.name.clone(), leg.volatile, failed.error.to_string());
        leg.erred = Some(error.clone());
        if is_news {
            self.notify(&Event::Erred(LegError { slot, name, volatile, error }, why));
        }
        true
    }

    /// Notifies the listener.
    pub fn notify(&self, event: &Event) {
        if let Some(listener) = &self.listener {
            listener(event);
        }
    }

    /// Bytes that each write of a label needs: the label as it is for one member.
    pub fn label(&self, volume: Uuid, name: &str, slot: usize, leg: &Leg, closed: bool) -> Label {
        Label {
            volume,
            name: name.to_owned(),
            kind: LayoutKind::Mirror,
            slot,
            generation: self.generation,
            base: self.base,
            data: self.data,
            incarnation: self.incarnation,
            closed,
            size: self.regions.size(),
            // OK to truncate: at most REGION_MAX.
            region_bytes: self.regions.region_bytes() as u32,
            interlace: 0,
            data_start: leg.data_start,
            device_bytes: leg.frames.as_ref().map_or(leg.device_bytes, |f| f.device_bytes()),
            map_blocks: leg.map_blocks,
            policies: self.policies.to_bytes(),
            checksums: self.checksums.is_some(),
            history: self.history.clone(),
            forgotten: self.forgotten,
            members: self.members(),
        }
    }

    fn members(&self) -> Vec<Member> {
        let of_leg = |leg: &Option<Leg>| {
            leg.as_ref().filter(|leg| !leg.joining).map_or_else(Member::default, |leg| Member {
                uuid: leg.uuid,
                bytes: leg.room,
                state: leg.state,
                volatile: leg.volatile,
                partial: leg.partial,
                name: leg.name.clone(),
                left: leg.left,
            })
        };
        let of_spare = |spare: &Spare| Member {
            uuid: spare.uuid,
            bytes: spare.bytes,
            state: MemberState::Spare,
            volatile: false,
            partial: false,
            name: spare.name.clone(),
            left: None,
        };
        self.legs.iter().map(of_leg).chain(self.spares.iter().map(of_spare)).collect()
    }
}
