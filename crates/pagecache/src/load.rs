//! One read from the store, and its waiters.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use steadfast_runtime::{Condvar, Mutex};
use steadfast_vfs::{FsError, Result};

use crate::{FileKey, PAGE, PAGE_U64, PageCache};

/// A read of consecutive pages that is in flight or done.
pub(crate) struct Load {
    pub file: FileKey,
    pub first: u64,
    pub count: u32,
    result: Mutex<Option<Result<Bytes>>>,
    done: Condvar,
}

impl Load {
    /// A load of these pages, fewer than 2^32; not started.
    pub(crate) fn new(file: FileKey, pages: Range<u64>) -> Arc<Load> {
        let count = u32::try_from(pages.end - pages.start).unwrap_or(u32::MAX);
        let (result, done) = (Mutex::new(None), Condvar::new());
        Arc::new(Load { file, first: pages.start, count, result, done })
    }

    /// The pages it reads.
    pub(crate) fn pages(&self) -> Range<u64> {
        self.first..self.first + u64::from(self.count)
    }

    /// Waits for the answer: all its pages' bytes.
    pub(crate) fn wait(&self) -> Result<Bytes> {
        let mut result = self.result.lock();
        loop {
            if let Some(r) = &*result {
                return r.clone();
            }
            result = self.done.wait(result);
        }
    }

    fn finish(&self, result: Result<Bytes>) {
        *self.result.lock() = Some(result);
        self.done.notify_all();
    }
}

impl PageCache {
    /// Asks the store for a load that has been begun. Does not wait for the answer.
    pub(crate) fn start_load(&self, load: Arc<Load>) {
        let Some(cache) = self.me.upgrade() else { return };
        let store = match self.store() {
            Ok(store) => store,
            Err(e) => return self.end_load(&load, Err(e)),
        };
        match store.read_pages(load.file, load.first, load.count) {
            Err(e) => self.end_load(&load, Err(e)),
            Ok(completion) => completion.on_done(move |answer| {
                let answer = match answer {
                    Ok(data) => Ok(data.clone()),
                    Err(e) => Err(FsError::Io { what: e.to_string() }),
                };
                cache.end_load(&load, answer);
            }),
        }
    }

    fn end_load(&self, load: &Arc<Load>, answer: Result<Bytes>) {
        let want = load.count as usize * PAGE;
        let answer = answer.and_then(|data| {
            if data.len() == want {
                return Ok(data);
            }
            let (got, at) = (data.len(), load.first * PAGE_U64);
            let what = format!("a read of {want} bytes at byte {at} of a file returned {got}");
            Err(FsError::Io { what })
        });
        self.state.lock().end_load(load, answer.as_ref().ok());
        load.finish(answer);
        self.room.notify_all();
    }
}
