//! The cache itself: making it, and the small questions.

use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};
use std::time::Duration;

use steadfast_runtime::{Condvar, JoinHandle, Mutex, cpu};
use steadfast_vfs::{FsError, Result};

use crate::flusher::FlusherControl;
use crate::state::State;
use crate::{ErrorCursor, FileKey, PAGE_U64, PageStore, Settings, Stats};

/// Pages of files in memory; see the crate's text.
pub struct PageCache {
    pub(crate) me: Weak<PageCache>,
    store: Weak<dyn PageStore>,
    pub(crate) settings: Settings,
    /// Guards everything about pages; never held across a wait or a call to the store.
    pub(crate) state: Mutex<State>,
    /// Notified when memory, dirty room or an in-flight slot may have become free.
    pub(crate) room: Condvar,
    pub(crate) control: Arc<FlusherControl>,
    /// The write-back task.
    pub(crate) task: Mutex<Option<JoinHandle<()>>>,
}

impl PageCache {
    /// An empty cache. The store is held weakly, because it usually owns the cache; once it is
    /// gone, whatever needs it fails. Call [`start`](Self::start) for write-back by itself.
    pub fn new(settings: Settings, store: Weak<dyn PageStore>) -> Arc<PageCache> {
        PageCache::beside(settings, store, Arc::default())
    }

    /// As [`new`](Self::new), in memory that others use too: pages leave as the bytes that
    /// `others` have grow, down to half of [`Settings::memory_bytes`].
    pub fn beside(
        settings: Settings,
        store: Weak<dyn PageStore>,
        others: Arc<AtomicU64>,
    ) -> Arc<PageCache> {
        let limits = settings.limits();
        Arc::new_cyclic(|me| PageCache {
            me: me.clone(),
            store,
            settings,
            state: Mutex::new(State::new(limits, others)),
            room: Condvar::new(),
            control: Arc::new(FlusherControl::new()),
            task: Mutex::new(None),
        })
    }

    /// The settings it was made with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Bytes in the cache that may not be on the device: dirty and in flight.
    pub fn dirty_bytes(&self) -> u64 {
        let s = self.state.lock();
        (s.dirty_pages + s.writeback_pages) * PAGE_U64
    }

    /// The same of one file.
    pub fn file_dirty_bytes(&self, file: FileKey) -> u64 {
        let s = self.state.lock();
        s.files.get(&file).map_or(0, |f| (f.dirty.len() + f.writeback.len()) as u64 * PAGE_U64)
    }

    /// The first run of pages within `pages` that hold data which is not known to be on the device:
    /// dirty or in flight.
    pub fn next_dirty(&self, file: FileKey, pages: Range<u64>) -> Option<Range<u64>> {
        if pages.is_empty() {
            return None;
        }
        let s = self.state.lock();
        let f = s.files.get(&file)?;
        let dirty = f.dirty.range(pages.clone()).next().map(|(p, _)| p);
        let in_flight = f.writeback.range(pages.clone()).next().map(|(p, _)| p);
        let first = dirty.into_iter().chain(in_flight).min()?;
        let busy = |p: &u64| f.dirty.contains(*p) || f.writeback.contains(*p);
        let end = (first..pages.end).find(|p| !busy(p)).unwrap_or(pages.end);
        Some(first..end)
    }

    /// Whether a page that is being written back is in the cache as it was taken for that: it has
    /// neither changed since nor gone.
    pub fn is_as_taken(&self, file: FileKey, page: u64) -> bool {
        let s = self.state.lock();
        s.is_present(file, page) && !s.is_dirty(file, page)
    }

    /// Whether a read of `pages` that need not stay in memory should come from here all the same:
    /// some may not be on the device as they should be, or the last is here or in flight.
    pub fn should_answer(&self, file: FileKey, pages: Range<u64>) -> bool {
        let s = self.state.lock();
        let (Some(f), Some(last)) = (s.files.get(&file), pages.end.checked_sub(1)) else {
            return false;
        };
        f.dirty.range(pages.clone()).next().is_some()
            || f.writeback.range(pages.clone()).next().is_some()
            || f.failures.pages.range(pages).next().is_some()
            || f.pages.contains(last)
            || f.loading.contains(last)
    }

    /// Counters and present contents.
    pub fn stats(&self) -> Stats {
        self.state.lock().stats()
    }

    /// A cursor for a handle that is being opened: it will see later write-back errors of the file,
    /// and one that no handle has seen.
    pub fn error_cursor(&self, file: FileKey) -> ErrorCursor {
        self.state.lock().files.get(&file).map(|f| f.errors.sample()).unwrap_or_default()
    }

    /// The file's last write-back error, once for each cursor.
    ///
    /// # Errors
    /// That error.
    pub fn error_since(&self, file: FileKey, cursor: &mut ErrorCursor) -> Result<()> {
        let mut s = self.state.lock();
        s.files.get_mut(&file).map_or(Ok(()), |f| f.errors.check_and_advance(cursor))
    }

    /// As [`error_cursor`](Self::error_cursor), for errors of any file: what `syncfs` reports.
    pub fn any_error_cursor(&self) -> ErrorCursor {
        self.state.lock().errors.sample()
    }

    /// As [`error_since`](Self::error_since), for errors of any file.
    ///
    /// # Errors
    /// The last write-back error of any file.
    pub fn any_error_since(&self, cursor: &mut ErrorCursor) -> Result<()> {
        self.state.lock().errors.check_and_advance(cursor)
    }

    /// Whether write-back of any file has failed since `cursor`; the cursor does not advance.
    pub fn has_error_since(&self, cursor: &ErrorCursor) -> Option<FsError> {
        self.state.lock().errors.check(cursor)
    }

    pub(crate) fn store(&self) -> Result<Arc<dyn PageStore>> {
        let gone = || FsError::Io { what: "the file system behind the page cache is gone".into() };
        self.store.upgrade().ok_or_else(gone)
    }

    /// Accounts for handling `pages` pages and copying `bytes` bytes.
    pub(crate) fn charge(&self, pages: u64, bytes: usize) {
        let copy = bytes as u64 * self.settings.cpu_copy_ns_per_kib / 1024;
        cpu(Duration::from_nanos(copy + pages * self.settings.cpu_page_ns));
    }
}

impl Drop for PageCache {
    fn drop(&mut self) {
        self.control.stop();
    }
}

steadfast_runtime::debug_fields!(PageCache: settings);
