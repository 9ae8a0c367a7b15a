//! Effects of a power cut on a medium, beside the loss of whole sectors.
//!
//! The builder of a crash state chooses for each unit in doubt whether it survives; a [`Media`]
//! then determines the contents of the units. So every exploration, with any rule of choice,
//! explores the states of this medium, and the same choices give the same state.
//!
//! A *lost* unit is one that does not survive by this choice.

use std::fmt;
use std::str::FromStr;

use super::memory::WORD;

/// Bytes of a physical sector of a 512e disk, and of a page of flash.
const PHYSICAL: u64 = 4096;

/// A kind of medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Media {
    /// Sectors, as the device says (512 bytes for all models): old or new, in any combination. So a
    /// write of 4 KiB may be shorn.
    #[default]
    Sectors,
    /// Physical sectors of 4 KiB are old or new: a 512e disk or a flash page that keeps more than
    /// the standards ask for.
    Whole,
    /// Sectors may be torn themselves, at any aligned word of 8 bytes, and read without an error.
    Words,
    /// The sector that was being written holds random bytes: the first lost one.
    Garbage,
    /// The same, and it cannot be read until it is written again.
    Unreadable,
    /// A 512e disk rewrites a whole physical sector for a part of it: all 4 KiB around the sector
    /// that was being written are random bytes, what had been durable there too.
    Neighbours,
    /// The cache is written out in the order in which it was filled (eMMC: FIFO flush policy).
    Fifo,
    /// A flush is answered when the order is fixed, not when the data is durable (eMMC: a barrier
    /// in place of a flush). What was written before one is durable before what comes after it.
    /// The last so many bytes are in doubt.
    Barrier {
        /// What the cache holds.
        bytes: u64,
    },
    /// Of one erase block, filled in the order of the writes, everything is lost, flushed or not.
    EraseBlock {
        /// Its size; the last four of them are in danger.
        bytes: u64,
    },
    /// The mapping table is that of an earlier moment: all later writes are lost, flushed or not.
    Mapping {
        /// How far it goes back at the most.
        bytes: u64,
    },
}

/// So many erase blocks are open, or being moved, at once.
const ERASE_BLOCKS: u64 = 4;
/// By default what the host has written since the table was written last.
const MAPPING_BYTES: u64 = 256 << 10;
/// By default: 16 pages of 4 KiB, the least of a block of NAND flash.
const ERASE_BYTES: u64 = 64 << 10;

/// A unit in doubt, while it is settled what becomes of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct UncertainUnit {
    /// Ticks of its request.
    pub submitted: u64,
    pub completed: Option<u64>,
    /// With FUA.
    pub fua: bool,
    /// Bytes that were written before its request.
    pub written_before: u64,
    /// An honest device would have it.
    pub promised: bool,
    /// What the choice says.
    pub chosen: bool,
}

/// What becomes of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnitAfterCut {
    Old,
    New,
    Garbage,
}

impl Media {
    /// All kinds, with the words that name them and what each is.
    pub const ALL: [(&'static str, Media); 10] = [
        ("sectors", Media::Sectors),
        ("whole", Media::Whole),
        ("words", Media::Words),
        ("garbage", Media::Garbage),
        ("unreadable", Media::Unreadable),
        ("neighbours", Media::Neighbours),
        ("fifo", Media::Fifo),
        ("barrier", Media::Barrier { bytes: MAPPING_BYTES }),
        ("erase-block", Media::EraseBlock { bytes: ERASE_BYTES }),
        ("mapping", Media::Mapping { bytes: MAPPING_BYTES }),
    ];

    /// Bytes that are old or new, of a device that says so of `atomic`.
    pub fn unit(self, atomic: u32) -> u32 {
        match self {
            Media::Words => atomic.min(WORD),
            Media::Whole => atomic.max(PHYSICAL as u32),
            _ => atomic,
        }
    }

    /// Of how many bytes, the last that were written, also what was promised may be lost.
    pub(super) fn at_risk_bytes(self) -> Option<u64> {
        match self {
            Media::Barrier { bytes } | Media::Mapping { bytes } => Some(bytes),
            Media::EraseBlock { bytes } => Some(bytes.saturating_mul(ERASE_BLOCKS)),
            _ => None,
        }
    }

    /// Whether what becomes of a unit is more than the choice.
    pub(super) fn is_plain(self) -> bool {
        matches!(self, Media::Sectors | Media::Whole | Media::Words)
    }

    /// The range that is garbage where a unit is.
    pub(super) fn spoiled(self, offset: u64, len: u64) -> (u64, u64) {
        match self {
            Media::Neighbours => {
                let from = offset / PHYSICAL * PHYSICAL;
                (from, (offset + len).next_multiple_of(PHYSICAL) - from)
            }
            _ => (offset, len),
        }
    }

    /// What becomes of the units in doubt, in the order of submission. `flushes`: when the
    /// device's flushes were submitted, ascending.
    pub(super) fn settle(self, units: &[UncertainUnit], flushes: &[u64]) -> Vec<UnitAfterCut> {
        let left = |there: bool| if there { UnitAfterCut::New } else { UnitAfterCut::Old };
        match self {
            Media::Sectors | Media::Whole | Media::Words => {
                units.iter().map(|unit| left(unit.chosen)).collect()
            }
            Media::Garbage | Media::Unreadable | Media::Neighbours => {
                let first = units.iter().position(|unit| !unit.chosen);
                let one = |(n, unit): (usize, &UncertainUnit)| match Some(n) == first {
                    true => UnitAfterCut::Garbage,
                    false => left(unit.chosen),
                };
                units.iter().enumerate().map(one).collect()
            }
            Media::Fifo | Media::Mapping { .. } => {
                let first = units.iter().position(|unit| !unit.chosen).unwrap_or(units.len());
                (0..units.len()).map(|n| left(n < first)).collect()
            }
            Media::Barrier { .. } => {
                let mut lost_from = u64::MAX;
                let one = |unit: &UncertainUnit| {
                    let there = unit.chosen && unit.submitted <= lost_from;
                    if !there {
                        lost_from = lost_from.min(unit.fenced_at(flushes));
                    }
                    left(there)
                };
                units.iter().map(one).collect()
            }
            Media::EraseBlock { bytes } => {
                let block = |unit: &UncertainUnit| unit.written_before / bytes.max(1);
                let first = units.iter().find(|unit| !unit.chosen).map(block);
                let one = |unit: &UncertainUnit| {
                    left(Some(block(unit)) != first && (unit.promised || unit.chosen))
                };
                units.iter().map(one).collect()
            }
        }
    }
}

impl UncertainUnit {
    /// The first tick after which nothing is there if this is not.
    fn fenced_at(&self, flushes: &[u64]) -> u64 {
        let Some(completed) = self.completed else { return u64::MAX };
        if self.fua {
            return completed;
        }
        let next = flushes.partition_point(|flush| *flush <= completed);
        flushes.get(next).copied().unwrap_or(u64::MAX)
    }
}

fn all_names() -> String {
    let names = Media::ALL.map(|(name, _)| name);
    let (last, others) = names.split_last().unwrap_or((&"", &[]));
    format!("{} or {last}", others.join(", "))
}

/// Why a text names no medium.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MediaError {
    /// There is none of that name.
    #[error("medium {name} is unknown: choose {}", all_names())]
    Unknown {
        /// As given.
        name: String,
    },
    /// What stands after `=` is no size.
    #[error("{0}: a size in KiB, 1 to 1048576")]
    Size(String),
    /// The medium has none.
    #[error("{0} has no size")]
    NoSize(&'static str),
}

impl FromStr for Media {
    type Err = MediaError;

    /// A kind by its name; of those that have a size another one after `=`, in KiB.
    fn from_str(text: &str) -> Result<Self, MediaError> {
        let (name, size) = text.split_once('=').map_or((text, None), |(n, s)| (n, Some(s)));
        let named = Media::ALL.into_iter().find(|(n, _)| *n == name);
        let (name, media) = named.ok_or_else(|| MediaError::Unknown { name: text.to_owned() })?;
        let Some(size) = size else { return Ok(media) };
        let kib: Option<u64> = size.parse().ok().filter(|kib| (1..=1 << 20).contains(kib));
        let bytes = kib.ok_or_else(|| MediaError::Size(text.to_owned()))? << 10;
        match media {
            Media::Barrier { .. } => Ok(Media::Barrier { bytes }),
            Media::EraseBlock { .. } => Ok(Media::EraseBlock { bytes }),
            Media::Mapping { .. } => Ok(Media::Mapping { bytes }),
            _ => Err(MediaError::NoSize(name)),
        }
    }
}

impl fmt::Display for Media {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = std::mem::discriminant(self);
        let named = Media::ALL.iter().find(|(_, media)| std::mem::discriminant(media) == kind);
        let name = named.map_or("", |(name, _)| name);
        match self {
            Media::Barrier { bytes } | Media::EraseBlock { bytes } | Media::Mapping { bytes } => {
                write!(f, "{name}={}", bytes >> 10)
            }
            _ => f.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(chosen: &str) -> Vec<UncertainUnit> {
        let unit = |(n, c): (usize, char)| UncertainUnit {
            submitted: 10 * n as u64,
            completed: Some(10 * n as u64 + 1),
            fua: false,
            written_before: 4096 * n as u64,
            promised: true,
            chosen: c == '1',
        };
        chosen.chars().enumerate().map(unit).collect()
    }

    fn settled(media: Media, chosen: &str, flushes: &[u64]) -> String {
        let letter = |left: UnitAfterCut| match left {
            UnitAfterCut::Old => '0',
            UnitAfterCut::New => '1',
            UnitAfterCut::Garbage => 'x',
        };
        media.settle(&units(chosen), flushes).into_iter().map(letter).collect()
    }

    #[test]
    fn each_kind_leaves_what_it_says() {
        assert_eq!(settled(Media::Sectors, "10110", &[]), "10110");
        assert_eq!(settled(Media::Garbage, "10110", &[]), "1x110");
        assert_eq!(settled(Media::Fifo, "11011", &[]), "11000");
        assert_eq!(settled(Media::Mapping { bytes: 1 << 20 }, "11011", &[]), "11000");
        // A flush after the third unit: the fourth and fifth wait for the second.
        let barrier = Media::Barrier { bytes: 1 << 20 };
        assert_eq!(settled(barrier, "10111", &[25]), "10100");
        assert_eq!(settled(barrier, "10111", &[5]), "10111");
        // Two units a block: with the third, which is lost, goes the fourth; the first is promised.
        assert_eq!(settled(Media::EraseBlock { bytes: 8192 }, "110101", &[]), "110011");
    }

    #[test]
    fn a_kind_is_known_by_its_name() {
        for (name, media) in Media::ALL {
            assert_eq!(name.parse(), Ok(media));
            assert_eq!(media.to_string().parse(), Ok(media));
        }
        assert_eq!("mapping=64".parse(), Ok(Media::Mapping { bytes: 64 << 10 }));
        assert!("fifo=3".parse::<Media>().is_err() && "tape".parse::<Media>().is_err());
    }
}
