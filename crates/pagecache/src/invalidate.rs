//! Dropping pages: direct writes, truncation, eviction of inodes.

use std::ops::Range;

use steadfast_vfs::Result;

use crate::flush::pages_of;
use crate::state::FileState;
use crate::{DirtyParts, FileKey, PAGE, PAGE_U64, PageCache};

/// Evicts the pages that lie whole in a range of bytes and are as on the device: as if others had
/// needed their memory. What is dirty, or in flight, stays.
pub fn evict(cache: &PageCache, file: FileKey, bytes: Range<u64>) {
    let pages = bytes.start.div_ceil(PAGE_U64)..bytes.end / PAGE_U64;
    if !pages.is_empty() {
        cache.state.lock().evict_range(file, pages);
        cache.room.notify_all();
    }
}

impl PageCache {
    /// Drops every page that the range of bytes touches, also dirty ones (flush them first if they
    /// are needed), and waits until none of them is in flight. A read in progress leaves nothing in
    /// the cache.
    pub fn invalidate(&self, file: FileKey, bytes: Range<u64>) {
        let pages = pages_of(&bytes);
        if pages.is_empty() {
            return;
        }
        self.drop_and_wait(file, pages);
        let whole = bytes.start.div_ceil(PAGE_U64)..bytes.end / PAGE_U64;
        if !whole.is_empty() {
            self.state.lock().clear_failed_range(file, whole);
        }
    }

    /// As [`invalidate`](Self::invalidate), before a direct write, which may fail: write-back
    /// failures of the pages stay recorded. After the write has succeeded `invalidate` is called.
    pub fn invalidate_before_direct_write(&self, file: FileKey, bytes: Range<u64>) {
        let pages = pages_of(&bytes);
        if !pages.is_empty() {
            self.drop_and_wait(file, pages);
        }
    }

    /// The file is being truncated to `new_size` bytes: drops the pages beyond, and makes the rest
    /// of its last page zeros, reading the page if need be; that page is dirty then. Waits for
    /// writes in flight of what it drops, so that their blocks can be freed.
    ///
    /// To be called while the store still goes by the old size (else it would show zeros where
    /// the device has old bytes, and those would come back when the file grows). Not needed when
    /// a file grows.
    ///
    /// # Errors
    /// When the last page cannot be read; the pages beyond are dropped even so.
    pub fn set_size(&self, file: FileKey, new_size: u64) -> Result<()> {
        let beyond = new_size.div_ceil(PAGE_U64)..u64::MAX;
        self.drop_and_wait(file, beyond.clone());
        self.state.lock().clear_failed_range(file, beyond);
        match (new_size % PAGE_U64) as usize {
            0 => Ok(()),
            at => self.zero_in_page(file, new_size / PAGE_U64, at..PAGE),
        }
    }

    /// The range of bytes is to read as zeros: pages inside of it are dropped, also dirty ones,
    /// after their writes in flight; the parts of the pages at its ends become zeros, and these
    /// pages dirty if they change. The caller ensures that the store has zeros there, and excludes
    /// readers until then.
    ///
    /// # Errors
    /// When a page at an end cannot be read; nothing has changed then.
    pub fn zero_range(&self, file: FileKey, bytes: Range<u64>) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let whole = bytes.start.div_ceil(PAGE_U64)..bytes.end / PAGE_U64;
        let (first, last) = (bytes.start / PAGE_U64, bytes.end / PAGE_U64);
        let (from, to) = ((bytes.start % PAGE_U64) as usize, (bytes.end % PAGE_U64) as usize);
        if first == last {
            return self.zero_in_page(file, first, from..to);
        }
        if from > 0 {
            self.zero_in_page(file, first, from..PAGE)?;
        }
        if to > 0 {
            self.zero_in_page(file, last, 0..to)?;
        }
        if !whole.is_empty() {
            self.drop_and_wait(file, whole.clone());
            self.state.lock().clear_failed_range(file, whole);
        }
        Ok(())
    }

    /// Makes part of a page zeros, reading the page if need be; it is dirty then, unless that
    /// part was zeros already.
    fn zero_in_page(&self, file: FileKey, page: u64, part: Range<usize>) -> Result<()> {
        loop {
            self.fetch(file, page)?;
            let mut state = self.admit(1);
            let Some(old) = state.page(file, page) else { continue };
            if old[part.clone()].iter().all(|b| *b == 0) {
                return Ok(());
            }
            drop(old);
            state.patch_page(file, page, part.start, &vec![0; part.len()]);
            let parts = DirtyParts::touched(part);
            let wake = state.mark_dirty(file, page, parts) && state.periodic_at.is_none();
            drop(state);
            if wake {
                self.control.wake();
            }
            return Ok(());
        }
    }

    /// The inode is evicted: drops all its pages, waits for those in flight, and forgets its
    /// errors. No handle may be open any more.
    pub fn forget(&self, file: FileKey) {
        loop {
            self.drop_and_wait(file, 0..u64::MAX);
            let mut state = self.state.lock();
            // A concurrent read-ahead may have started in between.
            if state.files.get(&file).is_none_or(FileState::is_idle) {
                state.clear_failed_range(file, 0..u64::MAX);
                state.files.remove(&file);
                return;
            }
        }
    }

    /// Forgets all files, as [`forget`](Self::forget) does one: the file system is being replaced.
    /// No writes may run meanwhile.
    pub fn forget_all(&self) {
        let files: Vec<FileKey> = self.state.lock().files.keys().copied().collect();
        files.into_iter().for_each(|file| self.forget(file));
    }

    fn drop_and_wait(&self, file: FileKey, pages: Range<u64>) {
        let mut state = self.state.lock();
        state.drop_pages(file, pages.clone());
        self.room.notify_all();
        let cutoff = state.batch_seq;
        loop {
            let Some(f) = state.files.get(&file) else { return };
            if !f.writeback.range(pages.clone()).any(|(_, w)| w.batch <= cutoff) {
                return;
            }
            state = self.room.wait(state);
        }
    }
}
