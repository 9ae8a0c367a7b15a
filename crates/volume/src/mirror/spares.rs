//! Hot spares: devices that replace a failed leg.

use std::sync::Arc;

use steadfast_block::{BlockDevice, DeviceInfo};

use super::events::Event;
use super::leg::{Leg, Spare};
use super::legs::{NewLeg, leg_on};
use super::state::State;
use super::{Core, Mirror};
use crate::assemble::lineage::own_uuid;
use crate::error::{Result, VolumeError};
use crate::member::{read_label, wipe_label, write_label};
use crate::ondisk::label::{LEGS_MAX, MemberState, SPARES_MAX};

impl Mirror {
    /// Adds a device that takes a failed leg's place by itself.
    ///
    /// # Errors
    /// If there are too many, the device cannot be a leg, or it does not take its label.
    pub fn add_spare(&self, new: &NewLeg) -> Result<()> {
        let _admin = self.0.admin.lock();
        let (leg, info) = leg_on(new, self.region_bytes(), self.0.checksums)?;
        {
            let (mut state, ()) = self.0.checked(|state| state.check_spare(&leg, &info))?;
            state.spares.push(Spare {
                uuid: leg.uuid,
                device: leg.device.clone(),
                name: leg.name.clone(),
                bytes: leg.room,
            });
            state.membership += 1;
        }
        self.0.publish()?;
        let label = {
            let state = self.0.state.lock();
            let at = state.spares.iter().position(|spare| spare.uuid == leg.uuid).unwrap_or(0);
            state.label(self.0.volume, &self.0.name, LEGS_MAX + at, &leg, false)
        };
        if let Err(error) = write_label(&new.device, &label) {
            let mut state = self.0.state.lock();
            state.spares.retain(|spare| spare.uuid != leg.uuid);
            state.membership += 1;
            drop(state);
            self.0.publish()?;
            return Err(error.into());
        }
        Ok(())
    }

    /// Whether [`add_spare`](Self::add_spare) would be refused; nothing is written.
    ///
    /// # Errors
    /// As there.
    pub fn check_add_spare(&self, new: &NewLeg) -> Result<()> {
        let _admin = self.0.admin.lock();
        let (leg, info) = leg_on(new, self.region_bytes(), self.0.checksums)?;
        self.0.would(|state| state.check_spare(&leg, &info))
    }

    /// Takes a spare back, by its name: it waits for nothing any more, and its label is wiped.
    /// Returns whether it was; a device that is not there, or does not take it, keeps its label,
    /// which nobody believes.
    ///
    /// # Errors
    /// If there is no such spare, or two of this name.
    pub fn remove_spare(&self, name: &str) -> Result<bool> {
        let _admin = self.0.admin.lock();
        let spare = {
            let (mut state, at) = self.0.checked(|state| state.spare_named(name))?;
            state.membership += 1;
            state.spares.remove(at)
        };
        // First it is nobody's in the labels of all legs, then it says so itself: a power cut
        // before that leaves a label that names a mirror which does not know it.
        self.0.publish()?;
        let Some(device) = &spare.device else { return Ok(false) };
        // What it was used for since is not touched.
        let ours = self.0.is_label_of(&spare, device).unwrap_or(false);
        Ok(ours && wipe_label(device).is_ok())
    }

    /// Puts a spare into the place of a durable leg that failed, if there are both.
    pub(super) fn use_spare(&self) -> Result<()> {
        let _admin = self.0.admin.lock();
        let Some(slot) = self.0.state.lock().failed_leg() else { return Ok(()) };
        loop {
            let Some(spare) = self.0.settled()?.take_spare() else { return Ok(()) };
            match self.0.activate_spare(slot, &spare) {
                Ok(()) => {
                    let name = spare.name.clone();
                    self.0.state.lock().notify(&Event::SpareUsed { slot, name });
                    return Ok(());
                }
                // It is no spare any more, and the next one is tried.
                Err(_) if self.0.state.lock().stopped().is_none() => {
                    self.0.state.lock().membership += 1;
                    self.0.publish()?;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl State {
    fn check_spare(&self, leg: &Leg, info: &DeviceInfo) -> Result<()> {
        self.check_leg(leg, info, None)?;
        if leg.volatile {
            let name = &leg.name;
            refuse!("{name}: a spare must be durable");
        }
        if self.spares.len() == SPARES_MAX {
            let name = &self.info.name;
            refuse!("{name}: a mirror has at most {SPARES_MAX} spares");
        }
        Ok(())
    }

    fn spare_named(&self, name: &str) -> Result<usize> {
        let all = || self.spares.iter().enumerate().filter(|(_, spare)| spare.name == name);
        let of = &self.info.name;
        match (all().next(), all().nth(1)) {
            (Some((at, _)), None) => Ok(at),
            (None, _) => refuse!("{name}: is no spare of '{of}'"),
            (Some(_), Some(_)) => refuse!("{name}: two spares of '{of}' have this name"),
        }
    }

    /// A durable leg that failed, and that the mirror can be without.
    fn failed_leg(&self) -> Option<usize> {
        let failed = |slot: &usize| {
            let leg = self.legs[*slot].as_ref();
            leg.is_some_and(|l| l.state == MemberState::Failed && !l.volatile)
        };
        // Not one that alone holds something: it may be back.
        (0..LEGS_MAX).find(|slot| failed(slot) && self.held_alone(*slot).is_empty())
    }

    /// The first spare that is there and large enough: the volume may have grown since it was
    /// added. It is none from then on.
    fn take_spare(&mut self) -> Option<Spare> {
        let size = self.regions.size();
        let fits = |spare: &Spare| spare.device.is_some() && spare.bytes >= size;
        let at = self.spares.iter().position(fits)?;
        Some(self.spares.remove(at))
    }
}

impl Core {
    /// Whether the device still carries this spare's label, at both ends: otherwise somebody else
    /// has something there.
    fn is_label_of(&self, spare: &Spare, device: &Arc<dyn BlockDevice>) -> Result<bool> {
        let found = read_label(device)?;
        Ok(found.is_some_and(|found| {
            found.overwritten.is_none()
                && found.label.volume == self.volume
                && own_uuid(&found.label) == spare.uuid
        }))
    }

    /// Makes a spare the leg in this place.
    fn activate_spare(&self, slot: usize, spare: &Spare) -> Result<()> {
        let refused = |what: &str| VolumeError::refused(format!("{}: {what}", spare.name));
        let Some(device) = &spare.device else { return Err(refused("is not there")) };
        if !self.is_label_of(spare, device)? {
            return Err(refused("does not carry the spare's label any more"));
        }
        let region = self.state.lock().regions.region_bytes();
        let new =
            NewLeg { device: Arc::clone(device), volatile: false, partial: false, force: true };
        // OK to truncate: at most REGION_MAX.
        let (mut leg, info) = leg_on(&new, region as u32, self.checksums)?;
        self.state.lock().check_leg(&leg, &info, Some(slot))?;
        // It is known by the same UUID, also if a power cut comes before its label says what it is.
        leg.uuid = spare.uuid;
        self.put(slot, leg)
    }
}
