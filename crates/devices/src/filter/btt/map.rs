//! The map: the block of each sector.

/// Bytes of an entry.
pub(super) const ENTRY_BYTES: u64 = 4;
/// Most blocks that an entry can name.
pub(super) const BLOCKS_MAX: u32 = 1 << 30;

const ZERO: u32 = 1 << 31;
const ERROR: u32 = 1 << 30;
/// Both bits are set where neither of the two is meant.
const NORMAL: u32 = ZERO | ERROR;
const BLOCK: u32 = BLOCKS_MAX - 1;

/// What an entry says of its sector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Never written: its block has the sector's own number, and holds nothing.
    Initial,
    /// Discarded: reads as zeros; the block is still its own.
    Zero,
    /// The block could not be read.
    Error,
    /// The block holds the sector.
    Normal,
}

/// A sector's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub state: State,
    pub block: u32,
}

impl Entry {
    /// The entry that stands at the place of `sector`.
    pub fn decode(raw: u32, sector: u32) -> Entry {
        let state = match raw & NORMAL {
            0 => return Entry { state: State::Initial, block: sector },
            ZERO => State::Zero,
            ERROR => State::Error,
            _ => State::Normal,
        };
        Entry { state, block: raw & BLOCK }
    }

    /// As it is on the device.
    pub fn raw(self) -> u32 {
        match self.state {
            State::Initial => 0,
            State::Zero => ZERO | self.block,
            State::Error => ERROR | self.block,
            State::Normal => NORMAL | self.block,
        }
    }

    /// As the flog keeps an old one: the block, and whether it could not be read.
    pub fn logged(self) -> u32 {
        if self.state == State::Error { ERROR | self.block } else { self.block }
    }
}

/// The block that an old or new entry of the flog names.
pub(super) fn logged_block(raw: u32) -> u32 {
    raw & BLOCK
}
