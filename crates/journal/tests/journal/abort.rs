//! The first failed write or flush ends the journal, for good and for everybody who waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use steadfast_block::{BlockDevice, BlockError, Completion};
use steadfast_journal::{
    Config, FormatOptions, FsBlock, Journal, JournalError, Log, Update, clear_errno, format,
    recover,
};
use steadfast_runtime::{Sim, sleep, spawn};
use uuid::Uuid;

use crate::disk::{Cache, Disk, Recorder};

const BLOCK: usize = 1024;

fn update(block: u64, n: u8) -> Update {
    let writes = vec![(FsBlock(block), Bytes::from(vec![n; BLOCK]))];
    Update { writes, ..Update::default() }
}

/// A file system's disk and a log's disk, and the log, formatted.
fn set_up() -> (Arc<Disk>, Arc<Disk>, Log) {
    let plain = Disk::plain("log", vec![0; 1100 * BLOCK]);
    let log = Log::external(plain.device(), BLOCK as u32).unwrap();
    format(&log, &FormatOptions::new(Uuid::from_u128(1))).unwrap();
    let recorder = Recorder::new();
    let fs = recorder.disk("fs", vec![0; 300 * BLOCK], Cache::Volatile);
    let log_disk = recorder.disk("log", plain.bytes(), Cache::Volatile);
    let log = Log::external(log_disk.device(), BLOCK as u32).unwrap();
    (fs, log_disk, log)
}

fn is_aborted<T: std::fmt::Debug>(r: Result<T, JournalError>) -> bool {
    matches!(r, Err(JournalError::Aborted { .. }))
}

#[test]
fn a_failed_log_write_reaches_everybody() {
    Sim::new(1)
        .run(|| {
            let (fs, log_disk, log) = set_up();
            let journal = Journal::open(log.clone(), fs.device(), Config::default()).unwrap();
            let good = journal.submit(update(1, 1)).unwrap();
            journal.commit(good).unwrap();
            log_disk.fail_writes_at(5 * BLOCK as u64..1100 * BLOCK as u64);
            let waiters: Vec<_> = (0..5)
                .map(|i| {
                    let journal = Arc::clone(&journal);
                    spawn(format!("waiter {i}"), move || {
                        let tid = journal.submit(update(i, 2)).unwrap();
                        journal.commit(tid)
                    })
                })
                .collect();
            for w in waiters {
                assert!(is_aborted(w.join().unwrap()));
            }
            let text = journal.aborted().unwrap().to_string();
            assert!(text.contains("injected"), "{text}");
            assert!(is_aborted(journal.submit(update(3, 3))));
            assert!(is_aborted(journal.checkpoint_all()));
            // What was durable stays so, and readers still see the newest.
            journal.commit(good).unwrap();
            assert_eq!(journal.image(FsBlock(2)).unwrap(), vec![2; BLOCK]);
            assert!(is_aborted(journal.close()));

            let report = recover(&log, &*fs).unwrap();
            assert_eq!((report.transactions, report.errno), (1, -5));
            clear_errno(&log).unwrap();
            assert_eq!(log.read_superblock().unwrap().errno(), 0);
        })
        .unwrap();
}

#[test]
fn a_failed_home_write_or_flush_aborts() {
    for flush in [false, true] {
        Sim::new(1)
            .run(move || {
                let (fs, _, log) = set_up();
                let journal = Journal::open(log.clone(), fs.device(), Config::default()).unwrap();
                let tid = journal.submit(update(7, 1)).unwrap();
                journal.commit(tid).unwrap();
                if flush {
                    fs.fail_flushes();
                } else {
                    fs.fail_writes_at(0..300 * BLOCK as u64);
                }
                assert!(is_aborted(journal.checkpoint_all()));
                assert!(journal.aborted().is_some());
                assert!(is_aborted(journal.close()));
                // The transaction is still in the log.
                assert!(log.read_superblock().unwrap().start().is_some());
            })
            .unwrap();
    }
}

#[test]
fn failed_ordered_data_aborts_and_nothing_is_released() {
    Sim::new(1)
        .run(|| {
            let (fs, _, log) = set_up();
            let journal = Journal::open(log.clone(), fs.device(), Config::default()).unwrap();
            let released = Arc::new(AtomicBool::new(false));
            let flag = Arc::clone(&released);
            let error =
                BlockError::Gone { device: "fs".into(), reason: "somebody pulled it".into() };
            let tid = journal
                .submit(Update {
                    wait_for: vec![Completion::ready(Err(error))],
                    on_commit: vec![Box::new(move |_| flag.store(true, Ordering::SeqCst))],
                    ..update(1, 1)
                })
                .unwrap();
            assert!(is_aborted(journal.commit(tid)));
            assert!(!released.load(Ordering::SeqCst));
            drop(journal);
            assert_eq!(recover(&log, &*fs).unwrap().transactions, 0);
        })
        .unwrap();
}

#[test]
fn dropping_leaves_the_log_to_be_recovered_and_ends_the_tasks() {
    Sim::new(1)
        .run(|| {
            let (fs, _, log) = set_up();
            let device: Arc<dyn BlockDevice> = fs.device();
            let journal =
                Journal::open(log.clone(), Arc::clone(&device), Config::default()).unwrap();
            let tid = journal.submit(update(1, 1)).unwrap();
            journal.commit(tid).unwrap();
            journal.submit(update(2, 2)).unwrap();
            drop(journal);
            sleep(Duration::from_secs(60));
            assert_eq!(Arc::strong_count(&device), Arc::strong_count(&fs), "a task is alive");
            let report = recover(&log, &*fs).unwrap();
            assert_eq!(report.transactions, 1);
            assert_eq!((fs.block(1, BLOCK), fs.block(2, BLOCK)), (vec![1; BLOCK], vec![0; BLOCK]));
        })
        .unwrap();
}

#[test]
fn recovery_that_fails_can_be_tried_again() {
    Sim::new(1)
        .run(|| {
            let (fs, _, log) = set_up();
            let journal = Journal::open(log.clone(), fs.device(), Config::default()).unwrap();
            let tid = journal.submit(update(1, 1)).unwrap();
            journal.commit(tid).unwrap();
            journal.abandon();
            fs.fail_writes_at(0..300 * BLOCK as u64);
            assert!(matches!(recover(&log, &*fs), Err(JournalError::Block(_))));
            fs.fail_writes_at(0..0);
            assert_eq!(recover(&log, &*fs).unwrap().blocks_replayed, 1);
            assert_eq!(fs.block(1, BLOCK), [1; BLOCK]);
        })
        .unwrap();
}
