//! Legs come and go while the mirror is in use: attach, detach, offline, online, replace, spares.
//!
//! Each refusal says why and changes nothing. The order is the same everywhere: what the map must
//! say of a leg is durable before a label names it as one that takes writes; requests wait from the
//! change in memory until it is in the labels (`State::is_settled`).

use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{BlockDevice, DeviceInfo};

use super::state::{Leg, Spare, State, bit};
use super::{Core, Mirror, describe, random_uuid};
use crate::error::{Result, VolumeError};
use crate::member::{check_new, read_label, wipe_label, write_label};
use crate::ondisk::label::{LEGS_MAX, MemberState, SPARES_MAX};
use crate::ondisk::{BLOCK, Layout, MAP_AT};
use crate::planted::Bug;

type Device = Arc<dyn BlockDevice>;

/// A device that is to be a leg.
#[derive(Clone)]
pub struct NewLeg {
    /// The device.
    pub device: Device,
    /// It does not count as durable, whatever it says of itself.
    pub volatile: bool,
    /// Overwrite a label that it carries.
    pub force: bool,
}

impl NewLeg {
    /// As the device describes itself.
    pub fn new(device: Device) -> Self {
        NewLeg { device, volatile: false, force: false }
    }
}

/// A leg that belongs to nobody yet, if the device can be one.
pub(crate) fn leg_on(new: &NewLeg, region_bytes: u32) -> Result<(Leg, DeviceInfo)> {
    let info = check_new(&new.device, new.force)?;
    let layout = Layout::of_leg(info.size, region_bytes);
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
        erred: None,
        measured: Default::default(),
        counters: Default::default(),
    };
    Ok((leg, info))
}

/// Zeros where the map will be: what is there from an earlier life must not be taken for it.
pub(crate) fn clear_map(leg: &Leg) -> Result<()> {
    match &leg.device {
        Some(device) => clear_blocks(device, leg.map_blocks),
        None => Ok(()),
    }
}

fn clear_blocks(device: &Device, blocks: u32) -> Result<()> {
    let zeros = Bytes::from(vec![0; 64 * BLOCK as usize]);
    let end = MAP_AT + 2 * BLOCK * u64::from(blocks);
    let mut at = MAP_AT;
    while at < end {
        let piece = (end - at).min(zeros.len() as u64);
        device.write(at, zeros.slice(..piece as usize).into())?;
        at += piece;
    }
    Ok(device.flush()?)
}

impl State {
    fn check_leg(&self, leg: &Leg, info: &DeviceInfo) -> Result<()> {
        let (name, size) = (&leg.name, self.regions.size());
        if leg.room < size {
            let need = size + (leg.device_bytes - leg.room);
            return Err(VolumeError::refused(format!(
                "{name}: is too small: the volume has {size} bytes, and with labels and map a leg \
                 needs {need}; it has {}",
                leg.device_bytes
            )));
        }
        if info.logical_block > self.info.logical_block {
            return Err(VolumeError::refused(format!(
                "{name}: has blocks of {} bytes, the volume has promised blocks of {}",
                info.logical_block, self.info.logical_block
            )));
        }
        let same = |other: &Device| Arc::ptr_eq(other, leg.device.as_ref().unwrap_or(other));
        let mut used = self.legs.iter().flatten().filter_map(|l| l.device.as_ref());
        if leg.device.is_some() && used.any(same) {
            return Err(VolumeError::refused(format!("{name}: is a leg of this mirror already")));
        }
        Ok(())
    }

    fn check_busy(&self, what: &str) -> Result<()> {
        let active = self.active();
        if self.resyncing || self.regions.lacking_bytes(active) > 0 {
            return Err(VolumeError::refused(format!(
                "{}: a resync is not complete, {what} has to wait for it",
                self.info.name
            )));
        }
        Ok(())
    }

    fn check_not_last(&self, slot: usize, what: &str) -> Result<()> {
        let active = self.legs[slot].as_ref().is_some_and(Leg::is_active);
        if active && !self.can_do_without(bit(slot)) {
            let name = self.legs[slot].as_ref().map_or("", |leg| &leg.name);
            return Err(VolumeError::refused(format!(
                "{name}: {what} would take the last good durable copy from '{}'",
                self.info.name
            )));
        }
        Ok(())
    }

    fn member(&self, slot: usize) -> Result<&Leg> {
        self.legs.get(slot).and_then(Option::as_ref).ok_or_else(|| {
            VolumeError::refused(format!("{}: has no leg in place {slot}", self.info.name))
        })
    }
}

impl Core {
    /// Forgets the map that a leg has from another life.
    pub(crate) fn clear_map_of(&self, slot: usize) -> Result<()> {
        let leg = {
            let state = self.state.lock();
            state.legs[slot].as_ref().map(|leg| (leg.device.clone(), leg.map_blocks))
        };
        match leg {
            Some((Some(device), blocks)) => clear_blocks(&device, blocks),
            _ => Ok(()),
        }
    }

    /// Puts a leg that lacks everything into a place, and makes map and labels say so.
    fn put(&self, slot: usize, leg: Leg) -> Result<()> {
        let believed = leg.volatile && self.planted.has(Bug::VolatileSource);
        if !leg.volatile {
            clear_map(&leg)?;
        }
        {
            let mut state = self.settled()?;
            state.legs[slot] = Some(leg);
            state.regions.forget_copied(bit(slot));
            if !believed {
                state.regions.set_all_stale(bit(slot));
            }
            state.regions.rewrite_all();
            state.membership += 1;
            state.describe();
        }
        // The map first: a label that names the leg makes it one that is believed.
        self.commit()?;
        self.publish()?;
        let state = self.state.lock();
        match state.legs[slot].as_ref() {
            Some(leg) if leg.state == MemberState::Failed => {
                let why = leg.erred.clone().unwrap_or_default();
                Err(VolumeError::refused(format!("{}: failed at once: {why}", leg.name)))
            }
            _ => Ok(()),
        }
    }
}

impl State {
    fn describe(&mut self) {
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
        let (leg, info) = leg_on(new, self.region_bytes())?;
        let slot = {
            let state = self.0.settled()?;
            state.check_leg(&leg, &info)?;
            let free = state.legs.iter().position(Option::is_none);
            free.ok_or_else(|| {
                let name = &state.info.name;
                VolumeError::refused(format!("{name}: a mirror has at most {LEGS_MAX} legs"))
            })?
        };
        self.0.put(slot, leg)?;
        Ok(slot)
    }

    fn region_bytes(&self) -> u32 {
        // OK to truncate: at most REGION_MAX.
        self.0.state.lock().regions.region_bytes() as u32
    }

    /// Removes a leg for good; its label is wiped, if it can be reached.
    ///
    /// # Errors
    /// During a resync, and if it is the last good copy.
    pub fn detach(&self, slot: usize) -> Result<()> {
        let _admin = self.0.admin.lock();
        let device = {
            let mut state = self.0.settled()?;
            let leg = state.member(slot)?;
            // A leg that serves nobody may go at any time.
            if leg.is_active() && state.regions.lacking_bytes(bit(slot)) == 0 {
                state.check_busy("detaching")?;
            }
            state.check_not_last(slot, "detaching it")?;
            state.leave(slot, MemberState::Empty);
            let leg = state.legs[slot].take();
            state.describe();
            leg.and_then(|leg| leg.device)
        };
        self.0.publish()?;
        if let Some(device) = device {
            // It is no member any more, whatever its label says.
            drop(wipe_label(&device));
        }
        Ok(())
    }

    /// Takes a leg out of use; what it misses from now on is remembered.
    ///
    /// # Errors
    /// During a resync, and if it is the last good copy.
    pub fn offline(&self, slot: usize) -> Result<()> {
        let _admin = self.0.admin.lock();
        {
            let mut state = self.0.settled()?;
            if !state.member(slot)?.is_active() {
                let name = &state.member(slot)?.name;
                return Err(VolumeError::refused(format!("{name}: is not in use")));
            }
            state.check_busy("taking a leg offline")?;
            state.check_not_last(slot, "taking it offline")?;
            state.leave(slot, MemberState::Offline);
        }
        Ok(self.0.publish()?)
    }

    /// Takes a leg that was offline, failed or missing into use again. It lacks only what it
    /// missed. `device` is where it is now, if that has changed.
    ///
    /// # Errors
    /// If the device is not that leg any more: it was overwritten, or has been elsewhere.
    pub fn online(&self, slot: usize, device: Option<Device>) -> Result<()> {
        let _admin = self.0.admin.lock();
        let device = self.recognised(slot, device)?;
        {
            let mut state = self.0.settled()?;
            let volatile_lost = state.member(slot)?.volatile;
            if let Some(leg) = state.legs[slot].as_mut() {
                leg.name = device.info().name;
                leg.device = Some(device);
                leg.state = MemberState::Active;
                leg.erred = None;
            }
            if volatile_lost {
                state.regions.set_all_stale(bit(slot));
            }
            state.regions.rewrite_all();
            state.membership += 1;
            state.describe();
        }
        self.0.commit()?;
        Ok(self.0.publish()?)
    }

    /// The device of a leg, if it is still that leg.
    fn recognised(&self, slot: usize, device: Option<Device>) -> Result<Device> {
        let (uuid, name, known, generation, data, history) = {
            let state = self.0.settled()?;
            let leg = state.member(slot)?;
            if leg.is_active() {
                return Err(VolumeError::refused(format!("{}: is in use", leg.name)));
            }
            let past: Vec<_> = state.history.iter().map(|a| a.data).collect();
            (leg.uuid, leg.name.clone(), leg.device.clone(), state.generation, state.data, past)
        };
        let Some(device) = device.or(known) else {
            return Err(VolumeError::refused(format!("{name}: is not there")));
        };
        let advice = "replace it instead, which copies everything";
        let Some(found) = read_label(&device)?.filter(|found| !found.overwritten) else {
            return Err(VolumeError::refused(format!("{name}: has no label any more: {advice}")));
        };
        let label = &found.label;
        let ours = label.volume == self.0.volume && label.members[label.slot].uuid == uuid;
        let ancestor = label.data == data || history.contains(&label.data);
        if !ours || !ancestor || label.generation > generation {
            return Err(VolumeError::refused(format!(
                "{name}: is not the leg that left '{}', or was written to elsewhere: {advice}",
                self.0.name
            )));
        }
        Ok(device)
    }

    /// Puts a device into a leg's place and copies everything to it. Without `new` the leg's own
    /// device is used again, whatever it holds.
    ///
    /// # Errors
    /// During a resync; if the leg is the last good copy; if the device cannot be a leg.
    pub fn replace(&self, slot: usize, new: Option<&NewLeg>) -> Result<()> {
        let _admin = self.0.admin.lock();
        let old = {
            let state = self.0.settled()?;
            let leg = state.member(slot)?;
            // A volatile leg is nobody's source: it may come back at any time.
            if !leg.volatile {
                state.check_busy("replacing a leg")?;
            }
            state.check_not_last(slot, "replacing it")?;
            (leg.device.clone(), leg.volatile, leg.name.clone())
        };
        let (old_device, volatile, name) = old;
        let again = match (new, &old_device) {
            (Some(new), _) => new.clone(),
            (None, Some(device)) => NewLeg { device: Arc::clone(device), volatile, force: true },
            (None, None) => {
                return Err(VolumeError::refused(format!("{name}: is not there: name a device")));
            }
        };
        let (leg, info) = leg_on(&again, self.region_bytes())?;
        {
            let mut state = self.0.settled()?;
            if new.is_some() {
                state.check_leg(&leg, &info)?;
            }
            // From here on nothing reads the old leg.
            state.leave(slot, MemberState::Failed);
        }
        self.0.publish()?;
        self.0.put(slot, leg)?;
        if let (Some(_), Some(old)) = (new, old_device) {
            drop(wipe_label(&old));
        }
        Ok(())
    }

    /// Adds a device that takes a failed leg's place by itself.
    ///
    /// # Errors
    /// If there are too many, or the device cannot be a leg.
    pub fn add_spare(&self, new: &NewLeg) -> Result<()> {
        let _admin = self.0.admin.lock();
        let (leg, info) = leg_on(new, self.region_bytes())?;
        {
            let mut state = self.0.settled()?;
            state.check_leg(&leg, &info)?;
            if leg.volatile {
                let name = &leg.name;
                return Err(VolumeError::refused(format!("{name}: a spare must be durable")));
            }
            if state.spares.len() == SPARES_MAX {
                let name = &state.info.name;
                let what = format!("{name}: a mirror has at most {SPARES_MAX} spares");
                return Err(VolumeError::refused(what));
            }
            state.spares.push(Spare {
                uuid: leg.uuid,
                device: leg.device.clone(),
                name: leg.name.clone(),
                bytes: leg.room,
            });
            state.membership += 1;
        }
        self.0.publish()?;
        let state = self.0.state.lock();
        let slot = LEGS_MAX + state.spares.len() - 1;
        let label = state.label(self.0.volume, &self.0.name, slot, &leg, false);
        drop(state);
        Ok(write_label(&new.device, &label)?)
    }

    /// Puts a spare into the place of a durable leg that failed, if there are both.
    pub(super) fn use_spare(&self) -> Result<()> {
        let _admin = self.0.admin.lock();
        let chosen = {
            let mut state = self.0.settled()?;
            let failed = state.legs.iter().position(|leg| {
                leg.as_ref().is_some_and(|l| l.state == MemberState::Failed && !l.volatile)
            });
            let ready = state.spares.iter().position(|s| s.device.is_some());
            match (failed, ready) {
                (Some(slot), Some(at)) => {
                    let spare = state.spares.remove(at);
                    spare.device.map(|device| (slot, device))
                }
                _ => None,
            }
        };
        let Some((slot, device)) = chosen else { return Ok(()) };
        let new = NewLeg { device, volatile: false, force: true };
        let (leg, _) = leg_on(&new, self.region_bytes())?;
        self.0.put(slot, leg)
    }

    /// Makes the volume larger: to `size` bytes, or as large as its legs allow.
    ///
    /// # Errors
    /// If a leg is too small or not there, or the map has no room.
    pub fn grow(&self, size: Option<u64>) -> Result<u64> {
        let _admin = self.0.admin.lock();
        let size = {
            let mut state = self.0.settled()?;
            let now = state.regions.size();
            let size = state.room_to_grow(size)?;
            if size == now {
                return Ok(now);
            }
            state.regions.grow(size);
            state.membership += 1;
            state.describe();
            size
        };
        // The map of the new part is on the legs before a label tells of it.
        self.0.commit()?;
        self.0.publish()?;
        Ok(size)
    }
}

impl State {
    /// The size that the volume can have, whole regions.
    fn room_to_grow(&self, wanted: Option<u64>) -> Result<u64> {
        let (name, now) = (&self.info.name, self.regions.size());
        let legs = || self.legs.iter().flatten();
        if let Some(away) = legs().find(|leg| !leg.is_active()) {
            let what = format!("{}: is not in use; all legs must grow together", away.name);
            return Err(VolumeError::refused(what));
        }
        let records = crate::ondisk::map::RECORDS as u64;
        let region = self.regions.region_bytes();
        let by_map = |leg: &Leg| match leg.volatile {
            true => u64::MAX,
            false => u64::from(leg.map_blocks) * records * region,
        };
        let room = legs().map(|leg| leg.room.min(by_map(leg))).min().unwrap_or(0);
        let most = room - room % region;
        let size = wanted.map_or(most, |size| size - size % region);
        if size > most {
            let least = legs().min_by_key(|leg| leg.room.min(by_map(leg)));
            let least = least.map_or("", |leg| &leg.name);
            return Err(VolumeError::refused(format!(
                "{name}: cannot have {size} bytes: {least} has room for {most}"
            )));
        }
        if size < now {
            return Err(VolumeError::refused(format!(
                "{name}: has {now} bytes; a volume is never made smaller, what it holds would be \
                 cut off"
            )));
        }
        Ok(size)
    }
}
