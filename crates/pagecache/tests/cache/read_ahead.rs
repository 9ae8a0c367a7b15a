//! Which reads the store sees.

use std::sync::Arc;
use std::time::Duration;

use steadfast_pagecache::{FileKey, PAGE, PageCache, Settings};
use steadfast_runtime::{Sim, sleep};

use crate::store::{Call, Store, byte_at};

const F: FileKey = FileKey(1);
const SIZE: u64 = 100 * PAGE as u64;

fn read(cache: &PageCache, page: u64, count: usize) {
    let at = page * PAGE as u64;
    let data = cache.read(F, at, count * PAGE, SIZE).unwrap();
    assert!(data.iter().enumerate().all(|(i, b)| *b == byte_at(at + i as u64)));
}

/// The store's reads as (first, count), in the order in which they were asked for.
fn reads(settings: Settings, body: impl FnOnce(&Arc<PageCache>) + 'static) -> Vec<(u64, u64)> {
    let run = move || {
        let (store, cache) = Store::quick(settings);
        store.make(1, SIZE);
        body(&cache);
        let calls = store.take_calls();
        calls
            .into_iter()
            .map(|c| match c {
                Call::Read(1, first, count) => (first, count),
                other => panic!("{other:?}"),
            })
            .collect()
    };
    Sim::new(0).run(run).unwrap()
}

#[test]
fn a_sequential_reader_gets_growing_windows() {
    let calls = reads(Settings::default(), |cache| {
        for page in 0..100 {
            read(cache, page, 1);
            sleep(Duration::from_micros(50));
        }
        assert_eq!(cache.stats().miss_pages, 1, "all others were read ahead");
        assert_eq!(cache.stats().read_ahead_pages, 99);
    });
    assert_eq!(calls, [(0, 4), (4, 8), (12, 16), (28, 32), (60, 32), (92, 8)]);
}

#[test]
fn a_reader_of_unaligned_small_records_is_sequential_too() {
    let calls = reads(Settings::default(), |cache| {
        for i in 0..SIZE / 1000 {
            cache.read(F, i * 1000, 1000, SIZE).unwrap();
        }
    });
    assert_eq!(calls, [(0, 4), (4, 8), (12, 16), (28, 32), (60, 32), (92, 8)]);
}

#[test]
fn random_reads_read_what_they_ask_for() {
    let calls = reads(Settings::default(), |cache| {
        for page in [50, 20, 70, 22, 90, 5, 47] {
            read(cache, page, 1);
        }
        assert_eq!(cache.stats().read_ahead_pages, 0);
    });
    assert_eq!(calls, [(50, 1), (20, 1), (70, 1), (22, 1), (90, 1), (5, 1), (47, 1)]);
}

#[test]
fn the_second_of_two_adjacent_reads_starts_a_window() {
    let calls = reads(Settings::default(), |cache| {
        read(cache, 40, 2);
        read(cache, 42, 2);
        read(cache, 44, 2);
    });
    // Four pages as twice the request; the marker is at 44.
    assert_eq!(calls, [(40, 2), (42, 4), (46, 8)]);
}

#[test]
fn large_requests_are_read_whole_with_a_window_behind_them() {
    let calls = reads(Settings::default(), |cache| {
        read(cache, 0, 32);
        read(cache, 32, 32);
        read(cache, 64, 36);
    });
    assert_eq!(calls, [(0, 32), (32, 32), (64, 32), (96, 4)]);
}

#[test]
fn two_readers_of_one_file_do_not_disturb_each_other() {
    let calls = reads(Settings::default(), |cache| {
        read(cache, 50, 1);
        for i in 0..20 {
            read(cache, i, 1);
            read(cache, 51 + i, 1);
        }
    });
    let expected =
        [(50, 1), (0, 4), (51, 4), (4, 8), (55, 8), (12, 16), (63, 16), (28, 22), (79, 21)];
    assert_eq!(calls, expected, "each page once");
}

#[test]
fn without_read_ahead_pages_are_read_one_request_at_a_time() {
    let settings = Settings { read_ahead_max_bytes: 0, ..Settings::default() };
    let calls = reads(settings, |cache| (0..4).for_each(|p| read(cache, p, 1)));
    assert_eq!(calls, [(0, 1), (1, 1), (2, 1), (3, 1)]);
}

#[test]
fn what_is_there_is_not_read_again() {
    let calls = reads(Settings::default(), |cache| {
        read(cache, 60, 2);
        read(cache, 56, 10);
        read(cache, 56, 10);
        assert_eq!(cache.stats().hit_pages, 12);
    });
    assert_eq!(calls, [(60, 2), (56, 4), (62, 4)]);
}

#[test]
fn two_readers_share_one_read() {
    let calls = reads(Settings::default(), |cache| {
        let tasks: Vec<_> = (0..4)
            .map(|i| {
                let cache = Arc::clone(cache);
                steadfast_runtime::spawn(format!("reader {i}"), move || read(&cache, 33, 3))
            })
            .collect();
        tasks.into_iter().for_each(|t| t.join().unwrap());
    });
    assert_eq!(calls, [(33, 3)]);
}

#[test]
fn a_bad_page_in_the_window_fails_only_who_asks_for_it() {
    let errors = Sim::new(0).run(|| {
        let (store, cache) = Store::quick(Settings::default());
        store.make(1, SIZE);
        store.inner.lock().bad_reads.insert((1, 2));
        let results: Vec<bool> =
            (0..6).map(|p| cache.read(F, p * PAGE as u64, PAGE, SIZE).is_err()).collect();
        results
    });
    assert_eq!(errors, Ok(vec![false, false, true, false, false, false]));
}
