//! Random operations against a plain vector of bytes, in simulation and with threads.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use steadfast_pagecache::{DirtyLimit, FileKey, PAGE, PageCache, Settings};
use steadfast_runtime::{Sim, sleep, spawn};

use crate::store::Store;

const SIZE_MAX: u64 = 60 * PAGE as u64;

#[derive(Debug, Clone)]
enum Op {
    Write { at: u64, len: usize },
    Read { at: u64, len: usize },
    Flush,
    FlushRange { at: u64, len: u64 },
    DirectWrite { page: u64, count: u64 },
    JournalledWrite { at: u64, len: usize },
    Invalidate { at: u64, len: u64 },
    SetSize { size: u64 },
    Sleep { us: u64 },
}

fn op() -> impl Strategy<Value = Op> {
    let at = || prop_oneof![0..SIZE_MAX, (0..SIZE_MAX / PAGE as u64).prop_map(|p| p * PAGE as u64)];
    let len = || prop_oneof![1..300usize, 1..40_000usize, (1..9usize).prop_map(|n| n * PAGE)];
    prop_oneof![
        6 => (at(), len()).prop_map(|(at, len)| Op::Write { at, len }),
        6 => (at(), len()).prop_map(|(at, len)| Op::Read { at, len }),
        1 => Just(Op::Flush),
        1 => (at(), len()).prop_map(|(at, len)| Op::FlushRange { at, len: len as u64 }),
        1 => (0..50u64, 1..9u64).prop_map(|(page, count)| Op::DirectWrite { page, count }),
        1 => (at(), len()).prop_map(|(at, len)| Op::JournalledWrite { at, len }),
        1 => (at(), len()).prop_map(|(at, len)| Op::Invalidate { at, len: len as u64 }),
        1 => at().prop_map(|size| Op::SetSize { size }),
        2 => (0..400u64).prop_map(|us| Op::Sleep { us }),
    ]
}

/// One file, driven as a file system would that holds its inode lock.
struct File {
    key: u64,
    store: Arc<Store>,
    cache: Arc<PageCache>,
    model: Vec<u8>,
    written: u64,
}

impl File {
    fn size(&self) -> u64 {
        self.model.len() as u64
    }

    /// Bytes that no other write has.
    fn data(&mut self, len: usize) -> Vec<u8> {
        self.written += 1;
        let stamp = self.written.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (0..len as u64).map(|i| ((stamp ^ i.wrapping_mul(stamp)) >> 24) as u8).collect()
    }

    fn put(&mut self, at: u64, data: &[u8]) {
        let end = at as usize + data.len();
        if self.model.len() < end {
            self.model.resize(end, 0);
        }
        self.model[at as usize..end].copy_from_slice(data);
    }

    fn check(&self, at: u64, len: usize) {
        let got = self.cache.read(FileKey(self.key), at, len, self.size()).unwrap();
        let from = self.model.len().min(at as usize);
        let want = &self.model[from..self.model.len().min(from + len)];
        let differs = got.iter().zip(want).position(|(a, b)| a != b);
        assert_eq!((got.len(), differs), (want.len(), None), "file {} at {at}", self.key);
    }

    fn run(&mut self, op: &Op) {
        let key = FileKey(self.key);
        match *op {
            Op::Write { at, len } => {
                let data = self.data(len);
                self.cache.write(key, at, Bytes::from(data.clone()), self.size()).unwrap();
                self.put(at, &data);
                self.store.set_size(self.key, self.size());
            }
            Op::Read { at, len } => self.check(at, len),
            Op::Flush => {
                self.cache.flush(key).unwrap();
                assert_eq!(self.cache.file_dirty_bytes(key), 0);
                assert!(self.store.contents(self.key) == self.model);
            }
            Op::FlushRange { at, len } => {
                self.cache.flush_range(key, at..at + len).unwrap();
                let disk = self.store.contents(self.key);
                let (from, to) = (at as usize, (at + len) as usize);
                let range = from.min(disk.len())..to.min(disk.len());
                assert!(disk[range.clone()] == self.model[range]);
            }
            Op::DirectWrite { page, count } => {
                let at = page * PAGE as u64;
                let data = self.data(count as usize * PAGE);
                let range = at..at + data.len() as u64;
                self.cache.flush_range(key, range.clone()).unwrap();
                self.cache.invalidate(key, range.clone());
                self.store.inner.lock().files.entry(self.key).or_default().write(at, &data);
                self.put(at, &data);
                self.store.set_size(self.key, self.size());
                self.cache.invalidate(key, range);
            }
            Op::JournalledWrite { at, len } => {
                // The store's read sees the journal's image at once. Such a file has no dirty
                // pages of its own.
                self.cache.flush(key).unwrap();
                let data = self.data(len);
                self.store.inner.lock().files.entry(self.key).or_default().write(at, &data);
                self.put(at, &data);
                self.store.set_size(self.key, self.size());
                self.cache.insert_clean(key, at, Bytes::from(data));
            }
            Op::Invalidate { at, len } => {
                self.cache.flush_range(key, at..at + len).unwrap();
                self.cache.invalidate(key, at..at + len);
            }
            Op::SetSize { size } => {
                if size < self.size() {
                    self.cache.set_size(key, size).unwrap();
                    let mut inner = self.store.inner.lock();
                    inner.files.entry(self.key).or_default().truncate(size);
                }
                self.store.set_size(self.key, size);
                self.model.resize(size as usize, 0);
            }
            Op::Sleep { us } => sleep(Duration::from_micros(us)),
        }
    }
}

fn settings(memory_pages: u64, limit_pages: u64) -> Settings {
    Settings {
        memory_bytes: memory_pages * PAGE as u64,
        dirty_background: DirtyLimit::Percent(5),
        dirty_limit: DirtyLimit::Bytes(limit_pages * PAGE as u64),
        dirty_expire_ms: 1,
        writeback_interval_ms: 1,
        writeback_batch_bytes: 5 * PAGE as u64,
        ..Settings::default()
    }
}

/// Runs the files' operations at the same time; the counters at the end.
fn drive(files: Vec<Vec<Op>>, settings: Settings) -> String {
    let limit = settings.memory_bytes;
    let DirtyLimit::Bytes(dirty_limit) = settings.dirty_limit else { unreachable!() };
    let store = Store::new(Duration::from_micros(30), Duration::from_micros(7));
    let cache = store.cache(settings);
    cache.start();
    let tasks: Vec<_> = files
        .into_iter()
        .enumerate()
        .map(|(i, ops)| {
            let key = i as u64 + 1;
            let (store, cache) = (Arc::clone(&store), Arc::clone(&cache));
            spawn(format!("file {key}"), move || {
                let mut file = File { key, store, cache, model: Vec::new(), written: key << 40 };
                for op in &ops {
                    file.run(op);
                    assert!(file.cache.dirty_bytes() <= dirty_limit);
                }
                file.check(0, usize::MAX >> 1);
                file
            })
        })
        .collect();
    let files: Vec<File> = tasks.into_iter().map(|t| t.join().unwrap()).collect();
    cache.flush_all().unwrap();
    assert_eq!(cache.dirty_bytes(), 0);
    for file in &files {
        assert!(store.contents(file.key) == file.model, "file {} on the device", file.key);
        cache.forget(FileKey(file.key));
    }
    let stats = cache.stats();
    assert_eq!(stats.memory_bytes, 0);
    assert!(stats.memory_bytes_max <= limit, "{stats:?}");
    cache.shutdown();
    format!("{stats:?} {:?}", store.take_calls())
}

fn files() -> impl Strategy<Value = Vec<Vec<Op>>> {
    prop::collection::vec(prop::collection::vec(op(), 0..40), 1..4)
}

/// So many cases, or a multiple in a soak.
fn cases(cases: u32) -> ProptestConfig {
    let soak = std::env::var("STEADFAST_SOAK").ok().and_then(|s| s.parse().ok());
    let cases = cases.saturating_mul(soak.unwrap_or(1));
    ProptestConfig { cases, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn in_simulation_it_is_a_vector_of_bytes_and_every_run_the_same(
        files in files(),
        memory in 64..200u64,
        limit in 2..100u64,
    ) {
        let run = || {
            let files = files.clone();
            Sim::new(7).traced().run_full(move || drive(files, settings(memory, limit))).unwrap()
        };
        let (first, again) = (run(), run());
        prop_assert_eq!(&first.0, &again.0);
        prop_assert!(first.2 == again.2, "the traces differ");
    }
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn with_threads_it_is_a_vector_of_bytes(
        files in files(),
        memory in 64..200u64,
        limit in 2..100u64,
    ) {
        drive(files, settings(memory, limit));
    }
}
