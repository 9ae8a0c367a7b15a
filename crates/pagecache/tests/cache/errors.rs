//! Failed writes and reads.

use bytes::Bytes;
use steadfast_pagecache::{DirtyLimit, FailedPages, FileKey, PAGE, Settings};
use steadfast_runtime::Sim;
use steadfast_vfs::FsError;

use crate::store::Store;

const F: FileKey = FileKey(1);

#[test]
fn each_handle_gets_the_error_of_a_failed_write_back_once() {
    Sim::new(0)
        .run(|| {
            let (store, cache) = Store::quick(Settings::default());
            let (mut a, mut b) = (cache.error_cursor(F), cache.error_cursor(F));
            let mut any = cache.any_error_cursor();
            store.inner.lock().bad_writes.insert((1, 1));
            cache.write(F, 0, Bytes::from(vec![7; 3 * PAGE]), 0).unwrap();
            assert!(cache.flush(F).is_err());
            assert!(cache.flush(F).is_err(), "it is written again, and fails again");
            assert!(matches!(cache.fsync(F, &mut a), Err(FsError::Io { .. })));
            assert_eq!(cache.stats().retry_bytes, 3 * PAGE as u64, "it was one request");
            store.inner.lock().bad_writes.clear();
            assert_eq!(cache.fsync(F, &mut a), Ok(()));
            assert!(cache.error_since(F, &mut b).is_err());
            assert_eq!(cache.error_since(F, &mut b), Ok(()));
            assert!(cache.any_error_since(&mut any).is_err());
            let mut late = cache.error_cursor(F);
            assert_eq!(cache.error_since(F, &mut late), Ok(()), "it was reported once");
            let data = cache.read(F, 0, 3 * PAGE, 3 * PAGE as u64).unwrap();
            assert!(data.iter().all(|b| *b == 7), "the data is still readable");
            assert_eq!(cache.stats().failed_writes, 3);
            assert_eq!((cache.dirty_bytes(), cache.stats().retry_bytes), (0, 0));
            store.set_size(1, 3 * PAGE as u64);
            assert_eq!(store.contents(1), [7; 3 * PAGE]);
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
            assert!(cache.fsync(F, &mut handle).is_err());
            store.inner.lock().bad_writes.clear();
            assert_eq!(cache.fsync(F, &mut handle), Ok(()));
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
            let error = Err(FsError::NoSpace { what: "blocks" });
            assert_eq!(cache.fsync(F, &mut handle), error);
            // Where the store cannot even begin, trying again makes no sense: the data is lost,
            // and stays so until it is cut off.
            store.inner.lock().full = false;
            assert_eq!(cache.fsync(F, &mut handle), error);
            cache.set_size(F, 0).unwrap();
            assert_eq!(cache.fsync(F, &mut handle), Ok(()));
            assert_eq!(cache.stats().lost_bytes, 0);
        })
        .unwrap();
}

#[test]
fn what_could_not_be_written_is_kept_up_to_a_bound() {
    Sim::new(0)
        .run(|| {
            let memory = 128 * PAGE as u64;
            let settings = Settings { memory_bytes: memory, ..Settings::default() };
            let (store, cache) = Store::quick(settings);
            let size = 24 * PAGE as u64;
            store.make(1, size);
            store.make(2, 2 * memory);
            store.inner.lock().bad_writes.extend((0..24).map(|page| (1, page)));
            let mut handle = cache.error_cursor(F);
            let new = Bytes::from(vec![9; size as usize]);
            cache.write(F, 0, new.clone(), size).unwrap();
            assert!(cache.fsync(F, &mut handle).is_err());
            let part = |pages, retry| FailedPages { file: F, pages, retry };
            let left = [part(0..16, true), part(16..24, false)];
            // Those that are kept may have failed twice by now.
            assert_eq!(store.inner.lock().failed[..2], left);
            assert_eq!(cache.failed_pages(9), left);
            // Memory is needed for others: the lost pages go, the kept ones stay.
            for at in (0..2 * memory).step_by(PAGE) {
                cache.read(FileKey(2), at, PAGE, 2 * memory).unwrap();
            }
            assert_eq!(cache.read(F, 0, 16 * PAGE, size).unwrap(), new.slice(..16 * PAGE));
            assert_ne!(cache.read(F, 16 * PAGE as u64, 1, size).unwrap(), new.slice(..1));
            assert!(cache.should_answer(F, 3..4), "the device has not what a read must show");
            // The disk is well again: what was kept is saved, what was lost is not forgotten.
            store.inner.lock().bad_writes.clear();
            for _ in 0..2 {
                assert!(cache.fsync(F, &mut handle).is_err());
            }
            assert_eq!(cache.failed_pages(9), [part(16..24, false)]);
            assert_eq!(cache.check_lost(F, &(0..16 * PAGE as u64)), Ok(()));
            // A direct write to a part of a page does not bring back the rest of it.
            let at = 23 * PAGE as u64;
            cache.read(F, at, PAGE, size).unwrap();
            cache.invalidate(F, at..at + 1024);
            assert_eq!(cache.failed_pages(9), [part(16..24, false)]);
            cache.write(F, 16 * PAGE as u64, new.slice(16 * PAGE..), size).unwrap();
            assert_eq!(cache.fsync(F, &mut handle), Ok(()));
            assert_eq!(store.contents(1), new);
            assert_eq!((cache.stats().retry_bytes, cache.stats().lost_bytes), (0, 0));
        })
        .unwrap();
}

/// Once a lost page is no longer in memory, who writes a part of it begins with old bytes.
#[test]
fn a_part_of_a_lost_page_does_not_bring_back_the_rest() {
    Sim::new(0)
        .run(|| {
            let memory = 128 * PAGE as u64;
            let settings = Settings { memory_bytes: memory, ..Settings::default() };
            let (store, cache) = Store::quick(settings);
            let size = 24 * PAGE as u64;
            store.make(1, size);
            store.make(2, 2 * memory);
            store.inner.lock().bad_writes.extend((0..24).map(|page| (1, page)));
            let mut handle = cache.error_cursor(F);
            let new = Bytes::from(vec![9; size as usize]);
            cache.write(F, 0, new.clone(), size).unwrap();
            assert!(cache.fsync(F, &mut handle).is_err());
            let lost = [FailedPages { file: F, pages: 16..24, retry: false }];
            for at in (0..2 * memory).step_by(PAGE) {
                cache.read(FileKey(2), at, PAGE, 2 * memory).unwrap();
            }
            store.inner.lock().bad_writes.clear();
            let at = 16 * PAGE as u64;
            cache.write(F, at + 100, Bytes::from_static(b"part"), size).unwrap();
            for _ in 0..2 {
                assert!(cache.fsync(F, &mut handle).is_err());
                assert_eq!(cache.failed_pages(9), lost);
            }
            assert_ne!(store.contents(1)[at as usize..][..100], [9; 100]);
            cache.write(F, at, new.slice(16 * PAGE..), size).unwrap();
            assert_eq!(cache.fsync(F, &mut handle), Ok(()));
            assert_eq!(store.contents(1), new);
        })
        .unwrap();
}

#[test]
fn what_is_written_anew_or_cut_off_is_not_missed() {
    Sim::new(0)
        .run(|| {
            let (store, cache) = Store::quick(Settings::default());
            let size = 8 * PAGE as u64;
            store.make(1, size);
            store.inner.lock().bad_writes.extend((0..8).map(|page| (1, page)));
            cache.write(F, 0, Bytes::from(vec![9; size as usize]), size).unwrap();
            assert!(cache.flush(F).is_err());
            // Cut to two pages and a half; the third is dirty, the first is replaced in the
            // journal, the second written in part.
            store.inner.lock().bad_writes.clear();
            cache.set_size(F, 2 * PAGE as u64 + 100).unwrap();
            cache.insert_clean(F, 0, Bytes::from(vec![5; PAGE]));
            assert_eq!(cache.stats().retry_bytes, PAGE as u64);
            cache.write(F, PAGE as u64, Bytes::from_static(b"part"), size).unwrap();
            assert_eq!(cache.stats().retry_bytes, 0);
            store.set_size(1, 2 * PAGE as u64 + 100);
            cache.flush(F).unwrap();
            let on_device = store.contents(1);
            assert_ne!(on_device[..PAGE], [9; PAGE], "it is in the journal, not here");
            assert_eq!(on_device[PAGE..PAGE + 5], *b"part\x09");
            assert_eq!(on_device[2 * PAGE..], [9; 100]);
            cache.forget(F);
            assert_eq!(cache.stats().memory_bytes, 0);
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
