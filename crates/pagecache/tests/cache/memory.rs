//! The memory limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use steadfast_pagecache::{FileKey, PAGE, Settings, evict};
use steadfast_runtime::{Sim, spawn};

use crate::store::{Call, Store, byte_at};

fn small() -> Settings {
    Settings { memory_bytes: 64 * PAGE as u64, ..Settings::default() }
}

#[test]
fn the_least_recently_used_clean_page_leaves_first() {
    Sim::new(0)
        .run(|| {
            let (store, cache) = Store::quick(Settings { read_ahead_max_bytes: 0, ..small() });
            let size = 200 * PAGE as u64;
            store.make(1, size);
            let read = |page: u64| {
                let data = cache.read(FileKey(1), page * PAGE as u64, 1, size).unwrap();
                assert_eq!(data[0], byte_at(page * PAGE as u64));
            };
            (1..65).for_each(read);
            read(1);
            read(100);
            store.take_calls();
            read(1);
            assert_eq!(store.take_calls(), []);
            read(2);
            assert_eq!(store.take_calls(), [Call::Read(1, 2, 1)]);
            assert_eq!(cache.stats().evicted_pages, 2);
            assert_eq!(cache.stats().memory_bytes, 64 * PAGE as u64);
        })
        .unwrap();
}

#[test]
fn whole_clean_pages_leave_when_asked_to() {
    Sim::new(0)
        .run(|| {
            let settings =
                Settings { read_ahead_max_bytes: 0, memory_bytes: 64 << 12, ..Settings::default() };
            let (store, cache) = Store::quick(settings);
            let (file, size) = (FileKey(1), 8 * PAGE as u64);
            store.make(1, size);
            cache.read(file, 0, 8 * PAGE, size).unwrap();
            cache.write(file, 3 * PAGE as u64, Bytes::from(vec![7; PAGE]), size).unwrap();
            store.take_calls();
            // From the middle of page 1 to the middle of page 6; page 3 is dirty.
            evict(&cache, file, PAGE as u64 + 1..6 * PAGE as u64 + 5);
            assert_eq!(cache.stats().evicted_pages, 3);
            let data = cache.read(file, 0, 8 * PAGE, size).unwrap();
            assert_eq!((data[3 * PAGE], data[2 * PAGE]), (7, byte_at(2 * PAGE as u64)));
            assert_eq!(store.take_calls(), [Call::Read(1, 2, 1), Call::Read(1, 4, 2)]);
        })
        .unwrap();
}

#[test]
fn pages_leave_for_what_others_have_down_to_half() {
    Sim::new(0)
        .run(|| {
            let store = Store::new(Duration::ZERO, Duration::ZERO);
            let others = Arc::new(AtomicU64::new(0));
            let settings = Settings { read_ahead_max_bytes: 0, ..small() };
            let cache = store.cache_beside(settings, Arc::clone(&others));
            let size = 200 * PAGE as u64;
            store.make(1, size);
            let pages_after = |page: u64, taken: u64| {
                others.store(taken * PAGE as u64, Ordering::Relaxed);
                cache.read(FileKey(1), page * PAGE as u64, 1, size).unwrap();
                cache.stats().memory_bytes / PAGE as u64
            };
            cache.read(FileKey(1), 0, 64 * PAGE, size).unwrap();
            assert_eq!(pages_after(64, 0), 64);
            assert_eq!(pages_after(65, 16), 48);
            assert_eq!(pages_after(66, 1000), 32);
            assert_eq!(pages_after(67, 0), 33);
        })
        .unwrap();
}

#[test]
fn memory_stays_bounded_and_data_right_under_readers_and_writers() {
    Sim::new(0)
        .run(|| {
            let (store, cache) = Store::quick(small());
            let size = 300 * PAGE as u64;
            for file in 1..=4 {
                store.make(file, size);
            }
            let tasks: Vec<_> = (1..=4)
                .map(|file| {
                    let cache = Arc::clone(&cache);
                    spawn(format!("task {file}"), move || {
                        let key = FileKey(file);
                        for i in 0..100 {
                            let at = i * 3 * PAGE as u64;
                            let data = Bytes::from(vec![file as u8; PAGE + 100]);
                            cache.write(key, at, data, size).unwrap();
                            let back = cache.read(key, at, 3 * PAGE, size).unwrap();
                            assert!(back[..PAGE + 100].iter().all(|b| *b == file as u8));
                            assert_eq!(back[PAGE + 100], byte_at(at + PAGE as u64 + 100));
                        }
                    })
                })
                .collect();
            tasks.into_iter().for_each(|t| t.join().unwrap());
            cache.flush_all().unwrap();
            let stats = cache.stats();
            assert!(stats.memory_bytes_max <= 64 * PAGE as u64, "{stats:?}");
            for file in 1..=4 {
                let disk = store.contents(file);
                let whole = cache.read(FileKey(file), 0, size as usize, size).unwrap();
                assert!(whole == disk);
            }
        })
        .unwrap();
}

#[test]
fn a_read_larger_than_memory_works() {
    Sim::new(0)
        .run(|| {
            let (store, cache) = Store::quick(small());
            let size = 1000 * PAGE as u64 - 10;
            store.make(1, size);
            let all = cache.read(FileKey(1), 5, usize::MAX, size).unwrap();
            assert!(all == store.contents(1)[5..]);
            assert!(cache.stats().memory_bytes_max <= 64 * PAGE as u64);
        })
        .unwrap();
}
