//! Record a run, cut the power, recover, judge.
//!
//! All crash tests are one pipeline, [`explore`]: a recorded run ([`explore::CutSource`]) is cut as
//! a [`explore::Plan`] says, a [`explore::System`] recovers from each crash state, and a
//! [`judge::Judge`] compares what is left with what was promised ([`figures::StateFigures`]).
//! docs/crash.md says how a judge and a workload are added.
//!
//! * The states: [`states`] (which crash states a cut may leave), [`explore::Decisive`] (the fewest
//!   units that must be lost), [`delta`] (the fewest of anything), [`schedule`] (of several tasks).
//! * The workloads: [`risk`] (programs on files), [`program`] (any program).
//! * Without a file system: [`persistence`] (what the calls alone may leave, by models of others).
//! * For who counts again: [`found`] (what each recovered file system held).
//! * What judges use: [`account`] (what was done and promised), [`unsynced`] (what was not
//!   promised), [`opinion`], [`e2fsck`] and [`kernel`] (what other programs say).

pub mod account;
pub mod delta;
pub mod e2fsck;
mod error;
pub mod explore;
pub mod figures;
pub mod found;
pub mod judge;
pub mod kernel;
pub mod opinion;
pub mod persistence;
#[cfg(feature = "planted-bugs")]
pub mod planted;
pub mod program;
pub mod risk;
pub mod schedule;
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
