//! Discards: whole regions become unwritten.

use std::ops::Range;
use std::sync::Arc;

use steadfast_block::{Request, Result};

use super::Core;
use super::leg::{Leg, send_all};
use crate::ondisk::map::Region;

impl Core {
    /// Informs the legs that regions are not needed; they are unwritten from then on. Parts of
    /// regions stay as they are.
    pub(super) fn discard_slowly(self: &Arc<Self>, offset: u64, len: u64) -> Result<()> {
        let state = self.settled_for_writes()?;
        let regions = state.regions.inside(offset, len);
        if regions.is_empty() {
            return Ok(());
        }
        let (regions, ticket) = self.take_regions(state, regions);
        let done = self.discard_held(&regions);
        self.release(ticket);
        done
    }

    pub(super) fn discard_held(&self, regions: &Range<u32>) -> Result<()> {
        {
            let mut state = self.settled_for_writes()?;
            for region in regions.clone() {
                state.regions.set(region, Region::UNWRITTEN);
                if let Some(known) = state.checksums.as_mut() {
                    known.forget(region);
                }
            }
            if let Some((_, frames)) = state.legs.frames() {
                regions.clone().for_each(|r| frames.vacate(r));
            }
        }
        // Before the legs forget: a cut in between must not find the region to be read.
        self.commit()?;
        let requests = {
            let state = self.state.lock();
            let (start, _) = state.regions.bytes_of(regions.start);
            let (last, bytes) = state.regions.bytes_of(regions.end - 1);
            let len = last + bytes - start;
            let discard = |leg: &Leg| Request::Discard { offset: leg.data_start + start, len };
            state.legs.requests(u8::MAX, discard)
        };
        // Whatever a leg holds there by now does not matter.
        drop(send_all(requests));
        Ok(())
    }
}
