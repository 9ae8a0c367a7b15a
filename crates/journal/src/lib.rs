//! JBD2: commit, checkpoint, recovery and revoke, on an internal or external log.
//!
//! A file system submits [`Update`]s: after-images of whole blocks, which all survive a crash or
//! none. Updates join the running transaction. The commit task writes it to the log. The checkpoint
//! task writes its blocks to their home locations and frees the log space. After a crash
//! [`recover`] replays the log. The format on disk is the Linux kernel's JBD2, so the kernel and
//! e2fsck replay our logs and we replay theirs.
//!
//! The journal knows blocks and transactions, but no inodes. Images are immutable and shared: a
//! later change of a block is a new image, so a committing transaction needs no frozen copies
//! (jbd2: `b_frozen_data`).
//!
//! * Where a log lives: [`Log`], [`external`]. Making one: [`format()`].
//! * In use: [`Journal`]; `commit.rs` and `checkpoint.rs` give the order of writes and flushes and
//!   prove it correct.
//! * Fast commits: [`Journal::fast_commit`].
//! * After a crash: [`recover`], [`recover_dry`].
//!
//! ```no_run
//! use std::sync::Arc;
//! use steadfast_block::BlockDevice;
//! use steadfast_journal::{Config, FsBlock, Journal, JournalError, Log, Update, recover};
//!
//! /// Changes two blocks of a disk: a power cut leaves both or neither.
//! fn change(log: Log, disk: Arc<dyn BlockDevice>) -> Result<(), JournalError> {
//!     recover(&log, &*disk)?;
//!     let journal = Journal::open(log, disk, Config::default())?;
//!     let writes = vec![
//!         (FsBlock(100), vec![1; 4096].into()),
//!         (FsBlock(200), vec![2; 4096].into()),
//!     ];
//!     let transaction = journal.submit(Update { writes, ..Update::default() })?;
//!     journal.commit(transaction)?;
//!     journal.close()
//! }
//! ```

mod checkpoint;
mod checkpoint_hook;
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
mod shared;
mod state;
mod stats;
mod superblock_writer;
mod transaction;
mod writer;

#[cfg(test)]
mod testing;

pub use checkpoint_hook::CheckpointHook;
pub use config::Config;
pub use error::{JournalError, Result};
pub use flushes::Flushes;
pub use format::{FormatOptions, format};
pub use journal::Journal;
pub use log::{Log, LogExtent};
pub use number::{FsBlock, LogBlock, Tid};
pub use ondisk::features::{Checksums, JournalFeatures};
pub use ondisk::superblock::JournalSuperblock;
pub use planted::Bug;
pub use recovery::{
    FastCommits, FastTag, Overlay, Recovery, RecoveryFinding, RecoveryReport, clear_errno,
    discard_contents, recover, recover_dry,
};
pub use stats::JournalStats;
pub use transaction::{OnCommit, Update};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
