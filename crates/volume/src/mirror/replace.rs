//! Replacing a leg by another device, or by its own.
//!
//! The rules are those of `legs`. The refusal can be tested separately: a device that must be
//! written before (the label of a concat that becomes the leg) is not written when the replacement
//! is refused.

use std::sync::Arc;

use steadfast_block::{BlockDevice, DeviceInfo};

use super::Mirror;
use super::leg::Leg;
use super::legs::{NewLeg, leg_on};
use super::state::State;
use crate::error::Result;
use crate::member::wipe_label;
use crate::ondisk::Layout;
use crate::ondisk::label::MemberState;

type Device = Arc<dyn BlockDevice>;

/// What is refused where it would take the last good copy of anything.
const REPLACING: &str = "replacing it";

impl State {
    /// Refuses to have a leg replaced; by `leg`, where that is known.
    fn check_replacing(
        &self,
        slot: usize,
        leg: Option<(&Leg, &DeviceInfo)>,
        lose: bool,
    ) -> Result<()> {
        let now = self.member(slot)?;
        // A volatile leg is no source: it may come back at any time.
        if !now.volatile {
            self.check_busy("replacing a leg")?;
        }
        self.check_not_only(slot, REPLACING)?;
        if !lose {
            self.check_going(slot, REPLACING, lose)?;
        }
        leg.map_or(Ok(()), |(leg, info)| self.check_leg(leg, info, Some(slot)))
    }
}

impl Mirror {
    /// Puts a device into a leg's place and copies everything to it. Without `new` the leg's own
    /// device is used again, whatever it holds.
    ///
    /// # Errors
    /// During a resync; if the leg is the last good copy of anything, also if it is not there; if
    /// the device cannot be a leg.
    pub fn replace(&self, slot: usize, new: Option<&NewLeg>) -> Result<()> {
        self.replace_leg(slot, new, false).map(drop)
    }

    /// The same if the leg is the only holder of a region: the region is given up, and reads as
    /// zeros from then on. Returns the bytes given up.
    ///
    /// # Errors
    /// During a resync; if no other durable leg is in use; if the device cannot be a leg.
    pub fn replace_and_lose(&self, slot: usize, new: Option<&NewLeg>) -> Result<u64> {
        self.replace_leg(slot, new, true)
    }

    /// Whether what comes into a partial leg's place can be nothing else: memory that is too small.
    fn only_fits(&self, new: &NewLeg) -> bool {
        let info = new.device.info();
        let volatile = new.volatile || info.unfit_to_persist().is_some();
        let room = Layout::of_leg(info.size, self.region_bytes(), self.0.checksums).room(info.size);
        volatile && room < self.0.state.lock().regions.size()
    }

    /// Whether [`replace`](Self::replace) would be refused, or with `lose`
    /// [`replace_and_lose`](Self::replace_and_lose); nothing is written. For who has to write to
    /// the device before. Of a new leg that is put there by force only the description is asked
    /// for, so it may be one that is still to be made.
    ///
    /// # Errors
    /// As there.
    pub fn check_replace(&self, slot: usize, new: Option<&NewLeg>, lose: bool) -> Result<()> {
        let _admin = self.0.admin.lock();
        let (new_leg, _) = self.replacing(slot, new)?;
        self.replacement(slot, &new_leg, lose).map(drop)
    }

    /// What comes into a leg's place, and the leg's own device.
    fn replacing(&self, slot: usize, new: Option<&NewLeg>) -> Result<(NewLeg, Option<Device>)> {
        let (old, volatile, partial, name) = {
            let state = self.0.state.lock();
            let leg = state.member(slot)?;
            (leg.own_device().cloned(), leg.volatile, leg.partial, leg.name.clone())
        };
        let new_leg = match (new, &old) {
            (Some(new), _) => {
                NewLeg { partial: new.partial || partial && self.only_fits(new), ..new.clone() }
            }
            (None, Some(device)) => {
                NewLeg { device: Arc::clone(device), volatile, partial, force: true }
            }
            (None, None) => refuse!("{name}: is not there: name a device"),
        };
        Ok((new_leg, old))
    }

    /// The leg that comes into the place of another one, if it may.
    fn replacement(&self, slot: usize, new_leg: &NewLeg, lose: bool) -> Result<(Leg, DeviceInfo)> {
        self.0.would(|state| state.check_replacing(slot, None, lose))?;
        let (leg, info) = leg_on(new_leg, self.region_bytes(), self.0.checksums)?;
        self.0.would(|state| state.check_replacing(slot, Some((&leg, &info)), lose))?;
        Ok((leg, info))
    }

    fn replace_leg(&self, slot: usize, new: Option<&NewLeg>, lose: bool) -> Result<u64> {
        let _admin = self.0.admin.lock();
        let (new_leg, old) = self.replacing(slot, new)?;
        let (leg, info) = self.replacement(slot, &new_leg, lose)?;
        let check = |state: &State| state.check_replacing(slot, Some((&leg, &info)), lose);
        let mut lost = 0;
        if lose {
            drop(self.0.checked(check)?);
            lost = self.0.give_up(slot)?;
        }
        {
            let (mut state, ()) = self.0.checked(|state| {
                check(state)?;
                state.check_going(slot, REPLACING, lose)
            })?;
            // From here on nothing reads the old leg.
            state.leave(slot, MemberState::Failed);
        }
        self.0.publish()?;
        self.0.drain()?;
        self.0.put(slot, leg)?;
        if let (Some(_), Some(old)) = (new, old)
            && !Arc::ptr_eq(&old, &new_leg.device)
        {
            drop(wipe_label(&old));
        }
        Ok(lost)
    }
}
