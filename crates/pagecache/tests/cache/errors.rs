//! Failed writes and reads.

use bytes::Bytes;
use steadfast_pagecache::{DirtyLimit, FileKey, PAGE, Settings};
use steadfast_runtime::Sim;
use steadfast_vfs::FsError;

use crate::store::Store;

const F: FileKey = FileKey(1);

#[test]
fn each_handle_is_told_once_of_a_failed_write_back() {
    Sim::new(0)
        .run(|| {
            let (store, cache) = Store::quick(Settings::default());
            let (mut a, mut b) = (cache.error_cursor(F), cache.error_cursor(F));
            let mut any = cache.any_error_cursor();
            store.inner.lock().bad_writes.insert((1, 1));
            cache.write(F, 0, Bytes::from(vec![7; 3 * PAGE]), 0).unwrap();
            assert!(cache.flush(F).is_err());
            assert_eq!(cache.flush(F), Ok(()), "the pages are clean now");
            assert!(matches!(cache.fsync(F, &mut a), Err(FsError::Io { .. })));
            assert_eq!(cache.fsync(F, &mut a), Ok(()));
            assert!(cache.error_since(F, &mut b).is_err());
            assert_eq!(cache.error_since(F, &mut b), Ok(()));
            assert!(cache.any_error_since(&mut any).is_err());
            let mut late = cache.error_cursor(F);
            assert_eq!(cache.error_since(F, &mut late), Ok(()), "somebody has been told");
            let data = cache.read(F, 0, 3 * PAGE, 3 * PAGE as u64).unwrap();
            assert!(data.iter().all(|b| *b == 7), "the data is still readable");
            assert_eq!(cache.stats().failed_writes, 1);
            assert_eq!(cache.dirty_bytes(), 0);
        })
        .unwrap();
}

#[test]
fn fsync_reports_what_fails_during_it_once() {
    Sim::new(0)
        .run(|| {
            let (store, cache) = Store::quick(Settings::default());
            let mut handle = cache.error_cursor(F);
            store.inner.lock().bad_writes.insert((1, 0));
            cache.write(F, 0, Bytes::from(vec![7; PAGE]), 0).unwrap();
            assert!(cache.fsync(F, &mut handle).is_err());
            assert_eq!(cache.fsync(F, &mut handle), Ok(()));
            store.inner.lock().bad_writes.clear();
            cache.write(F, 0, Bytes::from(vec![8; PAGE]), PAGE as u64).unwrap();
            assert_eq!(cache.fsync(F, &mut handle), Ok(()));
        })
        .unwrap();
}

#[test]
fn a_full_store_is_an_error_and_does_not_hang_writers() {
    Sim::new(0)
        .run(|| {
            let small = Settings {
                memory_bytes: 1 << 20,
                dirty_limit: DirtyLimit::Bytes(64 << 10),
                ..Settings::default()
            };
            let (store, cache) = Store::quick(small);
            store.inner.lock().full = true;
            let mut handle = cache.error_cursor(F);
            for i in 0..64 {
                let at = i * 16 * PAGE as u64;
                cache.write(F, at, Bytes::from(vec![7; 16 * PAGE]), at).unwrap();
            }
            let error = cache.fsync(F, &mut handle).unwrap_err();
            assert_eq!(error, FsError::NoSpace { what: "blocks" });
        })
        .unwrap();
}

#[test]
fn a_page_that_cannot_be_read_cannot_be_written_in_part() {
    Sim::new(0)
        .run(|| {
            let (store, cache) = Store::quick(Settings::default());
            let size = 2 * PAGE as u64;
            store.make(1, size);
            store.inner.lock().bad_reads.insert((1, 0));
            assert!(cache.write(F, 10, Bytes::from_static(b"x"), size).is_err());
            assert_eq!(cache.dirty_bytes(), 0);
            cache.write(F, 0, Bytes::from(vec![1; PAGE]), size).unwrap();
            cache.write(F, 10, Bytes::from_static(b"x"), size).unwrap();
            assert_eq!(cache.read(F, 10, 1, size).unwrap(), "x");
        })
        .unwrap();
}

#[test]
fn without_its_store_the_cache_fails_and_does_not_hang() {
    Sim::new(0)
        .run(|| {
            let (store, cache) = Store::quick(Settings::default());
            cache.write(F, 0, Bytes::from(vec![1; PAGE]), 0).unwrap();
            drop(store);
            assert!(cache.read(F, 0, 1, PAGE as u64).is_ok());
            assert!(cache.read(F, PAGE as u64, 1, 2 * PAGE as u64).is_err());
            assert!(cache.flush(F).is_err());
        })
        .unwrap();
}
