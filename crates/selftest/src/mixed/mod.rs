//! A mixed workload of names and data, and what must be left of it after a power cut.
//!
//! Several tasks work at the same time, each in a folder of its own, so that the operations of
//! each have one order. Every operation is applied to a model too. After a cut at tick `t`:
//!
//! * **Names** (with a journal): the folder of each task is what it was after some prefix of the
//!   task's operations, links, targets and permissions included. The prefix holds every operation
//!   that an acknowledged fsync, O_SYNC write or sync promised: ext4's metadata commits in order.
//! * **Data**: each byte comes from an operation on that place of that file that is not older
//!   than the newest one that was promised; or is zero, if no promise or a later truncation allows
//!   it. With data=writeback (`stale_allowed`) only the promised bytes are judged.
//! * **Transaction points** (`exact`): the whole file system, all tasks together, names and data,
//!   is exactly what it was at the last transaction point made before `t`, or at one that was
//!   being made.

mod case;
mod content;
mod contents;
mod generate;
pub(crate) mod judge;
pub(crate) mod machine;
mod mirrored;
mod points;
pub(crate) mod run;
pub(crate) mod seen;
mod words;

pub use case::{Case, CaseDescription};
pub use machine::{MixedMachine, Setup};
pub use mirrored::{Memory, MirrorDisk};
pub use run::Script;
