//! Writing dirty pages to the store: one batch after the other, several in flight.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use steadfast_runtime::{Mutex, MutexGuard};
use steadfast_vfs::{FsError, Result};

use crate::failed::Failure;
use crate::state::{State, WritebackPages};
use crate::{DirtyRange, FileKey, PAGE_U64, PageCache, PageWrite};

/// One call to the store whose completions are awaited.
struct Batch {
    file: FileKey,
    pages: Vec<u64>,
    /// Completions that have not come.
    open: AtomicUsize,
    failure: Mutex<Option<Failure>>,
}

impl Batch {
    fn note_failure(&self, pages: Range<u64>, error: FsError) {
        let mut slot = self.failure.lock();
        let first = Failure { error, pages: Vec::new(), retry: true };
        slot.get_or_insert(first).pages.push(pages);
    }
}

impl PageCache {
    /// Takes the next dirty pages of a range and starts to write them. The last page taken, or
    /// `None` if there was none to take. Waits for a place in flight and for the store to take
    /// the batch, not for the data to be written.
    pub(crate) fn write_batch(
        &self,
        file: FileKey,
        pages: Range<u64>,
        cutoff: u64,
        max: u64,
    ) -> Option<IssuedWrites> {
        let mut state = self.place_in_flight();
        let free = state.limits.inflight - state.writeback_pages;
        let max = max.min(state.limits.batch).min(free);
        let was_idle = state.writeback_pages == 0;
        let taken = state.take_batch(file, pages, cutoff, max)?;
        if was_idle {
            state.throttle.on_busy();
        }
        drop(state);
        let count = taken.contents.len() as u64;
        // OK to unwrap: a batch is not empty.
        let last = taken.contents.last().unwrap().0;
        self.charge(count, 0);
        self.issue(file, taken);
        Some(IssuedWrites { last, count })
    }

    /// The lock, when another batch may go into flight.
    fn place_in_flight(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock();
        while state.writeback_pages >= state.limits.inflight {
            state = self.room.wait(state);
        }
        state
    }

    fn issue(&self, file: FileKey, taken: WritebackPages) {
        let Some(cache) = self.me.upgrade() else { return };
        let pages: Vec<u64> = taken.contents.iter().map(|(p, ..)| *p).collect();
        let runs = into_runs(taken);
        let started = self.store().and_then(|store| store.write_pages(file, runs));
        let batch = Arc::new(Batch {
            file,
            pages,
            open: AtomicUsize::new(started.as_ref().map_or(1, |c| c.len() + 1)),
            failure: Mutex::new(None),
        });
        match started {
            Err(error) => {
                let all = Failure { error, pages: Vec::new(), retry: false };
                *batch.failure.lock() = Some(all);
            }
            Ok(writes) => {
                for PageWrite { pages, done } in writes {
                    let (cache, batch) = (Arc::clone(&cache), Arc::clone(&batch));
                    done.on_done(move |answer| {
                        if let Err(e) = answer {
                            batch.note_failure(pages, FsError::Io { what: e.to_string() });
                        }
                        cache.close_one(&batch);
                    });
                }
            }
        }
        // The one more: so that the batch cannot end before all hooks are in place.
        self.close_one(&batch);
    }

    fn close_one(&self, batch: &Batch) {
        if batch.open.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        let failure = batch.failure.lock().take();
        let mut state = self.state.lock();
        let failed = state.end_batch(batch.file, &batch.pages, failure.as_ref());
        state.throttle.on_written(batch.pages.len() as u64 * PAGE_U64);
        if let Some(failure) = &failure {
            state.stats.failed_writes += 1;
            state.errors.record(failure.error.clone());
            state.file(batch.file).errors.record(failure.error.clone());
        }
        drop(state);
        self.room.notify_all();
        if let Some(failure) = failure
            && let Ok(store) = self.store()
        {
            failed.iter().for_each(|part| store.write_failed(part, &failure.error));
        }
    }

    /// The error that came since the file had `before` of them.
    pub(crate) fn error_after(state: &State, file: FileKey, before: u64) -> Result<()> {
        match state.files.get(&file) {
            Some(f) if f.errors.count() > before => match f.errors.last() {
                Some(e) => Err(e.clone()),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

/// What [`PageCache::write_batch`] has started.
pub(crate) struct IssuedWrites {
    pub last: u64,
    pub count: u64,
}

fn into_runs(taken: WritebackPages) -> Vec<DirtyRange> {
    let mut runs: Vec<DirtyRange> = Vec::new();
    for (page, data, parts) in taken.contents {
        match runs.last_mut() {
            Some(run) if run.first + run.pages.len() as u64 == page => {
                run.pages.push(data);
                run.parts.push(parts);
            }
            _ => runs.push(DirtyRange { first: page, pages: vec![data], parts: vec![parts] }),
        }
    }
    runs
}
