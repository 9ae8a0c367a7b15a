//! When and what the write-back task writes; how writers are held back.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use steadfast_pagecache::{DirtyLimit, FileKey, PAGE, PageCache, Settings};
use steadfast_runtime::{Sim, now, sleep, spawn};

use crate::store::{Call, Store};

const F: FileKey = FileKey(1);

fn write(cache: &PageCache, file: u64, page: u64, count: usize, byte: u8) {
    let at = page * PAGE as u64;
    cache.write(FileKey(file), at, Bytes::from(vec![byte; count * PAGE]), at).unwrap();
}

#[test]
fn aged_data_is_written_at_the_next_interval() {
    Sim::new(0)
        .run(|| {
            let settings = Settings::from_bdflush(&[40, 0, 0, 0, 60, 300, 60, 0, 0]);
            let (store, cache) = Store::quick(settings);
            write(&cache, 1, 0, 3, 1);
            sleep(Duration::from_millis(2900));
            assert_eq!(store.take_calls(), []);
            assert_eq!(cache.dirty_bytes(), 3 * PAGE as u64);
            // Looks every 0.6 s; the first after 3 s.
            sleep(Duration::from_millis(700));
            assert_eq!(store.take_calls(), [Call::Write(1, 0, 3)]);
            assert_eq!(cache.dirty_bytes(), 0);
            cache.shutdown();
        })
        .unwrap();
}

#[test]
fn what_is_dirtied_after_a_write_back_ages_anew() {
    Sim::new(0)
        .run(|| {
            let settings = Settings::from_bdflush(&[40, 0, 0, 0, 60, 300, 60, 0, 0]);
            let (store, cache) = Store::quick(settings);
            for page in 0..300 {
                write(&cache, 1, page, 1, 1);
                sleep(Duration::from_millis(100));
            }
            // In 30 s: each 3 s of age and up to 0.6 s until the next look.
            let calls = store.take_calls();
            assert!((8..=10).contains(&calls.len()), "{calls:?}");
            let written = |c: &Call| match c {
                Call::Write(_, _, count) => *count,
                Call::Read(..) => 0,
            };
            assert!(calls.iter().all(|c| (29..38).contains(&written(c))), "{calls:?}");
        })
        .unwrap();
}

#[test]
fn an_idle_cache_sets_no_timer() {
    // Were there a timer, the simulation would go on for ever instead of being a deadlock.
    let outcome = Sim::new(0).run(|| {
        let (_store, cache) = Store::quick(Settings::default());
        write(&cache, 1, 0, 1, 1);
        sleep(Duration::from_secs(60));
        assert_eq!(cache.dirty_bytes(), 0);
        let (_keep, never) = steadfast_runtime::channel::<()>();
        never.recv();
    });
    assert!(outcome.unwrap_err().to_string().contains("write-back"));
}

fn tight() -> Settings {
    Settings {
        memory_bytes: 4 << 20,
        dirty_background: DirtyLimit::Bytes(256 << 10),
        dirty_limit: DirtyLimit::Bytes(1 << 20),
        writeback_inflight_bytes: 256 << 10,
        ..Settings::default()
    }
}

#[test]
fn background_write_back_starts_at_its_limit_and_stops_below() {
    Sim::new(0)
        .run(|| {
            let (_store, cache) = Store::quick(tight());
            write(&cache, 1, 0, 64, 1);
            sleep(Duration::from_millis(10));
            assert_eq!(cache.dirty_bytes(), 256 << 10, "at the limit, not above");
            write(&cache, 1, 64, 1, 1);
            sleep(Duration::from_millis(10));
            assert!(cache.dirty_bytes() < 256 << 10);
        })
        .unwrap();
}

#[test]
fn writers_slow_down_to_the_device_and_share_it_fairly() {
    Sim::new(0)
        .run(|| {
            // 40 us a page: 100 MB/s.
            let store = Store::new(Duration::from_micros(10), Duration::from_micros(40));
            let cache = store.cache(tight());
            cache.start();
            let writers: Vec<_> = (1..=3)
                .map(|file| {
                    let cache = Arc::clone(&cache);
                    spawn(format!("writer {file}"), move || {
                        let mut longest = Duration::ZERO;
                        for i in 0..1000 {
                            let before = now();
                            write(&cache, file, i * 4, 4, 1);
                            longest = longest.max(now() - before);
                            assert!(cache.dirty_bytes() <= 1 << 20, "the hard limit holds");
                        }
                        (now(), longest)
                    })
                })
                .collect();
            let ends: Vec<_> = writers.into_iter().map(|w| w.join().unwrap()).collect();
            let last = ends.iter().map(|e| e.0).max().unwrap().as_secs_f64();
            let first = ends.iter().map(|e| e.0).min().unwrap().as_secs_f64();
            // 12,000 pages less at most the hard limit's 256 at 40 us.
            assert!((0.46..0.6).contains(&last), "{last} s for 0.47 s of work");
            assert!(first > 0.8 * last, "one writer was done after {first} of {last} s");
            for (_, longest) in ends {
                assert!(longest < Duration::from_millis(50), "a pause of {longest:?}");
            }
            assert!(cache.stats().throttled_ns > 0);
        })
        .unwrap();
}

#[test]
fn without_the_task_writers_write_back_themselves() {
    Sim::new(0)
        .run(|| {
            let store = Store::new(Duration::from_micros(10), Duration::from_micros(40));
            let cache = store.cache(tight());
            write(&cache, 1, 0, 2000, 1);
            assert!(cache.dirty_bytes() <= 1 << 20);
            cache.flush_all().unwrap();
            store.set_size(1, 2000 * PAGE as u64);
            assert!(store.contents(1).iter().all(|b| *b == 1));
        })
        .unwrap();
}

#[test]
fn large_runs_are_written_in_order_and_files_take_turns() {
    Sim::new(0)
        .run(|| {
            let settings = Settings {
                writeback_batch_bytes: 64 << 10,
                writeback_chunk_bytes: 128 << 10,
                dirty_expire_ms: 29_000,
                ..Settings::default()
            };
            let (store, cache) = Store::quick(settings);
            for page in (0..40).rev() {
                write(&cache, 1, page, 1, 1);
                write(&cache, 2, page * 2, 1, 1);
            }
            sleep(Duration::from_secs(60));
            let calls = store.take_calls();
            let of_one: Vec<_> = calls.iter().filter(|c| matches!(c, Call::Write(1, ..))).collect();
            assert_eq!(
                of_one,
                [&Call::Write(1, 0, 16), &Call::Write(1, 16, 16), &Call::Write(1, 32, 8)]
            );
            let turns: Vec<u64> = calls
                .iter()
                .map(|c| match c {
                    Call::Write(f, ..) => *f,
                    Call::Read(..) => 0,
                })
                .collect();
            let mut changes = turns.clone();
            changes.dedup();
            assert_eq!(changes, [1, 2, 1, 2], "32 pages each, then the rest");
            cache.flush_all().unwrap();
        })
        .unwrap();
}

#[test]
fn a_page_written_again_in_flight_is_copied_and_dirty_again() {
    Sim::new(0)
        .run(|| {
            let store = Store::new(Duration::from_micros(10), Duration::from_millis(10));
            let cache = store.cache(Settings::default());
            cache.start();
            store.set_size(1, PAGE as u64);
            write(&cache, 1, 0, 1, 1);
            let flusher = {
                let cache = Arc::clone(&cache);
                spawn("flusher", move || cache.flush(F).unwrap())
            };
            sleep(Duration::from_millis(5));
            // The store compares what it gets with what it was given.
            cache.write(F, 100, Bytes::from_static(b"new"), PAGE as u64).unwrap();
            assert_eq!(cache.dirty_bytes(), 2 * PAGE as u64, "one in flight, one dirty");
            assert_eq!(cache.stats().memory_bytes, 2 * PAGE as u64);
            flusher.join().unwrap();
            assert_eq!(cache.dirty_bytes(), PAGE as u64, "later writes are not waited for");
            assert_eq!(cache.stats().memory_bytes, PAGE as u64);
            assert!(store.contents(1).iter().all(|b| *b == 1));
            cache.flush(F).unwrap();
            assert_eq!(store.contents(1)[99..104], *b"\x01new\x01");
        })
        .unwrap();
}

#[test]
fn a_flush_of_a_page_in_flight_waits_and_writes_it_again() {
    Sim::new(0)
        .run(|| {
            let store = Store::new(Duration::from_micros(10), Duration::from_millis(10));
            let cache = store.cache(Settings::default());
            store.set_size(1, PAGE as u64);
            write(&cache, 1, 0, 1, 1);
            let first = {
                let cache = Arc::clone(&cache);
                spawn("first", move || cache.flush(F).unwrap())
            };
            sleep(Duration::from_millis(5));
            write(&cache, 1, 0, 1, 2);
            cache.flush(F).unwrap();
            assert_eq!(now().0 / 1_000_000, 20, "one after the other");
            assert!(store.contents(1).iter().all(|b| *b == 2));
            first.join().unwrap();
        })
        .unwrap();
}

#[test]
fn only_the_range_is_flushed() {
    Sim::new(0)
        .run(|| {
            let (store, cache) = Store::quick(Settings::default());
            write(&cache, 1, 0, 10, 1);
            cache.flush_range(F, 4097..12289).unwrap();
            assert_eq!(store.take_calls(), [Call::Write(1, 1, 3)]);
            cache.flush_range(F, 5..5).unwrap();
            assert_eq!(cache.file_dirty_bytes(F), 7 * PAGE as u64);
        })
        .unwrap();
}

#[test]
fn flushing_a_file_that_is_being_written_ends() {
    Sim::new(0)
        .run(|| {
            let (_store, cache) = Store::quick(Settings::default());
            write(&cache, 1, 0, 100, 1);
            let writer = {
                let cache = Arc::clone(&cache);
                spawn("writer", move || {
                    for i in 0..10_000 {
                        write(&cache, 1, i % 100, 1, 2);
                    }
                    now()
                })
            };
            sleep(Duration::from_micros(5));
            cache.flush(F).unwrap();
            let flushed = now();
            assert!(writer.join().unwrap() > flushed);
        })
        .unwrap();
}
