//! IOzone: throughput mode, and single and auto mode ([`matrix`]).
//!
//! ```text
//! options   the command line, as getopt(3) and IOzone read it
//! plan      which tests run, in which order, and what each child does in them
//! engine    the parent: children started, timed and joined, test after test
//! child     one child in one test: open, ready, go, records, fsync, close
//! file      the calls on a file, as child and matrix make them
//! gate      how children and parent meet at the start
//! stonewall who is still counted, and the arithmetic of it
//! random    the order of the random tests
//! data      what is written, and the check of what is read
//! observer  who wants to know of every promise
//! latency   percentiles
//! results   what came out, for programs
//! report    what came out, in IOzone's layout
//! ```
//!
//! What IOzone does is taken from IOzone 3.487 and said where it matters; where we differ on
//! purpose, `docs/iozone.md` has the list and the reasons.

mod child;
mod data;
mod engine;
mod file;
mod gate;
pub mod latency;
pub mod latency_files;
pub mod matrix;
pub mod observer;
pub mod options;
pub mod plan;
pub mod random;
pub mod report;
pub mod results;
mod stonewall;

pub use engine::{RunError, run};
pub use observer::{Action, Call, Observer};
pub use options::{CommandLine, Options, UsageError, parse};
pub use plan::Test;
pub use results::{ChildResult, IozoneResults, Surroundings, TestResult, ThroughputRun};
