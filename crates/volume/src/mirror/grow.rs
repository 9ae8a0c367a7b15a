//! Growing a mirror.

use super::Mirror;
use super::leg::Leg;
use super::state::State;
use crate::error::Result;

impl Mirror {
    /// Makes the volume larger: to `size` bytes, or as large as its legs allow.
    ///
    /// # Errors
    /// If a leg is too small or not there, or the map has no room.
    pub fn grow(&self, size: Option<u64>) -> Result<u64> {
        let _admin = self.0.admin.lock();
        let size = {
            let (mut state, size) = self.0.checked(|state| state.room_to_grow(size))?;
            if size == state.regions.size() {
                return Ok(size);
            }
            state.legs.invalidate();
            state.regions.grow(size);
            let State { regions, checksums, .. } = &mut *state;
            if let Some(known) = checksums {
                known.grow(regions);
            }
            state.membership += 1;
            state.describe();
            size
        };
        // The map of the new part is on the legs before a label covers it.
        self.0.commit()?;
        self.0.publish()?;
        Ok(size)
    }
}

impl State {
    /// The size that the volume can have, whole regions.
    fn room_to_grow(&self, wanted: Option<u64>) -> Result<u64> {
        let (name, now) = (&self.info.name, self.regions.size());
        // A partial leg holds what it can.
        let legs = || self.legs.iter().flatten().filter(|leg| !leg.partial);
        if let Some(away) = legs().find(|leg| !leg.is_active()) {
            refuse!("{}: is not in use; all legs must grow together", away.name);
        }
        let region = self.regions.region_bytes();
        let by_map = |leg: &Leg| self.regions_max(leg) * region;
        let room = legs().map(|leg| leg.room.min(by_map(leg))).min().unwrap_or(0);
        let most = room - room % region;
        let size = wanted.unwrap_or(most);
        if size > most {
            let least = legs().min_by_key(|leg| leg.room.min(by_map(leg)));
            let least = least.map_or("", |leg| &leg.name);
            refuse!("{name}: cannot have {size} bytes: {least} has room for {most}");
        }
        if !size.is_multiple_of(region) {
            // There is room for the larger one: `most` is whole regions.
            let less = size - size % region;
            let more = less + region;
            refuse!(
                "{name}: {size} bytes are not whole regions of {region}: {less} or {more} would be"
            );
        }
        if size < now {
            refuse!(
                "{name}: has {now} bytes; a volume is never made smaller, what it holds would be \
                 cut off"
            );
        }
        Ok(size)
    }
}
