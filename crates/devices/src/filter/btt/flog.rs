//! The flog ("free list and log"): the last map change of each lane, which also gives the lane's
//! free block.
//!
//! A lane has two entries that are written in turn; sequence numbers 1, 2, 3, 1 ... identify the
//! newer one. An entry is two words of 8 bytes, and at a power cut only words are whole: the second
//! one, with the number, is stored when the first is durable.

use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of a lane's group: four places for entries, of which two are used (kernel:
/// `struct log_group`).
pub(super) const GROUP_BYTES: u64 = 64;
/// Bytes of an entry (kernel: `struct log_entry`).
pub(super) const LOG_BYTES: u64 = 16;
/// Bytes of each half of it.
pub(super) const HALF: usize = 8;

/// An entry as it is on the device.
#[derive(
    FromBytes,
    IntoBytes,
    KnownLayout,
    Immutable,
    Unaligned,
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Default,
)]
#[repr(C)]
pub(super) struct Log {
    /// The sector that was written (`lba`).
    sector: U32,
    /// The block that held it, and is free now (`old_map`).
    old: U32,
    /// The block that holds it (`new_map`).
    new: U32,
    /// `seq`
    sequence: U32,
}

const _: () = assert!(size_of::<Log>() as u64 == LOG_BYTES);

impl Log {
    /// `old` and `new` are map entries.
    pub fn new(sector: u32, old: u32, new: u32, sequence: u32) -> Log {
        Log {
            sector: U32::new(sector),
            old: U32::new(old),
            new: U32::new(new),
            sequence: U32::new(sequence),
        }
    }

    pub fn sector(&self) -> u32 {
        self.sector.get()
    }

    pub fn old(&self) -> u32 {
        self.old.get()
    }

    pub fn block(&self) -> u32 {
        self.new.get()
    }

    pub fn sequence(&self) -> u32 {
        self.sequence.get()
    }
}

/// The sequence number after one of 1 to 3.
pub(super) fn following(sequence: u32) -> u32 {
    sequence % 3 + 1
}

/// A lane's group.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy)]
#[repr(C)]
pub(super) struct Group([Log; 4]);

const _: () = assert!(size_of::<Group>() as u64 == GROUP_BYTES);

/// Which two places of each group are used: 0 and 1 since Linux 4.15, 0 and 2 before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FlogSlots(pub [usize; 2]);

impl FlogSlots {
    pub const NEW: FlogSlots = FlogSlots([0, 1]);
    const OLD: FlogSlots = FlogSlots([0, 2]);

    /// Finds out; groups in which only the first place was ever used fit both. `None`: neither.
    pub fn of(groups: &[Group]) -> Option<FlogSlots> {
        let used = |place: usize| groups.iter().any(|group| group.0[place] != Log::default());
        match (used(1), used(2), used(3)) {
            (_, false, false) => Some(FlogSlots::NEW),
            (false, true, false) => Some(FlogSlots::OLD),
            _ => None,
        }
    }
}

impl Group {
    /// That of a lane that was never used, with its free block.
    pub fn initial(lane: u32, block: u32) -> Group {
        let mut logs = [Log::default(); 4];
        logs[0] = Log::new(lane, block, block, 1);
        Group(logs)
    }

    /// The newer entry, and which of the two places it has; `None` if their numbers do not follow
    /// each other.
    pub fn newest(&self, places: FlogSlots) -> Option<(Log, usize)> {
        let [first, second] = places.0.map(|place| self.0[place]);
        match (first.sequence(), second.sequence()) {
            // The second was never finished.
            (1, 0) => Some((first, 0)),
            (a @ 1..=3, b @ 1..=3) if b == following(a) => Some((second, 1)),
            (a @ 1..=3, b @ 1..=3) if a == following(b) => Some((first, 0)),
            _ => None,
        }
    }

    /// For messages.
    pub fn sequences(&self, places: FlogSlots) -> [u32; 2] {
        places.0.map(|place| self.0[place].sequence())
    }
}
