//! A store in memory that takes time, keeps a log, fails on demand, and checks what it is given.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use steadfast_block::{BlockError, Completion};
use steadfast_pagecache::{
    DirtyRange, FailedPages, FileKey, PAGE, PageCache, PageStore, PageWrite, Settings,
};
use steadfast_runtime::{Mutex, Nanos, now, sleep, spawn};
use steadfast_vfs::{FsError, Result};

/// A call that the store has seen: file, first page, pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    Read(u64, u64, u64),
    Write(u64, u64, u64),
}

/// One file as the device has it.
#[derive(Debug, Default, Clone)]
pub struct Disk {
    pub pages: BTreeMap<u64, Vec<u8>>,
    pub size: u64,
}

impl Disk {
    /// The bytes of these pages as a read returns them.
    fn read(&self, first: u64, count: u64) -> Vec<u8> {
        let mut out = Vec::with_capacity(count as usize * PAGE);
        for p in first..first + count {
            match self.pages.get(&p) {
                Some(data) => out.extend_from_slice(data),
                None => out.extend_from_slice(&[0; PAGE]),
            }
        }
        let visible = self.size.saturating_sub(first * PAGE as u64) as usize;
        if let Some(beyond) = out.get_mut(visible..) {
            beyond.fill(0);
        }
        out
    }

    pub fn contents(&self) -> Vec<u8> {
        let mut all = self.read(0, self.size.div_ceil(PAGE as u64));
        all.truncate(self.size as usize);
        all
    }

    pub fn write(&mut self, offset: u64, data: &[u8]) {
        for (i, b) in data.iter().enumerate() {
            let at = offset + i as u64;
            let page = self.pages.entry(at / PAGE as u64).or_insert_with(|| vec![0; PAGE]);
            page[(at % PAGE as u64) as usize] = *b;
        }
    }

    pub fn truncate(&mut self, size: u64) {
        self.size = size;
        self.pages.retain(|p, _| *p < size.div_ceil(PAGE as u64));
    }
}

#[derive(Default)]
pub struct Inner {
    pub files: BTreeMap<u64, Disk>,
    pub calls: Vec<Call>,
    /// Pages whose reads fail.
    pub bad_reads: BTreeSet<(u64, u64)>,
    /// Pages whose writes fail when they are done.
    pub bad_writes: BTreeSet<(u64, u64)>,
    /// What was reported of failed writes.
    pub failed: Vec<FailedPages>,
    /// Whether starting a write fails for lack of space.
    pub full: bool,
    in_flight: BTreeSet<(u64, u64)>,
    /// When the writes submitted so far will be done: the device does one after the other.
    busy_until: Nanos,
}

pub struct Store {
    pub inner: Mutex<Inner>,
    pub read_time: Duration,
    /// For each page.
    pub write_time: Duration,
    me: Weak<Store>,
}

impl Store {
    pub fn new(read_time: Duration, write_time: Duration) -> Arc<Store> {
        let inner = Mutex::new(Inner::default());
        Arc::new_cyclic(|me| Store { inner, read_time, write_time, me: me.clone() })
    }

    /// A store that takes a microsecond a page to write and ten to read, and a cache on it whose
    /// write-back task runs.
    pub fn quick(settings: Settings) -> (Arc<Store>, Arc<PageCache>) {
        let store = Store::new(Duration::from_micros(10), Duration::from_micros(1));
        let cache = store.cache(settings);
        cache.start();
        (store, cache)
    }

    pub fn cache(self: &Arc<Self>, settings: Settings) -> Arc<PageCache> {
        let weak: Weak<dyn PageStore> = self.me.clone() as _;
        PageCache::new(settings, weak)
    }

    /// A cache whose memory others use too.
    pub fn cache_beside(
        self: &Arc<Self>,
        settings: Settings,
        others: Arc<AtomicU64>,
    ) -> Arc<PageCache> {
        let weak: Weak<dyn PageStore> = self.me.clone() as _;
        PageCache::beside(settings, weak, others)
    }

    /// Makes a file of `size` bytes whose byte at `i` is `byte_at(i)`.
    pub fn make(&self, file: u64, size: u64) {
        let data: Vec<u8> = (0..size).map(byte_at).collect();
        let mut inner = self.inner.lock();
        let disk = inner.files.entry(file).or_default();
        disk.write(0, &data);
        disk.size = size;
    }

    pub fn set_size(&self, file: u64, size: u64) {
        self.inner.lock().files.entry(file).or_default().size = size;
    }

    pub fn take_calls(&self) -> Vec<Call> {
        std::mem::take(&mut self.inner.lock().calls)
    }

    pub fn contents(&self, file: u64) -> Vec<u8> {
        self.inner.lock().files.get(&file).map(Disk::contents).unwrap_or_default()
    }

    fn finish_write(&self, file: u64, run: &DirtyRange, before: &[Bytes]) -> bool {
        // Copies made when the write began: what is in flight must not have changed.
        assert_eq!(run.pages, before, "data in flight has changed");
        let mut inner = self.inner.lock();
        let mut good = true;
        for (page, data) in (run.first..).zip(&run.pages) {
            assert!(inner.in_flight.remove(&(file, page)));
            if inner.bad_writes.contains(&(file, page)) {
                good = false;
                continue;
            }
            inner.files.entry(file).or_default().pages.insert(page, data.to_vec());
        }
        good
    }
}

pub fn byte_at(i: u64) -> u8 {
    (i / PAGE as u64 * 7 + i % 251 + 1) as u8
}

fn io_error(op: &'static str) -> BlockError {
    BlockError::Io { device: "store".into(), op, offset: 0, reason: "injected".into() }
}

fn later(time: Duration, job: impl FnOnce() + Send + 'static) {
    if time.is_zero() {
        job();
    } else {
        spawn("device", move || {
            sleep(time);
            job();
        });
    }
}

impl PageStore for Store {
    fn read_pages(&self, file: FileKey, first: u64, count: u32) -> Result<Completion> {
        let (completer, completion) = Completion::pending();
        let count = u64::from(count);
        let answer = {
            let mut inner = self.inner.lock();
            inner.calls.push(Call::Read(file.0, first, count));
            let bad = (first..first + count).any(|p| inner.bad_reads.contains(&(file.0, p)));
            // As of the beginning of the read: what has changed at its end makes it stale.
            let data = inner.files.entry(file.0).or_default().read(first, count);
            if bad { Err(io_error("read")) } else { Ok(Bytes::from(data)) }
        };
        later(self.read_time, move || completer.complete(answer));
        Ok(completion)
    }

    fn write_pages(&self, file: FileKey, runs: Vec<DirtyRange>) -> Result<Vec<PageWrite>> {
        let mut pages = 0;
        {
            let mut inner = self.inner.lock();
            if inner.full {
                return Err(FsError::NoSpace { what: "blocks" });
            }
            for run in &runs {
                let count = run.pages.len() as u64;
                inner.calls.push(Call::Write(file.0, run.first, count));
                pages += run.pages.len() as u32;
                for (page, data) in (run.first..).zip(&run.pages) {
                    assert_eq!(data.len(), PAGE);
                    let fresh = inner.in_flight.insert((file.0, page));
                    assert!(fresh, "page {page} is in flight twice");
                }
            }
        }
        let ascending =
            runs.windows(2).all(|w| w[0].first + (w[0].pages.len() as u64) < w[1].first);
        assert!(ascending, "runs ascend and do not touch");
        let done_at = {
            let mut inner = self.inner.lock();
            inner.busy_until = inner.busy_until.max(now()) + self.write_time * pages;
            inner.busy_until
        };
        let before: Vec<Vec<Bytes>> = runs
            .iter()
            .map(|r| r.pages.iter().map(|p| Bytes::copy_from_slice(p)).collect())
            .collect();
        let mut completions = Vec::new();
        let mut jobs = Vec::new();
        for (run, before) in runs.into_iter().zip(before) {
            let (completer, completion) = Completion::pending();
            let pages = run.first..run.first + run.pages.len() as u64;
            completions.push(PageWrite { pages, done: completion });
            jobs.push((run, before, completer));
        }
        // OK to unwrap: the test holds the store.
        let me = self.me.upgrade().unwrap();
        later(done_at.since(now()), move || {
            for (run, before, completer) in jobs {
                let good = me.finish_write(file.0, &run, &before);
                completer.complete(if good { Ok(Bytes::new()) } else { Err(io_error("write")) });
            }
        });
        Ok(completions)
    }

    fn write_failed(&self, what: &FailedPages, _: &FsError) {
        self.inner.lock().failed.push(what.clone());
    }
}
