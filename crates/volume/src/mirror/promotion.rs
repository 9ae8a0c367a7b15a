//! The regions that wait to be promoted to a partial leg (`promote`).

use std::collections::BTreeSet;

/// Most regions that wait for promotion.
const WANTED_MAX: usize = 256;
/// Reads after which a region may be promoted.
const HEAT_MIN: u8 = 2;
/// Regions to promote next.
#[derive(Default)]
pub(crate) struct Promotion {
    wanted: BTreeSet<u32>,
    /// The promotion task runs.
    pub running: bool,
    /// Heat of the coldest candidate in the last promotion: others must be hotter.
    pub floor: u8,
}

impl Promotion {
    /// Whether a region with this heat may be promoted.
    pub fn takes(&self, heat: u8, has_room: impl FnOnce() -> bool) -> bool {
        heat >= HEAT_MIN && (is_hotter(heat, self.floor) || has_room())
    }

    /// Adds regions, up to a limit. Whether the caller is to start the promotion task.
    pub fn request(&mut self, regions: Vec<u32>) -> bool {
        for region in regions {
            if self.wanted.len() < WANTED_MAX {
                self.wanted.insert(region);
            }
        }
        !std::mem::replace(&mut self.running, true)
    }

    /// Takes the hottest of the regions.
    pub fn take_hottest(&mut self, heat: impl Fn(u32) -> u8) -> Option<u32> {
        let hottest = self.wanted.iter().max_by_key(|region| heat(**region)).copied()?;
        self.wanted.remove(&hottest);
        Some(hottest)
    }

    /// The promotion task ends.
    pub fn end(&mut self) {
        self.wanted.clear();
        self.running = false;
    }
}

/// Whether a region with this heat may replace another one.
pub(super) fn is_hotter(heat: u8, than: u8) -> bool {
    heat > than.saturating_add((than / 4).max(1))
}
