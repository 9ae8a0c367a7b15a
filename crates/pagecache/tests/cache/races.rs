//! Reads, writes and invalidations that cross each other.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use steadfast_pagecache::{FileKey, PAGE, PageCache, Settings};
use steadfast_runtime::{Sim, now, sleep, spawn};

use crate::store::Store;

const F: FileKey = FileKey(1);
const SIZE: u64 = 16 * PAGE as u64;

/// A store whose reads take 10 ms, and a reader of page 3 that is waiting for it.
fn reader_under_way() -> (Arc<Store>, Arc<PageCache>, steadfast_runtime::JoinHandle<u8>) {
    let store = Store::new(Duration::from_millis(10), Duration::from_millis(10));
    let cache = store.cache(Settings::default());
    store.make(1, SIZE);
    let reader = {
        let cache = Arc::clone(&cache);
        spawn("reader", move || cache.read(F, 3 * PAGE as u64, 1, SIZE).unwrap()[0])
    };
    sleep(Duration::from_millis(5));
    (store, cache, reader)
}

#[test]
fn a_read_that_began_before_an_invalidation_leaves_nothing() {
    Sim::new(0)
        .run(|| {
            let (store, cache, reader) = reader_under_way();
            // A direct write: the read in flight still returns what was there before.
            cache.invalidate(F, 0..SIZE);
            store.inner.lock().files.get_mut(&1).unwrap().write(3 * PAGE as u64, &[99]);
            cache.invalidate(F, 0..SIZE);
            let _old_or_new = reader.join().unwrap();
            assert_eq!(cache.read(F, 3 * PAGE as u64, 1, SIZE).unwrap()[0], 99);
        })
        .unwrap();
}

#[test]
fn a_write_during_a_read_of_the_page_stays() {
    Sim::new(0)
        .run(|| {
            let (_store, cache, reader) = reader_under_way();
            let page = Bytes::from(vec![42; PAGE]);
            cache.write(F, 3 * PAGE as u64, page, SIZE).unwrap();
            reader.join().unwrap();
            assert_eq!(cache.read(F, 3 * PAGE as u64, 1, SIZE).unwrap()[0], 42);
        })
        .unwrap();
}

#[test]
fn data_from_the_journal_beats_a_read_under_way() {
    Sim::new(0)
        .run(|| {
            let (store, cache, reader) = reader_under_way();
            store.inner.lock().files.get_mut(&1).unwrap().write(3 * PAGE as u64, &[43, 44]);
            cache.insert_clean(F, 3 * PAGE as u64, Bytes::from_static(&[43, 44]));
            reader.join().unwrap();
            assert_eq!(cache.read(F, 3 * PAGE as u64, 2, SIZE).unwrap()[..], [43, 44]);
            cache.insert_clean(F, 3 * PAGE as u64 + 1, Bytes::from_static(&[45]));
            assert_eq!(cache.read(F, 3 * PAGE as u64, 2, SIZE).unwrap()[..], [43, 45]);
            assert_eq!(cache.dirty_bytes(), 0);
        })
        .unwrap();
}

#[test]
fn forgetting_during_a_read_is_harmless() {
    Sim::new(0)
        .run(|| {
            let (_store, cache, reader) = reader_under_way();
            cache.forget(F);
            reader.join().unwrap();
            assert_eq!(cache.stats().memory_bytes, 0);
        })
        .unwrap();
}

#[test]
fn truncation_waits_for_writes_of_the_pages_it_drops() {
    Sim::new(0)
        .run(|| {
            let store = Store::new(Duration::from_millis(1), Duration::from_millis(10));
            let cache = store.cache(Settings::default());
            store.make(1, SIZE);
            cache.write(F, 5 * PAGE as u64, Bytes::from(vec![1; PAGE]), SIZE).unwrap();
            let flusher = {
                let cache = Arc::clone(&cache);
                spawn("flusher", move || cache.flush(F))
            };
            sleep(Duration::from_millis(5));
            let begun = now();
            cache.set_size(F, 6 * PAGE as u64).unwrap();
            assert_eq!(now(), begun, "the page in flight stays");
            cache.set_size(F, 5 * PAGE as u64).unwrap();
            assert_eq!(now().0 / 1_000_000, 10);
            assert_eq!(cache.stats().memory_bytes, 0);
            flusher.join().unwrap().unwrap();
        })
        .unwrap();
}

#[test]
fn a_truncated_tail_is_zero_in_the_cache_and_on_the_device() {
    Sim::new(0)
        .run(|| {
            let (store, cache) = Store::quick(Settings::default());
            store.make(1, SIZE);
            let cut = 2 * PAGE as u64 + 100;
            cache.set_size(F, cut).unwrap();
            store.inner.lock().files.get_mut(&1).unwrap().truncate(cut);
            cache.flush(F).unwrap();
            // Grown again: what was there must not come back.
            store.set_size(1, SIZE);
            assert!(store.contents(1)[cut as usize..].iter().all(|b| *b == 0));
            let back = cache.read(F, cut, PAGE, SIZE).unwrap();
            assert!(back.iter().all(|b| *b == 0));
        })
        .unwrap();
}

/// Eight readers and a writer of whole pages, each filled with its version: every page that is
/// read is of one version, and no reader sees time run backwards.
fn versions_only_grow() {
    let (store, cache) = Store::quick(Settings {
        memory_bytes: 64 * PAGE as u64,
        writeback_interval_ms: 1,
        dirty_expire_ms: 1,
        ..Settings::default()
    });
    let size = 100 * PAGE as u64;
    store.set_size(1, size);
    let writer = {
        let cache = Arc::clone(&cache);
        spawn("writer", move || {
            for version in 1..=200u8 {
                for page in (u64::from(version) % 7..100).step_by(7) {
                    let data = Bytes::from(vec![version; PAGE]);
                    cache.write(F, page * PAGE as u64, data, size).unwrap();
                }
            }
        })
    };
    let readers: Vec<_> = (0..8)
        .map(|r| {
            let cache = Arc::clone(&cache);
            spawn(format!("reader {r}"), move || {
                let mut seen = [0; 100];
                for i in 0..400 {
                    let page = (i * (r + 3)) % 90;
                    let data = cache.read(F, page * PAGE as u64, 8 * PAGE, size).unwrap();
                    for (p, chunk) in data.chunks(PAGE).enumerate() {
                        let p = page as usize + p;
                        assert!(chunk.iter().all(|b| *b == chunk[0]), "page {p} is torn");
                        assert!(chunk[0] >= seen[p], "page {p} went back");
                        seen[p] = chunk[0];
                    }
                }
            })
        })
        .collect();
    writer.join().unwrap();
    readers.into_iter().for_each(|r| r.join().unwrap());
    cache.flush_all().unwrap();
    for (page, chunk) in store.contents(1).chunks(PAGE).enumerate() {
        let last = (194..=200u8).find(|v| usize::from(*v) % 7 == page % 7).unwrap();
        assert!(chunk.iter().all(|b| *b == last), "page {page} is {}, not {last}", chunk[0]);
    }
    cache.shutdown();
}

#[test]
fn versions_only_grow_in_simulation() {
    Sim::new(0).run(versions_only_grow).unwrap();
}

#[test]
fn versions_only_grow_with_threads() {
    versions_only_grow();
}

#[test]
fn an_old_read_does_not_answer_for_a_new_one() {
    Sim::new(0)
        .run(|| {
            let (store, cache, old_reader) = reader_under_way();
            cache.invalidate(F, 0..SIZE);
            store.inner.lock().files.get_mut(&1).unwrap().write(3 * PAGE as u64, &[99]);
            cache.invalidate(F, 0..SIZE);
            // Its read is in flight when the old one ends.
            let new = cache.read(F, 3 * PAGE as u64, 1, SIZE).unwrap();
            assert_eq!(new[0], 99);
            old_reader.join().unwrap();
            assert_eq!(cache.read(F, 3 * PAGE as u64, 1, SIZE).unwrap()[0], 99);
        })
        .unwrap();
}
