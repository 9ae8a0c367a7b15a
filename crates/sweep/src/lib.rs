//! Sweeps: many independent, deterministic cases, run by many processes on many machines.
//!
//! * [`write_plan`] writes a plan: the cases, the shard of each, and what they depend on (program,
//!   inputs), under one fingerprint. [`PlanFile`] reads it.
//! * [`chosen_shard`] finds which shard a process is to run: from an option or from the environment
//!   of the engine that started it.
//! * [`ShardRun`] runs the cases of a shard, and writes a line for each as it ends. A killed run is
//!   resumed from the lines that it left.
//! * [`merge`] verifies the files of all shards against the plan, and hands over the results in the
//!   order of the plan.
//! * [`SweepProgress`] counts what is done, from the files alone.
//!
//! Invariants:
//!
//! 1. The number of shards is the plan's alone. An engine that runs a part of an array tells its
//!    tasks another count.
//! 2. A file of results says of which plan, program and shard it is, and each of its lines has a
//!    sum over the line and the plan's fingerprint: no line can stand in another plan's file.
//! 3. Each attempt writes to a file of its own, which gets its final name when it is whole. So two
//!    attempts at one shard (a node that was thought lost, and its replacement) never write to the
//!    same file, and no lock is needed: on NFS only the rename is relied on.
//! 4. What a merge has handed over counts only after it has returned: the last lines of the files
//!    are verified last.
//! 5. Plans and results are read line by line, in bounded memory, whatever is in them.

mod attempts;
mod choice;
mod compare;
mod digest;
mod error;
mod fault;
mod lines;
mod merge;
mod plan;
mod plan_writer;
mod program;
mod progress;
mod result_lines;
mod result_reader;
mod shard_run;
mod shards;

pub use choice::{ChoiceError, ChosenShard, SHARD_VARIABLES, chosen_shard};
pub use digest::sha256_of_file;
pub use error::{Result, SweepError};
pub use fault::MergeFault;
pub use merge::{MergeTotals, merge};
pub use plan::{PlanFile, PlanHead, PlanInput, PlanProgram, PlannedCase, SweepCase};
pub use plan_writer::{CaseCosts, PlanTotals, write_plan};
pub use progress::{EndedCase, SweepCounts, SweepProgress};
pub use result_lines::{CaseOutcome, Tools};
pub use result_reader::costs;
pub use shard_run::{ShardEnd, ShardRun};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
