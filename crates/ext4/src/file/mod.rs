//! The data of files.
//!
//! * [`OpenFlags::DIRECT`](steadfast_vfs::OpenFlags::DIRECT) goes past the page cache, as far as
//!   the alignment and the data mode allow; everything else through it.
//! * On a device that is memory, files may be used in place (`dax`).
//! * With delayed allocation, data in the page cache has a reservation but no place. The page
//!   cache's write-back ([`PageStore`](steadfast_pagecache::PageStore)) finds the place, in one
//!   transaction, and starts the writes.
//! * `i_size` in memory is what reads see. The size on disk follows it with the transaction that
//!   maps the data.
//!
//! * A file of a few bytes may be in its inode (`inline`).
//!
//! # What a crash leaves, by data mode
//!
//! * *ordered*: the transaction that maps newly allocated blocks waits for their data, so a file
//!   never shows what its blocks held before. Overwrites in place are not ordered.
//! * *writeback*: it does not wait; a file may show what its blocks held before.
//! * *journal*: data is in the transaction itself.
//!
//! Unwritten extents become written only in a transaction that waits for the data, in every mode.
//!
//! # Locks
//!
//! An inode's `data_lock` comes first: shared for reads and for direct overwrites, exclusive for
//! everything else. Then the metadata lock. Write-back takes only the latter.

mod dax;
mod delete;
mod direct;
mod fallocate;
mod gather;
mod in_place;
mod inline;
mod journalled;
mod large_blocks;
mod map;
mod orphans;
mod out_of_place;
mod outside;
mod pieces;
mod place;
mod read;
mod reserve;
mod seek;
mod sync;
mod times;
mod truncate;
mod write;
mod writeback;

use std::time::Duration;

pub(crate) use in_place::{check as check_dax, hindrance as dax_hindrance};
pub use map::FileMapping;

pub(crate) use dax::leave_page_cache;
pub(crate) use delete::{delete, delete_if_unused, delete_values, delete_with_final_unlink};
pub(crate) use fallocate::fallocate_file;
pub(crate) use orphans::process_orphans;
pub(crate) use read::{read_file, read_file_into};
pub(crate) use seek::{list_extents, seek_file};
pub(crate) use sync::{make_durable, sync_all, sync_file};
pub(crate) use truncate::truncate;
pub(crate) use write::write_file;

/// Simulated processor time of a system call that reads or writes, without the copying, which
/// the page cache accounts for: about what `lmbench` shows for a pread on a 3 GHz processor.
pub(crate) const CALL: Duration = Duration::from_nanos(2_000);
/// Simulated processor time of an operation on a name.
pub(crate) const NAME_CALL: Duration = Duration::from_nanos(4_000);
