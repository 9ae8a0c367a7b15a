//! Pages of files in memory: read-ahead, write-back, dirty throttling.
//!
//! A [`PageCache`] stands between a file system and its [`PageStore`] (the part of the file system
//! that maps file pages to device blocks). It knows files as numbers and their contents as pages
//! of [`PAGE`] bytes; sizes, names and blocks are the file system's business.
//!
//! # Invariants
//!
//! 1. A page's bytes beyond the end of its file are zero. The store returns zeros there,
//!    [`PageCache::set_size`] makes them, and writes end at the end of the file.
//! 2. Data in flight never changes. A write-back holds shared, immutable [`bytes::Bytes`]; writing
//!    to such a page copies it first, and the page is dirty again.
//! 3. A page has at most one write in flight: two overlapping writes may land in either order. A
//!    page that is dirtied again waits for the first write before the second starts.
//! 4. A read that began before an invalidation leaves nothing in the cache: each page being read
//!    has an entry that names its read, an invalidation removes it, and the answer is kept only
//!    where the entry is still that read's.
//! 5. Two readers that miss the same page share one read.
//! 6. Memory is bounded: pages, pages being read, and copies in flight that no longer belong to a
//!    page count, 4096 bytes each, against [`Settings::memory_bytes`]. To make the count honest, a
//!    page never shares a larger buffer with its neighbours: it is copied out (which a system call
//!    does too). Clean pages leave in least-recently-used order; dirty ones stay until written.
//! 7. The cache's one lock is held for bookkeeping only, never across a call to the store or a
//!    wait.
//!
//! # What the file system owes
//!
//! * It excludes readers and other writers of a file while it writes to it, until it has recorded
//!   the new size, and while it truncates it (an inode lock). A reader let in between could load
//!   the last page from a store that still shows zeros beyond the old size. The write-back task
//!   must not need that lock: a writer may be waiting, with the lock held, for write-back to make
//!   room.
//! * [`PageStore::write_pages`] may be called for pages beyond the size it knows: a page becomes
//!   dirty before the caller has recorded the new size.
//! * **O_DIRECT**: write: [`flush_range`](PageCache::flush_range), then
//!   [`invalidate`](PageCache::invalidate), then the device, then `invalidate` again (a read-ahead
//!   may have come between). Read: `flush_range`, then the device.
//! * **fsync** is [`flush_range`](PageCache::flush_range), then
//!   [`error_since`](PageCache::error_since), so that each write-back error is reported once to
//!   each handle; [`PageCache::fsync`] does both. The journal's part is the file system's own.
//!
//! # After a failed write-back
//!
//! The page stays in memory, and every flush (fsync, sync, unmounting) writes it again; the error
//! is remembered for the file. So fsync answers ok only when the data is on the device, where
//! Linux forgets the page and lets a second fsync succeed. It is not written again by itself. What
//! is more than an eighth of the memory is lost, and its file's fsync fails until it is written
//! anew: `unwritten`.

mod cache;
mod error_seq;
mod flush;
mod flusher;
mod frames;
mod invalidate;
mod load;
mod page_map;
mod read;
mod read_ahead;
mod settings;
mod state;
mod stats;
mod store;
mod throttle;
mod unwritten;
mod write;
mod writeback;

pub use cache::PageCache;
pub use error_seq::ErrorCursor;
pub use settings::{DirtyLimit, Settings};
pub use stats::Stats;
pub use store::{DirtyRun, FileKey, PageStore, PageWrite};
pub use unwritten::UnwrittenPages;

/// Bytes in a page.
pub const PAGE: usize = 4096;

/// [`PAGE`] as a file offset.
pub(crate) const PAGE_U64: u64 = PAGE as u64;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
