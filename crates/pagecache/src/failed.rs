//! Pages whose write-back has failed.
//!
//! ```text
//!              end_batch (failed)            mark_dirty
//!  in flight -------------------> kept ------------------> dirty
//!                     |                 (flush, a new write)
//!                     +---------> lost, here --> lost, gone    (evicted)
//! ```
//!
//! A page to *retry* stays in memory, and each flush writes it again. So an fsync succeeds only
//! once its data is on the device, and readers see the data that a later fsync may still write. An
//! eighth of the memory may hold such pages: a permanently failed device must not fill it. Other
//! failed pages are *lost*, and so are pages that the store could not start to write: they count as
//! clean, and fsync of the file fails until they are rewritten or truncated.

use std::collections::BTreeMap;
use std::ops::Range;

use steadfast_vfs::{FsError, Result};

use crate::flush::pages_of;
use crate::state::{FileState, State};
use crate::{DirtyParts, FileKey, PageCache};

/// The state of a page whose write-back failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageFailure {
    /// In memory; the next flush writes it again.
    Retry,
    /// Lost: not retried, but its contents are still in memory.
    LostCached,
    /// Lost, and evicted: only the old contents on the device are left.
    LostEvicted,
}

/// The failed pages of a file.
#[derive(Debug, Default)]
pub(crate) struct FileFailures {
    pub pages: BTreeMap<u64, PageFailure>,
    /// There were more failed pages than can be recorded.
    pub more: bool,
}

impl FileFailures {
    /// Whether this page's write may have failed.
    pub fn may_be_of(&self, page: u64) -> bool {
        self.more || self.pages.contains_key(&page)
    }
}

/// A part of a file whose write-back failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedPages {
    /// The file.
    pub file: FileKey,
    /// Page numbers.
    pub pages: Range<u64>,
    /// In memory, and retried by the next flush; otherwise the data is lost.
    pub retry: bool,
}

/// How a write-back failed.
pub(crate) struct Failure {
    pub error: FsError,
    /// Which pages, of those that were given; they may overlap. Empty: all.
    pub pages: Vec<Range<u64>>,
    /// Whether a retry makes sense.
    pub retry: bool,
}

impl Failure {
    pub fn is_of(&self, page: u64) -> bool {
        self.pages.is_empty() || self.pages.iter().any(|range| range.contains(&page))
    }
}

impl State {
    /// The write of a page in memory has failed, and no newer write of it is pending. Whether it is
    /// retried.
    fn fail_page(&mut self, file: FileKey, page: u64, retry: bool) -> bool {
        let keep = retry && self.retry_pages < self.limits.retry;
        let room = self.lost_pages < self.limits.memory;
        let Some(f) = self.files.get_mut(&file) else { return false };
        if keep {
            self.retry_pages += 1;
            f.failures.pages.insert(page, PageFailure::Retry);
        } else if room {
            self.lost_pages += 1;
            f.failures.pages.insert(page, PageFailure::LostCached);
        } else {
            f.failures.more = true;
        }
        keep
    }

    /// Ends the write-back of pages that are neither dirty again nor replaced: they become clean,
    /// to retry, or lost. Returns the failed ones.
    pub(crate) fn end_writeback(
        &mut self,
        file: FileKey,
        pages: &[u64],
        failure: Option<&Failure>,
    ) -> Vec<FailedPages> {
        let mut failed: Vec<FailedPages> = Vec::new();
        for page in pages {
            let Some(f) = self.files.get(&file) else { break };
            let Some(id) = f.pages.get(*page).copied() else { continue };
            let failure = failure.filter(|f| f.is_of(*page));
            let retry = failure.map(|failure| self.fail_page(file, *page, failure.retry));
            if retry != Some(true) {
                self.frames.add_to_lru(id);
            }
            let Some(retry) = retry else { continue };
            match failed.last_mut() {
                Some(last) if last.pages.end == *page && last.retry == retry => last.pages.end += 1,
                _ => failed.push(FailedPages { file, pages: *page..*page + 1, retry }),
            }
        }
        failed
    }

    /// Whether a failed page is to be retried.
    pub(crate) fn is_to_be_retried(&self, file: FileKey, page: u64) -> bool {
        let f = self.files.get(&file);
        f.is_some_and(|f| f.failures.pages.get(&page) == Some(&PageFailure::Retry))
    }

    /// A page is dirty: its contents in memory will be written.
    pub(crate) fn clear_failed_on_dirty(&mut self, file: FileKey, page: u64) {
        let Some(f) = self.files.get_mut(&file) else { return };
        match f.failures.pages.get(&page) {
            Some(PageFailure::Retry) => self.retry_pages -= 1,
            Some(PageFailure::LostCached) => self.lost_pages -= 1,
            // Other bytes of the page stay lost.
            Some(PageFailure::LostEvicted) | None => return,
        }
        f.failures.pages.remove(&page);
    }

    /// A page has completely new contents: its failure is cleared. The caller handles the frame.
    pub(crate) fn clear_failed(&mut self, file: FileKey, page: u64) {
        let Some(f) = self.files.get_mut(&file) else { return };
        match f.failures.pages.remove(&page) {
            Some(PageFailure::Retry) => self.retry_pages -= 1,
            Some(PageFailure::LostCached | PageFailure::LostEvicted) => self.lost_pages -= 1,
            None => {}
        }
    }

    /// A failed page was evicted.
    pub(crate) fn evict_failed(f: &mut FileState, page: u64) {
        if let Some(fate) = f.failures.pages.get_mut(&page) {
            *fate = PageFailure::LostEvicted;
        }
    }

    /// A page is dropped. Data that is not on the device is lost, unless the caller clears the
    /// failure ([`State::clear_failed_range`]).
    pub(crate) fn drop_failed(&mut self, file: FileKey, page: u64) {
        let Some(f) = self.files.get_mut(&file) else { return };
        let Some(fate) = f.failures.pages.get_mut(&page) else { return };
        if *fate == PageFailure::Retry {
            self.retry_pages -= 1;
            self.lost_pages += 1;
        }
        *fate = PageFailure::LostEvicted;
    }

    /// These pages are truncated, or replaced on the device: their failures are cleared.
    pub(crate) fn clear_failed_range(&mut self, file: FileKey, pages: Range<u64>) {
        let Some(f) = self.files.get_mut(&file) else { return };
        if pages == (0..u64::MAX) {
            f.failures.more = false;
        }
        let all: Vec<u64> = f.failures.pages.range(pages).map(|(page, _)| *page).collect();
        all.into_iter().for_each(|page| self.clear_failed(file, page));
    }

    /// Marks the pages to retry of a range dirty, so that they are written again.
    pub(crate) fn redirty_failed(&mut self, file: FileKey, pages: Range<u64>) {
        let Some(f) = self.files.get(&file) else { return };
        let kept = f.failures.pages.range(pages).filter(|(_, fate)| **fate == PageFailure::Retry);
        let kept: Vec<u64> = kept.map(|(page, _)| *page).collect();
        for page in kept {
            self.mark_dirty(file, page, DirtyParts::ALL);
        }
    }
}

impl PageCache {
    /// Fails if data in the range of bytes was lost in write-back and not rewritten since: an fsync
    /// must not succeed.
    ///
    /// # Errors
    /// The file's last write-back error.
    pub fn check_lost(&self, file: FileKey, bytes: &Range<u64>) -> Result<()> {
        let state = self.state.lock();
        let Some(f) = state.files.get(&file) else { return Ok(()) };
        let pages = pages_of(bytes);
        let is_lost = |fate: &PageFailure| *fate != PageFailure::Retry;
        let lost = !pages.is_empty()
            && (f.failures.more || f.failures.pages.range(pages).any(|(_, fate)| is_lost(fate)));
        match f.errors.last() {
            Some(e) if lost => Err(e.clone()),
            _ => Ok(()),
        }
    }

    /// The failed parts of files, at most `most`.
    pub fn failed_pages(&self, most: usize) -> Vec<FailedPages> {
        let state = self.state.lock();
        let mut parts: Vec<FailedPages> = Vec::new();
        let pages = state.files.iter().flat_map(|(file, f)| {
            f.failures.pages.iter().map(|(page, fate)| (*file, *page, *fate == PageFailure::Retry))
        });
        for (file, page, retry) in pages {
            let full = parts.len() == most;
            match parts.last_mut() {
                Some(l) if l.file == file && l.pages.end == page && l.retry == retry => {
                    l.pages.end += 1;
                }
                _ if full => break,
                _ => parts.push(FailedPages { file, pages: page..page + 1, retry }),
            }
        }
        parts
    }
}
