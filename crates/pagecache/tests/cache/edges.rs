//! Writes and truncations that begin and end at every kind of place.

use bytes::Bytes;
use steadfast_pagecache::{FileKey, PAGE, Settings};
use steadfast_runtime::Sim;

use crate::store::Store;

const F: FileKey = FileKey(1);
const PLACES: [u64; 9] = [0, 1, 100, 4095, 4096, 4097, 5000, 8191, 8192];

#[test]
fn every_write_keeps_what_is_around_it() {
    Sim::new(0)
        .run(|| {
            for size in PLACES {
                for from in PLACES {
                    for to in PLACES.into_iter().filter(|to| *to > from) {
                        write_into_uncached(size, from, to);
                    }
                }
            }
        })
        .unwrap();
}

/// A file of `size` bytes of which nothing is in memory; a write from byte `from` to `to`.
fn write_into_uncached(size: u64, from: u64, to: u64) {
    let (store, cache) = Store::quick(Settings::default());
    store.make(1, size);
    let mut model = store.contents(1);
    model.resize(to.max(size) as usize, 0);
    model[from as usize..to as usize].fill(255);
    let data = Bytes::from(vec![255; (to - from) as usize]);
    cache.write(F, from, data, size).unwrap();
    store.set_size(1, to.max(size));
    let got = cache.read(F, 0, 3 * PAGE, to.max(size)).unwrap();
    assert!(got == model, "read after a write of {from}..{to} into {size} bytes");
    cache.flush(F).unwrap();
    assert!(store.contents(1) == model, "device after a write of {from}..{to} into {size} bytes");
    cache.shutdown();
}

#[test]
fn every_truncation_leaves_zeros_behind() {
    Sim::new(0)
        .run(|| {
            for size in PLACES {
                for cut in PLACES.into_iter().filter(|cut| *cut <= size) {
                    for cached in [false, true] {
                        truncate_and_grow(size, cut, cached);
                    }
                }
            }
        })
        .unwrap();
}

fn truncate_and_grow(size: u64, cut: u64, cached: bool) {
    let (store, cache) = Store::quick(Settings::default());
    store.make(1, size);
    let mut model = store.contents(1);
    if cached {
        cache.read(F, 0, 3 * PAGE, size).unwrap();
    }
    cache.set_size(F, cut).unwrap();
    store.inner.lock().files.get_mut(&1).unwrap().truncate(cut);
    model.truncate(cut as usize);
    assert!(cache.read(F, 0, 3 * PAGE, cut).unwrap() == model, "{size} cut to {cut}");
    model.resize(3 * PAGE, 0);
    let grown = 3 * PAGE as u64;
    store.set_size(1, grown);
    assert!(cache.read(F, 0, 3 * PAGE, grown).unwrap() == model, "{size} cut to {cut}, grown");
    cache.flush(F).unwrap();
    cache.invalidate(F, 0..grown);
    assert!(cache.read(F, 0, 3 * PAGE, grown).unwrap() == model, "{size} cut to {cut}, on disk");
    cache.shutdown();
}

#[test]
fn ends_of_the_world_are_errors_or_nothing() {
    Sim::new(0)
        .run(|| {
            let (_store, cache) = Store::quick(Settings::default());
            assert!(cache.write(F, u64::MAX - 1, Bytes::from_static(b"abc"), 0).is_err());
            cache.write(F, u64::MAX, Bytes::new(), 0).unwrap();
            assert_eq!(cache.read(F, 10, 10, 10).unwrap(), "");
            assert_eq!(cache.read(F, u64::MAX - 5, 10, u64::MAX).unwrap()[..], [0; 5]);
            cache.invalidate(F, 5..5);
            cache.invalidate(F, 0..u64::MAX);
            cache.set_size(F, u64::MAX - PAGE as u64).unwrap();
            cache.forget(FileKey(99));
        })
        .unwrap();
}
