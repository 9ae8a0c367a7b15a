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
//! 2. Data in flight never changes. A write-back holds shared, immutable [`bytes::Bytes`]; a write
//!    to such a page copies it first, and the page is dirty again.
//! 3. A page has at most one write in flight: two overlapping writes may land in either order. A
//!    page that is dirtied again waits for the first write before the second starts.
//! 4. A read that began before an invalidation leaves nothing in the cache: each page being read
//!    has an entry that names its read. An invalidation removes the entry, and the result is cached
//!    only if the entry still names this read.
//! 5. Two readers that miss the same page share one read.
//! 6. Memory is bounded: pages, pages being read, and copies in flight that no longer belong to a
//!    page count 4096 bytes each against [`Settings::memory_bytes`]. For an exact count a page
//!    never shares a larger buffer with other pages: it is copied out (as by a system call). Clean
//!    pages are evicted in least-recently-used order; dirty ones stay until written.
//! 7. A write-back names the dirty parts of each page ([`DirtyRange::parts`]): all that has changed
//!    since the page was last given to the store, and the whole page after a failure.
//! 8. The cache's one lock is held for bookkeeping only, never across a call to the store or a
//!    wait.
//!
//! # What the file system owes
//!
//! * It excludes readers and other writers of a file while it writes to it, until it has recorded
//!   the new size, and while it truncates it (an inode lock). A concurrent reader could load the
//!   last page from a store that still shows zeros beyond the old size. The write-back task must
//!   not need that lock: a writer may wait, with the lock held, for write-back to free memory.
//! * [`PageStore::write_pages`] may be called for pages beyond the size it knows: a page becomes
//!   dirty before the caller has recorded the new size.
//! * **O_DIRECT**: write: [`flush_range`](PageCache::flush_range), then
//!   [`invalidate`](PageCache::invalidate), then the device, then `invalidate` again (a read-ahead
//!   may have run in between). Read: `flush_range`, then the device.
//! * **fsync** is [`flush_range`](PageCache::flush_range), then
//!   [`error_since`](PageCache::error_since), so that each write-back error is reported once to
//!   each handle; [`PageCache::fsync`] does both. The journal's part is the file system's own.
//!
//! # After a failed write-back
//!
//! The page stays in memory, and every flush (fsync, sync, unmount) writes it again; the error is
//! recorded for the file. So fsync succeeds only when the data is on the device, where Linux drops
//! the page and a second fsync succeeds. It is not retried without a flush. Failed pages beyond an
//! eighth of the memory are lost, and fsync of their file fails until they are rewritten: `failed`.

mod cache;
mod dirty_page;
mod error_seq;
mod failed;
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
mod write;
mod writeback;

pub use cache::PageCache;
pub use dirty_page::DirtyParts;
pub use error_seq::ErrorCursor;
pub use failed::FailedPages;
pub use invalidate::evict;
pub use settings::{DirtyLimit, Settings};
pub use stats::Stats;
pub use store::{DirtyRange, FileKey, PageStore, PageWrite};

/// Bytes in a page.
pub const PAGE: usize = 4096;

/// [`PAGE`] as a file offset.
pub(crate) const PAGE_U64: u64 = PAGE as u64;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
