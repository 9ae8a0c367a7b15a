//! The smallest workloads, exhaustively: every sequence of a few operations, every cut, and of
//! each cut every legal state within a bound.
//!
//! Systematic exploration of small workloads finds most crash faults that large ones show
//! (bounded black-box crash testing: Mohan et al., "Finding Crash-Consistency Bugs with Bounded
//! Black-Box Crash Testing", OSDI 2018). Here: [`Sequence`] enumerates the workloads,
//! [`SmallMachine`] records each on a file system of 4 MiB that is formatted once,
//! `states::versions` enumerates what a cut may leave, and [`explore`](explore::explore) lets every
//! state that is new recover, and judges it with the [mixed](crate::mixed) workload's model.
//!
//! [`explore_schedules`] does the same with tasks side by side, in every schedule with a few
//! preemptions.
//!
//! States that recovery cannot distinguish recover once ([`Pruning`]); [`explore_twice`] compares
//! with what each by itself shows.
//!
//! A state is new if no sequence with the same beginning has left the same bytes with the same
//! promises: sequences share most of what precedes their last operation.

pub mod explore;
mod explored;
mod families;
mod machine;
mod prune;
pub mod quick;
mod schedules;
mod sequence;
mod twice;

pub use explore::{SequenceReport, explore};
pub use machine::SmallMachine;
pub use prune::Pruning;
pub use schedules::{
    ComparisonReport, Prune, Schedule, ScheduleReport, ScheduledCase, Schedules, ShrunkCase,
    TaskSequences, compare_pruning, explore_schedules,
};
pub use sequence::{Sequence, Start};
pub use twice::{PruningCheck, TimeSpent, explore_twice};
