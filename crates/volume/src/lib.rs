//! Block devices made of block devices: concat, stripe, and mirrors that know which copy is good.
//!
//! Every member carries a label that says which volume it belongs to, so that volumes are assembled
//! from their members in any order and under any name ([`assemble()`]). A volume is a
//! [`BlockDevice`](steadfast_block::BlockDevice) and may be a member of another one.
//!
//! A [`Mirror`] has up to four legs. Its region map limits a resync: after a power cut to regions
//! with writes in flight, and for a leg that comes back to regions that it missed. Its data has an
//! identity, so that an old, blank or foreign leg is never used as a good one. A leg may be
//! volatile (a RAM disk): it serves reads, and durability does not depend on it.
//!
//! The bytes on the members are described in `ondisk` and in FORMAT.md.

#[macro_use]
mod error;

pub mod assemble;
pub mod create;
mod joined;
pub mod member;
pub mod mirror;
pub mod ondisk;
pub mod planted;
pub mod rows;

pub use assemble::{AssembleOptions, AssemblyReport, DEPTH_MAX, Volume, assemble};
pub use create::{
    Contents, MirrorOptions, create_mirror, create_rows, planned_mirror, planned_rows,
};
pub use error::{Result, VolumeError};
pub use mirror::{
    Event, LegError, LegState, LegStatus, Listener, Mirror, MirrorStatus, NewLeg, Pass, Policies,
    ReadPolicy, RegionStatus, ResyncReport, ResyncThrottle, ScrubReport, WritePolicy,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
