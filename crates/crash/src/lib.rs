//! Record a run, cut the power, recover, judge.

pub mod judge;
pub mod ledger;
