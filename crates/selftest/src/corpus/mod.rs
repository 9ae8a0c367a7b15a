//! Workloads with names: the bugs that CrashMonkey's authors collected ([`KNOWN`]), and the spaces
//! of workloads that they explored ([`ace`]), on any file system, with one judge.
//!
//! * A [`Workload`] is a list of [operations](steadfast_suite::operation), some of which make
//!   something durable.
//! * A [`Subject`] is a file system: it records a run, and has a
//!   [`System`](steadfast_crash::explore::System) that recovers. [`Own`] is Steadfast's,
//!   [`InCorpus`] one of the kernel's.
//! * [`try_out`] does it, by the pipeline of [`explore`](mod@steadfast_crash::explore). What is
//!   judged is written at the head of `judge.rs`; beside that, the file system must be undamaged,
//!   and it must be possible to make a file in each directory and to remove everything.

pub mod ace;
mod explore;
mod foreign;
mod judge;
mod known;
mod models;
mod own;
mod peer;
mod run;
mod step;

pub use explore::{CorpusRun, Player, Subject, WorkloadJudge, WorkloadReport, try_out, try_out_by};
pub use known::{KNOWN, KnownBug};
pub use models::{ForbiddenStates, by_models};
pub use own::{Own, OwnKind};
pub use peer::InCorpus;
pub use step::Workload;
