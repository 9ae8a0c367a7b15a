//! The state behind the cache's lock: files, frames and the counts of each kind of page.
//!
//! Every transition of a page is a method here, so that the counts stay right:
//!
//! ```text
//!            begin_load          end_load             mark_dirty
//!  absent ---------------> loading --------> clean -------------> dirty
//!     ^                                        ^  ^                 | take_batch
//!     |              make_room                 |  +--- end_batch ---+--> in flight
//!     +----------------------------------------+                        (and dirty again)
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Bytes, BytesMut};
use smart_default::SmartDefault;
use steadfast_block::pattern;
use steadfast_runtime::{Nanos, now};

use crate::dirty_page::DirtyPage;
use crate::error_seq::ErrorSeq;
use crate::failed::{Failure, FileFailures};
use crate::frames::{FrameId, Frames};
use crate::load::Load;
use crate::page_map::PageMap;
use crate::read_ahead::Streams;
use crate::settings::Limits;
use crate::stats::Stats;
use crate::throttle::Throttle;
use crate::{DirtyParts, FailedPages, FileKey, PAGE_U64};

/// One write of a page in flight.
pub(crate) struct InFlight {
    /// When the page became dirty, as a sequence number.
    pub dirtied: u64,
    /// The write-back it belongs to; they ascend.
    pub batch: u64,
    /// The page was dropped or replaced: the copy in flight has its own memory.
    pub detached: bool,
}

/// One file's pages.
#[derive(Default)]
pub(crate) struct FileState {
    /// Pages with contents.
    pub pages: PageMap<FrameId>,
    /// Pages to be written.
    pub dirty: PageMap<DirtyPage>,
    /// Pages being written. A page may be here and in `dirty`: written again meanwhile.
    pub writeback: PageMap<InFlight>,
    /// Pages being read; never at the same time in `pages`.
    pub loading: PageMap<Arc<Load>>,
    /// Since when there has been a dirty page.
    pub dirtied_at: Option<Nanos>,
    /// Where the write-back task goes on in this file.
    pub writeback_next: u64,
    /// Its sequential readers.
    pub streams: Streams,
    /// Failed write-backs.
    pub errors: ErrorSeq,
    /// Pages whose write-back failed.
    pub failures: FileFailures,
}

impl FileState {
    /// There are no pages, nor any being read or written.
    pub(crate) fn is_idle(&self) -> bool {
        self.pages.is_empty() && self.loading.is_empty() && self.writeback.is_empty()
    }
}

/// Everything the lock guards.
#[derive(SmartDefault)]
pub(crate) struct State {
    pub limits: Limits,
    /// Bytes of the same memory that others have.
    others: Arc<AtomicU64>,
    pub files: BTreeMap<FileKey, FileState>,
    #[default(Frames::new())]
    pub frames: Frames,
    /// Dirty files, the longest dirty first.
    pub dirty_files: BTreeSet<(Nanos, FileKey)>,
    pub loading_pages: u64,
    pub detached_pages: u64,
    pub dirty_pages: u64,
    pub writeback_pages: u64,
    /// Failed pages that are to be retried.
    pub retry_pages: u64,
    /// Pages that are recorded as lost.
    pub lost_pages: u64,
    /// Last sequence number given to a page that became dirty.
    #[default(NonZeroU64::MIN)]
    pub dirty_seq: NonZeroU64,
    /// Last number given to a write-back.
    pub batch_seq: u64,
    /// When the write-back task next looks for aged files.
    pub periodic_at: Option<Nanos>,
    /// Readers and writers that wait for memory.
    pub starved: u64,
    pub throttle: Throttle,
    pub errors: ErrorSeq,
    pub stats: Stats,
}

impl State {
    pub(crate) fn new(limits: Limits, others: Arc<AtomicU64>) -> Self {
        State { limits, others, ..State::default() }
    }

    /// The file's state, made if it is new.
    pub(crate) fn file(&mut self, file: FileKey) -> &mut FileState {
        self.files.entry(file).or_default()
    }

    /// Pages of memory in use.
    pub(crate) fn used(&self) -> u64 {
        self.frames.len() + self.loading_pages + self.detached_pages
    }

    /// Pages of memory that there are now.
    fn memory(&self) -> u64 {
        let others = self.others.load(Ordering::Relaxed) / PAGE_U64;
        self.limits.memory.saturating_sub(others).max(self.limits.memory / 2)
    }

    /// Pages that could be had by evicting.
    pub(crate) fn available(&self) -> u64 {
        (self.memory() + self.frames.evictable()).saturating_sub(self.used())
    }

    /// Evicts until `pages` more fit; false, and nothing evicted, if they cannot.
    pub(crate) fn make_room(&mut self, pages: u64) -> bool {
        if self.available() < pages {
            return false;
        }
        let memory = self.memory();
        while self.used() + pages > memory {
            let Some((file, page)) = self.frames.evict() else { return false };
            if let Some(f) = self.files.get_mut(&file) {
                f.pages.remove(page);
                State::evict_failed(f, page);
            }
            self.stats.evicted_pages += 1;
        }
        true
    }

    /// Evicts what may be of a range of pages.
    pub(crate) fn evict_range(&mut self, file: FileKey, pages: Range<u64>) {
        let Some(f) = self.files.get_mut(&file) else { return };
        let there: Vec<(u64, FrameId)> = f.pages.range(pages).map(|(p, id)| (p, *id)).collect();
        for (page, id) in there {
            if self.frames.is_evictable(id) {
                self.frames.remove(id);
                f.pages.remove(page);
                State::evict_failed(f, page);
                self.stats.evicted_pages += 1;
            }
        }
    }

    fn note_use(&mut self) {
        let bytes = self.used() * PAGE_U64;
        self.stats.memory_bytes_max = self.stats.memory_bytes_max.max(bytes);
    }

    /// The contents of a page that is there; counts as a use.
    pub(crate) fn page(&mut self, file: FileKey, page: u64) -> Option<Bytes> {
        let id = *self.files.get(&file)?.pages.get(page)?;
        self.frames.touch(id);
        Some(self.frames.data(id).clone())
    }

    pub(crate) fn is_present(&self, file: FileKey, page: u64) -> bool {
        self.files.get(&file).is_some_and(|f| f.pages.contains(page))
    }

    pub(crate) fn is_dirty(&self, file: FileKey, page: u64) -> bool {
        self.files.get(&file).is_some_and(|f| f.dirty.contains(page))
    }

    /// Notes that `load` reads its pages, none of which is there or being read. The caller has
    /// made room.
    pub(crate) fn begin_load(&mut self, load: &Arc<Load>) {
        let f = self.files.entry(load.file).or_default();
        for page in load.pages() {
            let before = f.loading.insert(page, Arc::clone(load));
            debug_assert!(before.is_none() && !f.pages.contains(page));
        }
        self.loading_pages += u64::from(load.count);
        self.stats.store_reads += 1;
        self.note_use();
    }

    /// Caches the result of a load, where no other change came in between. `None`: it has failed.
    pub(crate) fn end_load(&mut self, load: &Arc<Load>, data: Option<&Bytes>) {
        let Some(f) = self.files.get_mut(&load.file) else { return };
        for (i, page) in load.pages().enumerate() {
            if !f.loading.get(page).is_some_and(|l| Arc::ptr_eq(l, load)) {
                continue;
            }
            f.loading.remove(page);
            self.loading_pages -= 1;
            if let Some(data) = data {
                // A copy of its own: a slice would pin the whole load.
                let own = pattern::unpinned(&data.slice(i * crate::PAGE..(i + 1) * crate::PAGE));
                let id = self.frames.insert(load.file, page, own);
                f.pages.insert(page, id);
                self.frames.add_to_lru(id);
            }
        }
    }

    /// Cancels the load of a page: its result is not cached.
    pub(crate) fn cancel_load(&mut self, file: FileKey, page: u64) {
        if self.files.get_mut(&file).is_some_and(|f| f.loading.remove(page).is_some()) {
            self.loading_pages -= 1;
        }
    }

    /// Gives a page these contents, [`PAGE`](crate::PAGE) bytes. A dirty page stays dirty; any
    /// other is clean. The caller has made room for one page.
    pub(crate) fn put_page(&mut self, file: FileKey, page: u64, data: Bytes) {
        debug_assert_eq!(data.len(), crate::PAGE);
        self.cancel_load(file, page);
        self.detach(file, page);
        let was_kept = self.is_to_be_retried(file, page);
        self.clear_failed(file, page);
        let f = self.files.entry(file).or_default();
        if let Some(there) = f.pages.get(page).copied() {
            *self.frames.data_mut(there) = data;
            if was_kept {
                self.frames.add_to_lru(there);
            }
        } else {
            let id = self.frames.insert(file, page, data);
            f.pages.insert(page, id);
            self.frames.add_to_lru(id);
        }
        self.note_use();
    }

    /// Changes bytes of a page that is there, in place unless somebody else still has the old
    /// contents. The caller has made room for one page.
    pub(crate) fn patch_page(&mut self, file: FileKey, page: u64, at: usize, bytes: &[u8]) {
        self.detach(file, page);
        let Some(id) = self.files.get(&file).and_then(|f| f.pages.get(page)).copied() else {
            return;
        };
        let slot = self.frames.data_mut(id);
        let mut own = match std::mem::take(slot).try_into_mut() {
            Ok(unshared) => unshared,
            Err(shared) => BytesMut::from(&shared[..]),
        };
        own[at..at + bytes.len()].copy_from_slice(bytes);
        *slot = own.freeze();
        self.frames.touch(id);
        self.note_use();
    }

    /// A copy in flight stops being the page's own memory.
    fn detach(&mut self, file: FileKey, page: u64) {
        let Some(f) = self.files.get_mut(&file) else { return };
        if let Some(w) = f.writeback.get_mut(page)
            && !w.detached
        {
            w.detached = true;
            self.detached_pages += 1;
        }
    }

    /// Makes parts of a page that is there dirty. True if this was the first dirty page of all.
    pub(crate) fn mark_dirty(&mut self, file: FileKey, page: u64, parts: DirtyParts) -> bool {
        let Some(f) = self.files.get_mut(&file) else { return false };
        let Some(id) = f.pages.get(page).copied() else { return false };
        if let Some(dirty_page) = f.dirty.get_mut(page) {
            dirty_page.add(parts);
            return false;
        }
        // Of a page whose write has failed nobody knows what the store has.
        let parts = if f.failures.may_be_of(page) { DirtyParts::ALL } else { parts };
        self.dirty_seq = self.dirty_seq.saturating_add(1);
        f.dirty.insert(page, DirtyPage::new(self.dirty_seq.get(), parts));
        self.frames.remove_from_lru(id);
        self.dirty_pages += 1;
        self.clear_failed_on_dirty(file, page);
        let Some(f) = self.files.get_mut(&file) else { return false };
        if f.dirtied_at.is_none() {
            let at = now();
            f.dirtied_at = Some(at);
            self.dirty_files.insert((at, file));
        }
        self.dirty_pages == 1
    }

    /// Parts of a page have other contents: they are dirty if the page is.
    pub(crate) fn add_dirty_parts(&mut self, file: FileKey, page: u64, parts: DirtyParts) {
        let f = self.files.get_mut(&file);
        if let Some(dirty_page) = f.and_then(|f| f.dirty.get_mut(page)) {
            dirty_page.add(parts);
        }
    }

    fn note_if_clean(&mut self, file: FileKey) {
        let Some(f) = self.files.get_mut(&file) else { return };
        if f.dirty.is_empty()
            && let Some(at) = f.dirtied_at.take()
        {
            self.dirty_files.remove(&(at, file));
        }
    }

    /// What was dirty in the file up to `cutoff` has been taken for write-back: if anything is
    /// left it has become dirty since, and its age counts from `at`.
    pub(crate) fn restart_age(&mut self, file: FileKey, cutoff: u64, at: Nanos) {
        let Some(f) = self.files.get_mut(&file) else { return };
        let Some(before) = f.dirtied_at else { return };
        if before < at && f.dirty.values().all(|dirty_page| dirty_page.seq() > cutoff) {
            f.dirtied_at = Some(at);
            self.dirty_files.remove(&(before, file));
            self.dirty_files.insert((at, file));
        }
    }

    /// Drops a page, whatever it is; a copy in flight stays so.
    pub(crate) fn drop_page(&mut self, file: FileKey, page: u64) {
        self.cancel_load(file, page);
        let Some(f) = self.files.get_mut(&file) else { return };
        let Some(id) = f.pages.remove(page) else { return };
        self.drop_failed(file, page);
        let Some(f) = self.files.get_mut(&file) else { return };
        if f.dirty.remove(page).is_some() {
            self.dirty_pages -= 1;
        }
        self.frames.remove(id);
        self.detach(file, page);
        self.note_if_clean(file);
    }

    /// Drops all pages of a range that are there or being read.
    pub(crate) fn drop_pages(&mut self, file: FileKey, pages: Range<u64>) {
        let Some(f) = self.files.get(&file) else { return };
        let mut all: Vec<u64> = f.pages.range(pages.clone()).map(|(p, _)| p).collect();
        all.extend(f.loading.range(pages).map(|(p, _)| p));
        for page in all {
            self.drop_page(file, page);
        }
    }

    /// Takes up to `max` dirty pages of a range, in order, that became dirty not after `cutoff`
    /// and are not in flight; they are in flight now.
    pub(crate) fn take_batch(
        &mut self,
        file: FileKey,
        pages: Range<u64>,
        cutoff: u64,
        max: u64,
    ) -> Option<WritebackPages> {
        let f = self.files.get_mut(&file)?;
        let taken: Vec<(u64, DirtyPage)> = f
            .dirty
            .range(pages)
            .filter(|(p, dirty_page)| dirty_page.seq() <= cutoff && !f.writeback.contains(*p))
            .take(usize::try_from(max).unwrap_or(usize::MAX))
            .map(|(p, dirty_page)| (p, *dirty_page))
            .collect();
        if taken.is_empty() {
            return None;
        }
        self.batch_seq += 1;
        let batch = self.batch_seq;
        let mut contents = Vec::with_capacity(taken.len());
        for (page, dirty_page) in taken {
            f.dirty.remove(page);
            f.writeback
                .insert(page, InFlight { dirtied: dirty_page.seq(), batch, detached: false });
            // OK to expect: a dirty page has a frame.
            let frame = *f.pages.get(page).expect("a dirty page is there");
            contents.push((page, self.frames.data(frame).clone(), dirty_page.parts()));
        }
        let count = contents.len() as u64;
        self.dirty_pages -= count;
        self.writeback_pages += count;
        self.stats.store_writes += 1;
        self.note_if_clean(file);
        Some(WritebackPages { contents })
    }

    /// The write of these pages has ended. Returns the failed ones.
    pub(crate) fn end_batch(
        &mut self,
        file: FileKey,
        pages: &[u64],
        failure: Option<&Failure>,
    ) -> Vec<FailedPages> {
        self.writeback_pages -= pages.len() as u64;
        self.stats.written_pages += pages.len() as u64;
        let Some(f) = self.files.get_mut(&file) else { return Vec::new() };
        let mut settled = Vec::with_capacity(pages.len());
        for page in pages {
            let detached = f.writeback.remove(*page).is_some_and(|w| w.detached);
            if detached {
                self.detached_pages -= 1;
            }
            // Dirty again since: the next write-back has to bring along what this one did not.
            if let Some(dirty_page) = f.dirty.get_mut(*page)
                && failure.is_some_and(|failure| failure.is_of(*page))
            {
                dirty_page.add(DirtyParts::ALL);
            }
            let Some(id) = f.pages.get(*page).filter(|_| !f.dirty.contains(*page)) else {
                continue;
            };
            if detached {
                // Other contents, which are clean.
                self.frames.add_to_lru(*id);
            } else {
                settled.push(*page);
            }
        }
        self.end_writeback(file, &settled, failure)
    }

    /// Present contents and counters.
    pub(crate) fn stats(&self) -> Stats {
        Stats {
            memory_bytes: self.used() * PAGE_U64,
            dirty_bytes: self.dirty_pages * PAGE_U64,
            writeback_bytes: self.writeback_pages * PAGE_U64,
            retry_bytes: self.retry_pages * PAGE_U64,
            lost_bytes: self.lost_pages * PAGE_U64,
            ..self.stats
        }
    }
}

/// Pages taken for write-back, ascending.
pub(crate) struct WritebackPages {
    pub contents: Vec<(u64, Bytes, DirtyParts)>,
}
