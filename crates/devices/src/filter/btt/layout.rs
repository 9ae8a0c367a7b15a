//! Where the parts of an arena are.

use super::flog::GROUP_BYTES;
use super::info::PAGE;
use super::map::ENTRY_BYTES;

/// The largest arena (kernel: `ARENA_MAX_SIZE`).
pub(super) const ARENA_BYTES_MAX: u64 = 1 << 39;
/// The smallest arena (kernel: `ARENA_MIN_SIZE`); less at the end of a device is not used.
pub(super) const ARENA_BYTES_MIN: u64 = 1 << 24;

/// The numbers of an info block. Offsets are bytes from the arena's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    /// Bytes of a sector.
    pub sector: u32,
    pub sectors: u32,
    /// Bytes of a block, in which a sector is kept.
    pub block: u32,
    pub blocks: u32,
    /// Each has one free block.
    pub lanes: u32,
    /// Where the next arena begins; 0 if there is none.
    pub next: u64,
    pub data: u64,
    pub map: u64,
    pub flog: u64,
    pub copy: u64,
}

impl Layout {
    /// That of a new arena of `size` bytes, as Linux divides it. `None` if the lanes leave no room
    /// for sectors.
    pub fn new(size: u64, sector: u32, lanes: u32, last: bool) -> Option<Layout> {
        // The copy of the info block is at the end of the last whole page.
        let whole = size - size % PAGE;
        let flog_bytes = (u64::from(lanes) * GROUP_BYTES).next_multiple_of(PAGE);
        let left = whole.checked_sub(2 * PAGE + flog_bytes)?;
        // A page is kept for rounding up the map.
        let blocks = left.checked_sub(PAGE)? / (u64::from(sector) + ENTRY_BYTES);
        let sectors = blocks.checked_sub(u64::from(lanes)).filter(|sectors| *sectors > 0)?;
        let map_bytes = (sectors * ENTRY_BYTES).next_multiple_of(PAGE);
        let map = PAGE + left - map_bytes;
        Some(Layout {
            sector,
            // OK to truncate: at most 2^39 / 512.
            sectors: sectors as u32,
            block: sector,
            blocks: blocks as u32,
            lanes,
            next: if last { 0 } else { size },
            data: PAGE,
            map,
            flog: map + map_bytes,
            copy: map + map_bytes + flog_bytes,
        })
    }

    /// Bytes from the arena's start to the next one's, or to its own end.
    pub fn bytes(&self) -> u64 {
        if self.next == 0 { self.copy + PAGE } else { self.next }
    }

    /// Where a block is.
    pub fn block_at(&self, block: u32) -> u64 {
        self.data + u64::from(block) * u64::from(self.block)
    }

    /// Where a sector's map entry is.
    pub fn entry_at(&self, sector: u32) -> u64 {
        self.map + u64::from(sector) * ENTRY_BYTES
    }

    /// Where a lane's flog entries are.
    pub fn group_at(&self, lane: u32) -> u64 {
        self.flog + u64::from(lane) * GROUP_BYTES
    }
}

/// How a range of `size` bytes is divided into arenas: the start and size of each. What is too
/// short for one is left over.
pub(super) fn arenas(size: u64, arena_max: u64) -> Vec<(u64, u64)> {
    let mut arenas = Vec::new();
    let mut at = 0;
    while size - at >= ARENA_BYTES_MIN {
        let bytes = arena_max.min(size - at);
        arenas.push((at, bytes));
        at += bytes;
    }
    arenas
}
