//! Metadata blocks: how they are read, changed and handed to the journal.
//!
//! [`Volume`] describes the device and where things are on it. `Parts` owns what changes: the log,
//! the metadata lock, allocator, names, inodes, orphans and quotas, each with its own state and
//! lock; the lock order is written there. [`Txn`] is one operation: an overlay of changes under
//! the metadata lock, private until [`Txn::finish`] makes it one journal update. Dropping a
//! transaction without finishing it changes nothing.
//!
//! # Invariants
//!
//! 1. Everything in memory that mirrors the disk (group descriptors, superblock, inodes, orphans)
//!    is changed only when a transaction is finished, so nothing has to be undone.
//! 2. A block is read in this order: the transaction's overlay, the cache, the log's image, the
//!    device. The cache is brought up to date when a transaction is finished; it never holds what
//!    the log or the device does not.
//! 3. A block that comes from the device passes the reader's check (a checksum where there is
//!    one) before it is believed.
//! 4. The metadata lock is never held over data I/O. Operations that are one transaction do not
//!    hold it over reads of metadata either (`fetch`); what takes several may. It is held while
//!    an update waits for room in the log.

mod cache;
mod fetch;
mod finish;
mod inodes;
mod lock;
mod log;
mod parts;
mod read;
mod record;
mod txn;
mod volume;

pub(crate) use cache::BlockCache;
pub(crate) use lock::{MetaLock, MetaState};
pub(crate) use log::{LOG_FULL, MetaLog};
pub(crate) use parts::Parts;
pub use txn::Txn;
pub use volume::Volume;
pub(crate) use volume::{group_metadata, system_blocks};

pub use crate::state::{UnwrittenPart, WriteError};
