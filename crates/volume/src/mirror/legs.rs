//! Changes of legs while the mirror is in use: attach, detach, offline, online. Replacing a leg is
//! in `replace`.
//!
//! Each refusal gives the reason and changes nothing: everything is checked before the assembly is
//! committed, and again after it. The order is always the same: the map of a leg is durable before
//! a label names the leg as active. Requests wait from the change in memory until it is in the
//! labels (`State::is_settled`).

use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{BlockDevice, DeviceInfo};
use steadfast_runtime::MutexGuard;

use super::leg::{Leg, bit};
use super::metadata::Metadata;
use super::partial::PartialFrames;
use super::state::State;
use super::{Mirror, describe};
use crate::assemble::lineage::{is_as_it_left, own_uuid};
use crate::error::{Result, VolumeError};
use crate::member::{LabelledDevice, check_new, read_label, wipe_label};
use crate::ondisk::label::{LEGS_MAX, MemberState};
use crate::ondisk::map::RECORDS;
use crate::ondisk::{BLOCK, Layout, MAP_AT, REGIONS_MAX, checksums, random_uuid};
use crate::planted::Bug;

type Device = Arc<dyn BlockDevice>;

pub(crate) const ONE_PARTIAL: &str = "a mirror has one partial leg at most, and there is one";

/// A device that is to be a leg.
#[derive(Clone)]
pub struct NewLeg {
    /// The device.
    pub device: Device,
    /// It does not count as durable, whatever it says of itself.
    pub volatile: bool,
    /// It may be smaller than the volume, and holds the regions that are used most, as long as the
    /// mirror is in use: it is volatile, whatever it is made of.
    pub partial: bool,
    /// Overwrite a label that it carries.
    pub force: bool,
}

impl NewLeg {
    /// As the device describes itself.
    pub fn new(device: Device) -> Self {
        NewLeg { device, volatile: false, partial: false, force: false }
    }
}

/// A new leg of no mirror yet, if the device can be one.
///
/// # Errors
/// Why it cannot.
pub(crate) fn leg_on(
    new: &NewLeg,
    region_bytes: u32,
    checksums: bool,
) -> Result<(Leg, DeviceInfo)> {
    let info = check_new(&new.device, new.force)?;
    let layout = Layout::of_leg(info.size, region_bytes, checksums);
    let leg = Leg {
        uuid: random_uuid(),
        device: Some(Arc::clone(&new.device)),
        name: info.name.clone(),
        room: layout.room(info.size),
        data_start: layout.data_start,
        map_blocks: layout.map_blocks,
        device_bytes: info.size,
        volatile: new.volatile || info.unfit_to_persist().is_some(),
        state: MemberState::Active,
        ..Leg::default()
    };
    let leg = if new.partial { with_frames(leg, new, region_bytes)? } else { leg };
    Ok((leg, info))
}

/// The leg with room for some regions only: a label at each end, and no map.
fn with_frames(leg: Leg, new: &NewLeg, region_bytes: u32) -> Result<Leg> {
    let size = leg.device_bytes;
    let start = Layout::of_component(size).data_start;
    let leg = partial_leg(Leg { map_blocks: 0, ..leg }, &new.device, start, region_bytes.into());
    if leg.room == 0 {
        let need = start + u64::from(region_bytes) + BLOCK;
        refuse!(
            "{}: is too small to hold a single region: with labels it needs {need} bytes, and has \
             {size}",
            leg.name
        );
    }
    Ok(leg)
}

/// The leg on a device as a partial one, with data from `start` on: blank.
pub(crate) fn partial_leg(leg: Leg, device: &Device, start: u64, region_bytes: u64) -> Leg {
    let frames = PartialFrames::new(Arc::clone(device), start, region_bytes);
    Leg {
        device: Some(Arc::clone(&frames) as Device),
        room: frames.room(),
        data_start: start,
        device_bytes: frames.info().size,
        volatile: true,
        partial: true,
        frames: Some(frames),
        ..leg
    }
}

/// Zeros where the map will be: what is there from an earlier life must not be taken for it.
pub(crate) fn clear_map(leg: &Leg) -> Result<()> {
    match &leg.device {
        Some(device) => Ok(clear_blocks(device, leg.map_blocks)?),
        None => Ok(()),
    }
}

pub(super) fn clear_blocks(device: &Device, blocks: u32) -> steadfast_block::Result<()> {
    let zeros = Bytes::from(vec![0; 64 * BLOCK as usize]);
    let end = MAP_AT + 2 * BLOCK * u64::from(blocks);
    let mut at = MAP_AT;
    while at < end {
        let piece = (end - at).min(zeros.len() as u64);
        device.write(at, zeros.slice(..piece as usize).into())?;
        at += piece;
    }
    device.flush()
}

impl State {
    /// Regions that a leg has room for in its map, and in the area of its checksums.
    pub(crate) fn regions_max(&self, leg: &Leg) -> u64 {
        if leg.partial {
            // It keeps neither map nor checksums.
            return REGIONS_MAX;
        }
        let by_map = (u64::from(leg.map_blocks) * RECORDS as u64).min(REGIONS_MAX);
        let region = self.regions.region_bytes();
        match self.checksums.is_some() {
            true => by_map.min(checksums::room(leg.map_blocks, leg.data_start, region)),
            false => by_map,
        }
    }

    /// Refuses a device that cannot be a leg of this volume, or that is one already; `place` is
    /// where it may be the leg that it is.
    pub(super) fn check_leg(
        &self,
        leg: &Leg,
        info: &DeviceInfo,
        place: Option<usize>,
    ) -> Result<()> {
        let (name, size) = (&leg.name, self.regions.size());
        let other = self.legs.partial() & !place.map_or(0, bit);
        if leg.partial && other != 0 {
            refuse!("{name}: {}", ONE_PARTIAL);
        }
        if leg.room < size && !leg.partial {
            let need = size + (leg.device_bytes - leg.room);
            refuse!(
                "{name}: is too small: the volume has {size} bytes, and with labels and map a leg \
                 needs {need}; it has {}. As a partial leg (--partial) it would hold what is used \
                 most",
                leg.device_bytes
            );
        }
        if self.regions_max(leg) < self.regions.count().into() {
            refuse!("{name}: its map or its checksums have no room for a volume of {size} bytes");
        }
        if info.logical_block > self.info.logical_block {
            refuse!(
                "{name}: has blocks of {} bytes, the volume has promised blocks of {}",
                info.logical_block,
                self.info.logical_block
            );
        }
        let Some(device) = leg.own_device() else { return Ok(()) };
        let others = self.legs.iter().enumerate().filter(|(slot, _)| Some(*slot) != place);
        let legs = others.filter_map(|(_, l)| l.as_ref()?.own_device());
        let spares = self.spares.iter().filter_map(|s| s.device.as_ref());
        if legs.chain(spares).any(|other| Arc::ptr_eq(other, device)) {
            refuse!("{name}: is a leg or a spare of this mirror already");
        }
        Ok(())
    }

    /// Refuses while a resync has something to do. What no leg that is there can give does not
    /// count: waiting would not help.
    pub(super) fn check_busy(&self, what: &str) -> Result<()> {
        // What memory lacks, which is all after each start, makes nothing less durable.
        let active = self.legs.active() & self.legs.durable();
        let to_copy = |r: u32| {
            !self.regions.is_blank(r)
                && self.regions.lacking(r) & active != 0
                && !self.sources(r, false).is_empty()
        };
        if self.resyncing || (0..self.regions.count()).any(to_copy) {
            refuse!("{}: a resync is not complete, {what} has to wait for it", self.info.name);
        }
        Ok(())
    }

    /// The place for a new leg.
    fn check_attaching(&self, leg: &Leg, info: &DeviceInfo) -> Result<usize> {
        self.check_leg(leg, info, None)?;
        let free = self.legs.iter().position(Option::is_none);
        free.ok_or_else(|| {
            let name = &self.info.name;
            VolumeError::refused(format!("{name}: a mirror has at most {LEGS_MAX} legs"))
        })
    }

    /// Whether the leg is in use, if it may go now.
    fn check_detaching(&self, slot: usize) -> Result<bool> {
        let leg = self.member(slot)?;
        // A leg that serves no reads may be removed at any time.
        if leg.is_active() && self.regions.lacking_bytes(bit(slot)) == 0 {
            self.check_busy("detaching")?;
        }
        Ok(leg.is_active())
    }

    pub(super) fn member(&self, slot: usize) -> Result<&Leg> {
        self.legs.get(slot).and_then(Option::as_ref).ok_or_else(|| {
            VolumeError::refused(format!("{}: has no leg in place {slot}", self.info.name))
        })
    }
}

impl Metadata {
    /// Checks, with what is known now. Nothing is written down.
    pub(super) fn would<T>(&self, check: impl Fn(&State) -> Result<T>) -> Result<T> {
        let state = self.state.lock();
        if let Some(stopped) = state.stopped() {
            return Err(stopped.into());
        }
        check(&state)
    }

    /// The same; then again when all is written down that must be before a change is made. A
    /// refusal changes nothing.
    pub(super) fn checked<T>(
        &self,
        check: impl Fn(&State) -> Result<T>,
    ) -> Result<(MutexGuard<'_, State>, T)> {
        self.would(&check)?;
        let state = self.settled()?;
        let checked = check(&state)?;
        Ok((state, checked))
    }

    /// Puts a leg that lacks everything into a place, and makes map and labels say so.
    pub(super) fn put(&self, slot: usize, leg: Leg) -> Result<()> {
        let believed = leg.volatile && self.planted.has(Bug::VolatileSource);
        if !leg.volatile {
            clear_map(&leg)?;
        }
        {
            let mut state = self.settled()?;
            state.legs[slot] = Some(Leg { joining: true, ..leg });
            state.legs.new_epoch(slot);
            state.regions.forget_copied(bit(slot));
            if !believed {
                state.regions.set_all_stale(bit(slot));
            }
            state.regions.rewrite_all();
            state.describe();
        }
        // The map first: a label that names the leg makes it one that is trusted.
        let committed = self.commit();
        {
            let mut state = self.state.lock();
            if let Some(leg) = state.legs[slot].as_mut() {
                leg.joining = false;
            }
            state.membership += 1;
        }
        self.changed.notify_all();
        committed?;
        self.publish()?;
        let state = self.state.lock();
        match state.legs[slot].as_ref() {
            Some(leg) if leg.state == MemberState::Failed => {
                let why = leg.erred.clone().unwrap_or_default();
                refuse!("{}: failed at once: {why}", leg.name)
            }
            _ => Ok(()),
        }
    }

    /// Forgets why a leg in use is not sound; whether there was anything.
    fn forget_error(&self, slot: usize) -> bool {
        let mut state = self.state.lock();
        let works = state.stopped().is_none();
        let leg = state.legs.get_mut(slot).and_then(Option::as_mut);
        leg.filter(|leg| works && leg.is_active()).is_some_and(|leg| leg.erred.take().is_some())
    }

    /// Waits until what was sent to the legs so far is answered.
    pub(super) fn drain(&self) -> steadfast_block::Result<()> {
        let state = self.settled()?;
        let all = 0..state.regions.count();
        let (_, ticket) = self.take_regions(state, all);
        self.release(ticket);
        Ok(())
    }
}

impl State {
    pub(super) fn describe(&mut self) {
        let legs = self.legs.iter().flatten().filter_map(|leg| leg.device.as_ref());
        let infos: Vec<DeviceInfo> = legs.map(|device| device.info()).collect();
        let block = self.info.logical_block;
        let (name, size) = (self.info.name.clone(), self.regions.size());
        self.info = describe(&name, size, &infos, self.info.read_only);
        // What was promised stays.
        self.info.logical_block = block.max(self.info.logical_block);
        self.info.physical_block = self.info.physical_block.max(block);
    }
}

impl Mirror {
    /// Adds a leg in the first free place, which is returned. It lacks everything until a resync.
    ///
    /// # Errors
    /// If there is no place, the device is too small or cannot be a member, or it fails.
    pub fn attach(&self, new: &NewLeg) -> Result<usize> {
        let _admin = self.0.admin.lock();
        let (leg, info) = leg_on(new, self.region_bytes(), self.0.checksums)?;
        let (state, slot) = self.0.checked(|state| state.check_attaching(&leg, &info))?;
        drop(state);
        self.0.put(slot, leg)?;
        Ok(slot)
    }

    /// Whether [`attach`](Self::attach) would be refused; nothing is written. For who has to write
    /// to the device before.
    ///
    /// # Errors
    /// As there.
    pub fn check_attach(&self, new: &NewLeg) -> Result<()> {
        let _admin = self.0.admin.lock();
        let (leg, info) = leg_on(new, self.region_bytes(), self.0.checksums)?;
        self.0.would(|state| state.check_attaching(&leg, &info)).map(drop)
    }

    pub(super) fn region_bytes(&self) -> u32 {
        // OK to truncate: at most REGION_MAX.
        self.0.state.lock().regions.region_bytes() as u32
    }

    /// Removes a leg for good; its label is wiped, if it can be reached.
    ///
    /// # Errors
    /// During a resync, and if it is the last good copy of anything, also if it is not there.
    pub fn detach(&self, slot: usize) -> Result<()> {
        let _admin = self.0.admin.lock();
        self.detach_leg(slot, false)
    }

    /// The same if the leg is the only holder of a region: the region is given up, and reads as
    /// zeros from then on. Returns the bytes given up.
    ///
    /// # Errors
    /// During a resync, and if no other durable leg is in use.
    pub fn detach_and_lose(&self, slot: usize) -> Result<u64> {
        let _admin = self.0.admin.lock();
        let what = "detaching it";
        drop(self.0.checked(|state| {
            state.check_detaching(slot)?;
            state.check_not_only(slot, what)
        })?);
        let lost = self.0.give_up(slot)?;
        self.detach_leg(slot, true)?;
        Ok(lost)
    }

    fn detach_leg(&self, slot: usize, lose: bool) -> Result<()> {
        let (device, was_in_use) = {
            let (mut state, was_in_use) = self.0.checked(|state| {
                let was_in_use = state.check_detaching(slot)?;
                state.check_going(slot, "detaching it", lose)?;
                Ok(was_in_use)
            })?;
            state.leave(slot, MemberState::Empty);
            let leg = state.legs[slot].take();
            state.describe();
            (leg.and_then(|leg| leg.own_device().cloned()), was_in_use)
        };
        self.0.publish()?;
        if let Some(device) = device {
            if was_in_use {
                // Writes in flight to it must not overwrite the device's next use.
                self.0.drain()?;
            }
            // It is no member any more, whatever its label says.
            drop(wipe_label(&device));
        }
        Ok(())
    }

    /// Takes a leg out of use; what it misses from now on is recorded.
    ///
    /// # Errors
    /// During a resync, and if it is the last good copy.
    pub fn offline(&self, slot: usize) -> Result<()> {
        let _admin = self.0.admin.lock();
        {
            let (mut state, ()) = self.0.checked(|state| {
                if !state.member(slot)?.is_active() {
                    let name = &state.member(slot)?.name;
                    refuse!("{name}: is not in use");
                }
                state.check_busy("taking a leg offline")?;
                state.check_not_last(slot, "taking it offline")
            })?;
            state.leave(slot, MemberState::Offline);
        }
        self.0.publish()?;
        Ok(self.0.drain()?)
    }

    /// Brings a leg online that was offline, failed or missing. Only the regions that it missed are
    /// copied. `device` is where it is now, if that has changed. The error of a leg that failed and
    /// stayed in use is cleared.
    ///
    /// # Errors
    /// If the device is not that leg any more: it was overwritten, is an old copy, or was used in
    /// another mirror.
    pub fn online(&self, slot: usize, device: Option<Device>) -> Result<()> {
        let _admin = self.0.admin.lock();
        if device.is_none() && self.0.forget_error(slot) {
            return Ok(());
        }
        let (volatile, found) = self.recognised(slot, device)?;
        let info = found.device.info();
        // What was read without the lock is counted before the counters go on.
        drop(self.0.state.lock().legs.sweep());
        let (mut state, back) = self.0.checked(|state| {
            let now = state.member(slot)?;
            let label = &found.label;
            let layout = Layout { map_blocks: label.map_blocks, data_start: label.data_start };
            let back = Leg {
                // Of the device as its label knows it: that is where the second copy is.
                device_bytes: label.device_bytes,
                room: layout.room(label.device_bytes),
                device: Some(Arc::clone(&found.device)),
                name: info.name.clone(),
                data_start: label.data_start,
                map_blocks: label.map_blocks,
                volatile: now.volatile,
                uuid: now.uuid,
                state: MemberState::Active,
                left: now.left,
                counters: now.counters,
                ..Leg::default()
            };
            let region_bytes = state.regions.region_bytes();
            let back = match now.partial {
                true => partial_leg(back, &found.device, label.data_start, region_bytes),
                false => back,
            };
            state.check_leg(&back, &info, Some(slot))?;
            Ok(back)
        })?;
        state.legs[slot] = Some(back);
        state.legs.new_epoch(slot);
        if volatile {
            state.regions.set_all_stale(bit(slot));
        } else {
            state.mark_absent_stale(slot);
        }
        state.regions.rewrite_all();
        state.membership += 1;
        state.describe();
        drop(state);
        self.0.commit()?;
        Ok(self.0.publish()?)
    }

    /// Whether the leg is volatile; and its device, if it is still that leg, as it left.
    fn recognised(&self, slot: usize, device: Option<Device>) -> Result<(bool, LabelledDevice)> {
        let (uuid, name, known, left, volatile) = {
            let state = self.0.state.lock();
            let leg = state.member(slot)?;
            if leg.is_active() {
                refuse!("{}: is in use", leg.name);
            }
            (leg.uuid, leg.name.clone(), leg.own_device().cloned(), leg.left, leg.volatile)
        };
        let Some(device) = device.or(known) else {
            refuse!("{name}: is not there");
        };
        let advice = "replace it instead, which copies everything";
        let Some(found) = read_label(&device)?.filter(|found| found.overwritten.is_none()) else {
            refuse!("{name}: has no label any more: {advice}");
        };
        let refused = |what: &str| {
            let (name, mirror) = (found.name(), &self.0.name);
            VolumeError::refused(format!("{name}: {what} '{mirror}': {advice}"))
        };
        if found.label.volume != self.0.volume || own_uuid(&found.label) != uuid {
            return Err(refused("is not the leg that left"));
        }
        let state = self.0.state.lock();
        let is_back =
            left.is_some_and(|left| is_as_it_left(&found.label, left, state.data, &state.history));
        drop(state);
        // What memory holds is not trusted anyway.
        if !is_back && !volatile {
            return Err(refused("is an old copy of the leg, or was used separately since it left"));
        }
        Ok((volatile, found))
    }
}
