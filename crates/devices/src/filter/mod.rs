//! Filters: devices over a device. Each takes an `Arc<dyn BlockDevice>` and is one.
//!
//! A filter does not offer the [direct memory](steadfast_block::DirectMemory) of the device below:
//! accesses would bypass the filter. Only [`Record`] does, which records it, and [`fsdax`], whose
//! memory is that of the device below at an offset.

pub mod btt;
pub mod cache;
pub mod fault;
pub mod fsdax;
mod namespace;
pub mod read_only;
pub mod record;
pub mod schedule;
pub mod stat;
pub mod window;

pub use cache::{CacheSettings, Cut, WriteCache};
pub use fault::{Effect, Fault, FaultRule, Faults, Ops};
pub use namespace::NamespaceError;
pub use read_only::ReadOnly;
pub use record::{CutEffect, Durability, RebuildError, Record, RecordLog, Recording};
pub use schedule::Scheduler;
pub use stat::{Stat, StatCounters};
pub use window::Window;
