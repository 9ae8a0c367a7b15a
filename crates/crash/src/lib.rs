//! Record a run, cut the power, recover, judge.
//!
//! All crash tests are one pipeline, [`explore`]: a recorded run ([`explore::Recorded`]) is cut as
//! a [`explore::Plan`] says, a [`explore::System`] recovers from each crash state, and a
//! [`judge::Judge`] compares what is left with what was promised ([`figures::StateFigures`]).
//! docs/crash.md says how a judge and a workload are added.
//!
//! * The states: [`states`] (which crash states a cut may leave), [`media`] (disks that do more
//!   than lose sectors), [`shrink`] (the fewest units that must be lost).
//! * The workloads: [`risk`] (programs on files), [`mixed`] (operations of several tasks),
//!   [`small`] (all sequences of a few operations, with schedules), [`points`] (transaction
//!   points), [`corpus`] (CrashMonkey's bugs and ACE's workloads), [`program`] (any program).
//! * For who counts again: [`found`] (what each recovered file system held).
//! * What judges use: [`ledger`] (what was written and promised), [`unsynced`] (what was not
//!   promised), [`opinion`], [`e2fsck`] and [`kernel`] (what other programs say).

pub mod corpus;
mod delta;
pub mod e2fsck;
mod error;
pub mod explore;
pub mod figures;
pub mod found;
pub mod judge;
pub mod kernel;
pub mod ledger;
pub mod media;
pub mod mixed;
pub mod opinion;
pub mod points;
pub mod program;
pub mod risk;
mod schedule;
pub mod shrink;
pub mod small;
pub mod states;
mod tree;
pub mod unsynced;

pub use error::{CrashError, Result};

/// What each block of a journal begins with (`JBD2_MAGIC_NUMBER`). A block of data that begins so
/// too is written to the log with zeros in its place.
pub const JOURNAL_MAGIC: [u8; 4] = 0xc03b_3998_u32.to_be_bytes();

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
