//! Bugs planted in the stack are found by cutting the power; without them nothing is found in the
//! same runs. Each is an order of writes and flushes that the sources argue for, or a fault that a
//! file system once had; see `steadfast_journal::Bug` and `steadfast_ext4::Bug`.
//!
//! `--nocapture` prints which run, or which part of the quick exploration, and which cut finds
//! each; of runs also the command that reproduces the cut, and the small case.

// For people who look at what was found.
#![allow(clippy::print_stdout)]

mod pruning;
mod quick;
mod runs;
mod schedules;
