//! The language that tests of file systems are written in, and judges of a mounted one: of the
//! kernel's, of Steadfast's, or of another server's.
//!
//! An [`operation`] is applied to any file system, and to the model of [`names`].
//!
//! A [`Target`] is an ext4 image mounted by the kernel, by `steadfast mount` or by fuse2fs. The
//! [`conformance`] cases run on a mounted folder and leave transcripts, which are compared between
//! two targets: the kernel's ext4 is the measure, not our reading of POSIX. [`stress`] does random
//! operations and knows their results; [`traps`] are those of external journals. Nothing
//! here prints.

pub mod bench;
pub mod conformance;
mod error;
pub mod kernel_ext4;
pub mod mounted;
pub mod names;
mod namespace;
pub mod operation;
mod program;
pub mod programs;
pub mod promises;
mod raw;
pub mod stress;
mod target;
pub mod traps;

pub use error::{Result, SuiteError};
pub use namespace::OtherNamespace;
pub use program::{ended, output, output_of, run, run_ok};
pub use raw::aio_write;
pub use target::{EmptyTransport, Journal, Setup, Target, TargetKind};
