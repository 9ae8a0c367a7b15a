//! Mirrors: the same data on up to four legs, with a record of which leg holds which region.
//!
//! # What it promises
//!
//! 1. A write is acknowledged when every active leg has completed it. A leg that failed was dropped
//!    before, durably. If no durable leg has completed it, the write fails.
//! 2. A flush, and a write with FUA, is acknowledged only when every durable leg has completed it.
//! 3. A volatile leg is never the source of a resync while a durable copy exists, and is not
//!    trusted after a restart.
//! 4. Regions that were never written, or were discarded, read as zeros from every leg.
//! 5. Repeated reads return the same data until it is written, also across power cuts and resyncs.
//!
//! # How
//!
//! The volume is divided into regions. For each region the map says whether a write may be in
//! flight and on which legs it is stale (`regions`, `ondisk/map.rs`). The map is durable before the
//! write that it covers (`write`). Labels contain the members and the newest generation (`publish`,
//! `assemble`). One mechanism makes legs complete again (`resync`). Mirrors with checksums have a
//! checksum of each block (`checksums`), store it next to the map (`area`), and return only
//! verified data (`verify`).
//!
//! # Opening and closing
//!
//! Assembly writes nothing. Its decisions are written before the first change, or before the first
//! read of an out-of-sync region (`commit_assembly`). So a read-only command and a refused command
//! change nothing. The opener closes the mirror ([`Mirror::close`]). Dropping the last handle does
//! so too, but cannot report an error.

mod area;
mod cells;
mod checksums;
mod close;
mod commit_assembly;
mod core;
mod discard;
mod events;
mod flush;
mod grow;
mod handle;
mod heat;
mod lanes;
mod last;
mod leg;
mod legs;
mod lockless;
mod metadata;
mod out_of_sync;
pub(crate) mod partial;
mod plan;
pub(crate) mod policy;
mod promote;
mod promotion;
mod publish;
pub(crate) mod ranges;
mod read;
pub(crate) mod regions;
mod replace;
mod resync;
mod scrub;
mod spares;
mod state;
mod status;
mod table;
mod verify;
mod write;

pub(crate) use self::core::{Core, describe};
pub(crate) use checksums::MirrorChecksums;
pub use events::{Event, LegError, Listener};
pub use handle::Mirror;
pub use leg::Counters;
pub(crate) use leg::{Leg, Spare, bit, slots};
pub use legs::NewLeg;
pub(crate) use legs::{ONE_PARTIAL, clear_map, leg_on, partial_leg};
pub(crate) use policy::check_policies;
pub use policy::{Pass, Policies, ReadPolicy, WritePolicy};
pub use resync::{ResyncReport, ResyncThrottle};
pub use scrub::ScrubReport;
pub(crate) use state::{AssemblyChanges, State};
pub use status::{LegState, LegStatus, MirrorStatus, RegionStatus};
pub(crate) use table::Legs;
