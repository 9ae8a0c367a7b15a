//! Record a run, cut the power, recover, judge.

pub mod again;
pub mod corpus;
pub mod cuts;
pub mod e2fsck;
pub mod explore;
pub mod figures;
pub mod judge;
pub mod kernel;
pub mod ledger;
pub mod losses;
pub mod media;
pub mod mixed;
pub mod opinion;
pub mod points;
pub mod program;
pub mod risk;
pub mod shrink;
pub mod small;
pub mod unsynced;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
