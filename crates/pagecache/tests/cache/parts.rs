//! Which parts of a page a write-back says are dirty.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use bytes::Bytes;
use steadfast_block::Completion;
use steadfast_pagecache::{DirtyRange, FileKey, PAGE, PageCache, PageStore, PageWrite, Settings};
use steadfast_vfs::{FsError, Result};

const F: FileKey = FileKey(1);
const SIZE: u64 = 8 * PAGE as u64;

/// A store of zeros that keeps what it is given.
#[derive(Default)]
struct Kept {
    runs: Mutex<Vec<DirtyRange>>,
    full: AtomicBool,
    /// What happens while it is asked to write, once.
    meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl PageStore for Kept {
    fn read_pages(&self, _: FileKey, _: u64, count: u32) -> Result<Completion> {
        Ok(Completion::ready(Ok(Bytes::from(vec![0; count as usize * PAGE]))))
    }

    fn write_pages(&self, _: FileKey, runs: Vec<DirtyRange>) -> Result<Vec<PageWrite>> {
        let meanwhile = self.meanwhile.lock().unwrap().take();
        meanwhile.into_iter().for_each(|happens| happens());
        if self.full.load(Ordering::Relaxed) {
            return Err(FsError::NoSpace { what: "blocks" });
        }
        let pages = runs.iter().map(|run| run.first..run.first + run.pages.len() as u64);
        let done = || Completion::ready(Ok(Bytes::new()));
        let writes = pages.map(|pages| PageWrite { pages, done: done() }).collect();
        self.runs.lock().unwrap().extend(runs);
        Ok(writes)
    }
}

fn cache() -> (Arc<Kept>, Arc<PageCache>) {
    let store = Arc::new(Kept::default());
    let weak: Weak<dyn PageStore> = Arc::downgrade(&(Arc::clone(&store) as Arc<dyn PageStore>));
    let cache = PageCache::new(Settings::default(), weak);
    (store, cache)
}

impl Kept {
    /// What has been written since: pages, and of each which KiB are dirty.
    fn taken(&self) -> Vec<(u64, Vec<usize>)> {
        let runs = std::mem::take(&mut *self.runs.lock().unwrap());
        let mut all = Vec::new();
        for run in runs {
            for (page, parts) in (run.first..).zip(run.parts) {
                let is_dirty = |k: &usize| parts.touch(k * 1024..(k + 1) * 1024);
                all.push((page, (0..4).filter(is_dirty).collect()));
            }
        }
        all
    }
}

fn write(cache: &PageCache, at: u64, len: usize) {
    cache.write(F, at, Bytes::from(vec![7; len]), SIZE).unwrap();
}

#[test]
fn a_write_back_says_what_was_written_since_the_last() {
    let (store, cache) = cache();
    write(&cache, 1024 + 100, 10);
    write(&cache, 3 * 1024, 2 * 1024);
    write(&cache, 2 * PAGE as u64, PAGE);
    cache.flush(F).unwrap();
    assert_eq!(store.taken(), [(0, vec![1, 3]), (1, vec![0]), (2, vec![0, 1, 2, 3])]);
    write(&cache, 2 * 1024, 1);
    cache.flush(F).unwrap();
    assert_eq!(store.taken(), [(0, vec![2])]);
    // Zeros over data are a change, zeros over zeros are none.
    cache.zero_range(F, 1024..1500).unwrap();
    cache.zero_range(F, 0..512).unwrap();
    cache.flush(F).unwrap();
    assert_eq!(store.taken(), [(0, vec![1])]);
}

/// What a failed write-back had is nowhere but in memory: it goes with whatever is written next.
#[test]
fn after_a_failure_the_whole_page_is_dirty() {
    let (store, cache) = cache();
    write(&cache, 0, 1024);
    store.full.store(true, Ordering::Relaxed);
    assert!(cache.flush(F).is_err());
    store.full.store(false, Ordering::Relaxed);
    write(&cache, 3 * 1024, 1024);
    cache.flush(F).unwrap();
    assert_eq!(store.taken(), [(0, vec![0, 1, 2, 3])]);
}

/// The same for a page that is written to while its write-back fails: it never counts as failed.
#[test]
fn a_page_written_to_while_its_write_back_fails_is_dirty_as_a_whole() {
    let (store, cache) = cache();
    write(&cache, 0, 1024);
    write(&cache, PAGE as u64, 1024);
    store.full.store(true, Ordering::Relaxed);
    let same = Arc::clone(&cache);
    let happens = move || write(&same, 3 * 1024, 1024);
    *store.meanwhile.lock().unwrap() = Some(Box::new(happens));
    assert!(cache.flush(F).is_err());
    store.full.store(false, Ordering::Relaxed);
    cache.flush(F).unwrap();
    assert_eq!(store.taken(), [(0, vec![0, 1, 2, 3])]);
    // The other page is lost, and an fsync says so.
    assert!(cache.check_lost(F, &(0..SIZE)).is_err());
    // Without a failure only what was written meanwhile is dirty.
    write(&cache, PAGE as u64, 1024);
    let same = Arc::clone(&cache);
    let happens = move || write(&same, PAGE as u64 + 3 * 1024, 1024);
    *store.meanwhile.lock().unwrap() = Some(Box::new(happens));
    cache.flush(F).unwrap();
    store.taken();
    cache.flush(F).unwrap();
    assert_eq!(store.taken(), [(1, vec![3])]);
}
