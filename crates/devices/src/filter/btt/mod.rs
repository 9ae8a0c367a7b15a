//! Sector namespaces: a block translation table (BTT) over memory.
//!
//! At a power cut memory keeps only 8-byte words whole. A BTT makes sectors that never tear: a
//! write goes to a free block, and when the block is complete the sector's map entry is changed in
//! one store. The layout is the published one of UEFI ("Block Translation Table (BTT) Layout") and
//! of Linux (`Documentation/driver-api/nvdimm/btt.rst`): the kernel and `ndctl` read what is
//! written here, and the other way round.
//!
//! A device is divided into arenas of at most 512 GiB. Each has, from its start on:
//!
//! | part | what it is | file |
//! |---|---|---|
//! | info block | what the arena is, 4 KiB | `info.rs` |
//! | data | blocks: one for each sector, and `nfree` more | `layout.rs` |
//! | map | of each sector the block that holds it, 4 bytes | `map.rs` |
//! | flog | of each lane its last change of the map, and its free block | `flog.rs` |
//! | copy | the info block again | `find.rs` |
//!
//! # Invariants
//!
//! 1. Each block is named by one map entry or is the free block of one lane, never both, never
//!    twice. What is free is written; what the map names is not.
//! 2. A write has three steps, each durable before the next begins: the data, with the first half
//!    of the lane's older flog entry; the second half of it, whose sequence number makes it the
//!    lane's newest; the map. The second step is the moment at which the write has happened.
//! 3. A sector's map entry is changed only under its lock, which is held over steps two and three,
//!    and over the part of the first that writes to the flog.
//! 4. A free block is not written while a reader still uses it.
//!
//! Recovery follows from these: where a lane's newest entry names the old block of a sector, and
//! the map still names it too, the map gets the new one.
//!
//! The map stays on the device: memory is taken for the lanes only, some hundred bytes each.

mod arena;
mod check;
mod device;
mod error;
mod find;
mod flog;
mod format;
mod info;
mod io;
mod layout;
mod map;
pub mod planted;
mod reading;
mod recover;
#[cfg(test)]
mod tests;

pub use check::{Problem, Report, check, check_as};
pub use device::{Btt, open, open_as};
pub use find::{ArenaInfo, BttInfo, probe, probe_as, probe_copy};
pub use format::{Options, format, restore};
pub use info::Version;
