//! JBD2: commit, checkpoint, recovery and revoke, on an internal or external log.
//!
//! A file system hands the journal [`Update`]s: whole new contents of blocks, all of which or
//! none of which survive a crash. Updates join the running transaction; the commit task writes
//! it to the log, the checkpoint task writes its blocks to their home places and frees the log
//! again. After a crash [`recover`] replays what is in the log. On disk everything is the Linux
//! kernel's JBD2, so the kernel and e2fsck replay our logs and we replay theirs.
//!
//! The journal knows blocks and transactions, no inodes. Images are immutable and shared: a
//! later change of a block is a new image, so a committing transaction needs no frozen copies.
//!
//! * Where a log lives: [`Log`], [`external`]. Making one: [`format()`].
//! * In use: [`Journal`]; the order of writes and flushes and why it is right is argued in the
//!   sources `commit.rs` and `checkpoint.rs`.
//! * In between, in the owner's words: [`Journal::fast_commit`].
//! * After a crash: [`recover`], [`recover_dry`].

mod anchor;
mod before_home;
mod checkpoint;
mod checksum;
mod commit;
mod config;
mod error;
pub mod external;
mod fast;
mod flushes;
mod format;
mod images;
mod journal;
mod log;
mod number;
mod on_demand;
mod ondisk;
mod planted;
mod recovery;
mod state;
mod transaction;
mod writer;

#[cfg(test)]
mod testing;

pub use before_home::BeforeHome;
pub use config::Config;
pub use error::{JournalError, Result};
pub use flushes::Flushes;
pub use format::{FormatOptions, format};
pub use journal::{Journal, JournalStats};
pub use log::{Log, LogExtent};
pub use number::{FsBlock, LogBlock, Tid};
pub use ondisk::features::{Checksums, Features};
pub use ondisk::superblock::Superblock;
#[cfg(feature = "planted-bugs")]
pub use planted::Bug;
pub use recovery::{
    FastCommits, FastTag, Finding, Overlay, Recovery, RecoveryReport, clear_errno,
    discard_contents, recover, recover_dry,
};
pub use transaction::{OnCommit, Update};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
