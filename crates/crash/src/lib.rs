//! Record a run, cut the power, recover, judge.

pub mod corpus;
mod delta;
pub mod e2fsck;
mod error;
pub mod explore;
pub mod figures;
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

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
