//! What tests Steadfast itself: workloads, explorers and judges that no product needs.
//!
//! The pipeline is that of [`steadfast_crash::explore`]: a workload leaves a recorded run, whose
//! crash states recover and are judged.
//!
//! * Workloads with judges of their own: [`mixed`] (operations of several tasks), [`small`] (all
//!   sequences of a few operations, with schedules), [`points`] (transaction points), [`corpus`]
//!   (CrashMonkey's bugs and ACE's workloads).
//! * [`media`]: what disks break that do more than lose sectors. [`losses`]: whole devices that are
//!   lost. [`shrink`]: the fewest operations and writes that still fail.
//! * [`soak`]: long explorations as cases of a sweep, for a night or for many machines.
//! * What calls cost: [`operations`] (names, attributes, small writes), [`durable`] (small calls
//!   that are durable, beside the kernel's).
//!
//! Each is run by the tests of this crate, and by its examples for people: README.md has their
//! commands and results, `cargo xtask bench` runs those that measure.

pub mod corpus;
mod devices;
pub mod durable;
pub mod losses;
pub mod media;
pub mod mixed;
pub mod operations;
pub mod points;
pub mod shrink;
pub mod small;
pub mod soak;
