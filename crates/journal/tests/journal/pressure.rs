//! Full logs, many tasks, and the rules of joining and committing.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use steadfast_journal::{
    Config, FormatOptions, FsBlock, Journal, JournalError, Log, Tid, Update, format, recover,
};
use steadfast_runtime::{Sim, now, sleep, spawn};
use uuid::Uuid;

use crate::disk::{Cache, Disk, Recorder};
use crate::load::{BLOCK, Load, Shape};

const FS_BLOCKS: u64 = 2000;

fn image(n: u8) -> Bytes {
    Bytes::from(vec![n; BLOCK])
}

fn blocks(range: std::ops::Range<u64>, n: u8) -> Update {
    Update { writes: range.map(|b| (FsBlock(b), image(n))).collect(), ..Update::default() }
}

fn formatted(change: impl FnOnce(&mut FormatOptions)) -> Vec<u8> {
    let plain = Disk::plain("log", vec![0; 1027 * BLOCK]);
    let log = Log::external(plain.device(), BLOCK as u32).unwrap();
    let mut options = FormatOptions::new(Uuid::from_u128(1));
    change(&mut options);
    format(&log, &options).unwrap();
    plain.bytes()
}

/// Recording disks with delays: the file system's, and the smallest log there is.
fn set_up() -> (Arc<Recorder>, Arc<Disk>, Log) {
    let recorder = Recorder::new();
    let fs = recorder.disk("fs", vec![0; FS_BLOCKS as usize * BLOCK], Cache::Volatile);
    let log = recorder.disk("log", formatted(|_| ()), Cache::Volatile);
    let log = Log::external(log.device(), BLOCK as u32).unwrap();
    (recorder, fs, log)
}

#[test]
fn many_tasks_and_a_full_log_do_not_deadlock() {
    for (seed, stop) in [(1, 0.0), (2, 0.3), (3, 0.9)] {
        Sim::new(seed)
            .run(move || {
                let (recorder, fs, log) = set_up();
                let shape = Shape { most: 230, data_percent: 10, commit_percent: 5 };
                let load = Load::new(fs.device(), recorder, 0..FS_BLOCKS, shape, seed);
                let config = Config {
                    checkpoint_start_fraction: 1.0,
                    checkpoint_stop_fraction: stop,
                    ..Config::default()
                };
                let journal = Journal::open(log.clone(), fs.device(), config).unwrap();
                let tasks: Vec<_> = (0..8)
                    .map(|i| {
                        let (journal, load) = (Arc::clone(&journal), Arc::clone(&load));
                        spawn(format!("task {i}"), move || {
                            for _ in 0..40 {
                                load.step(&journal).unwrap();
                            }
                        })
                    })
                    .collect();
                tasks.into_iter().for_each(|t| t.join().unwrap());
                load.check_live(&journal, || fs.bytes());
                assert!(journal.stats().space_waits > 5, "{:?}", journal.stats());
                journal.close().unwrap();
                assert!(recover(&log, &*fs).unwrap().was_clean);
                assert_eq!(load.judge(&fs.bytes(), load.updates(), true), Ok(320));
            })
            .unwrap();
    }
}

/// Images that are not home stay within their bound, whoever commits, and nobody is stuck.
#[test]
fn images_in_memory_are_bounded() {
    const MOST: u64 = 300 * BLOCK as u64;
    for (seed, commit_percent) in [(1, 5), (2, 0), (3, 60)] {
        Sim::new(seed)
            .run(move || {
                let (recorder, fs, log) = set_up();
                let shape = Shape { most: 100, data_percent: 10, commit_percent };
                let load = Load::new(fs.device(), recorder, 0..FS_BLOCKS, shape, seed);
                let config = Config {
                    checkpoint_start_fraction: 1.0,
                    image_bytes_max: MOST,
                    ..Config::default()
                };
                let held = Arc::clone(&config.image_bytes);
                let journal = Journal::open(log.clone(), fs.device(), config).unwrap();
                let tasks: Vec<_> = (0..8)
                    .map(|i| {
                        let (journal, load) = (Arc::clone(&journal), Arc::clone(&load));
                        let held = Arc::clone(&held);
                        spawn(format!("task {i}"), move || {
                            (0..40)
                                .map(|_| {
                                    load.step(&journal).unwrap();
                                    held.load(Ordering::Relaxed)
                                })
                                .max()
                        })
                    })
                    .collect();
                let most = tasks.into_iter().filter_map(|t| t.join().unwrap()).max().unwrap();
                assert!(most <= MOST && most > MOST / 2, "{most}");
                load.check_live(&journal, || fs.bytes());
                journal.close().unwrap();
                assert_eq!(held.load(Ordering::Relaxed), 0);
                assert_eq!(load.judge(&fs.bytes(), load.updates(), true), Ok(320));
            })
            .unwrap();
    }
}

/// What a checkpoint is writing stays in memory, also when a younger commit has replaced it.
#[test]
fn images_that_are_still_written_home_are_counted() {
    Sim::new(1)
        .run(|| {
            let (_, fs, log) = set_up();
            let config = Config::default();
            let held = Arc::clone(&config.image_bytes);
            let journal = Journal::open(log, fs.device(), config).unwrap();
            let in_memory = || held.load(Ordering::Relaxed) / BLOCK as u64;
            let commit = |update| {
                let tid = journal.submit(update).unwrap();
                journal.commit(tid).unwrap();
            };
            // Every second block: no two are one request, so that the round takes its time.
            let every_second = |n| Update {
                writes: (0..100).map(|b| (FsBlock(b * 2), image(n))).collect(),
                ..Update::default()
            };
            commit(every_second(1));
            let writing = Arc::clone(&journal);
            let round = spawn("checkpoint", move || writing.checkpoint_committed().unwrap());
            sleep(Duration::from_micros(10));
            commit(every_second(2));
            assert_eq!(journal.stats().home_blocks, 0, "the round has not ended");
            assert_eq!(in_memory(), 200);
            round.join().unwrap();
            assert_eq!(in_memory(), 100);
            journal.close().unwrap();
            assert_eq!(in_memory(), 0);
            assert!((0..100).all(|b| fs.block(b * 2, BLOCK)[0] == 2));
        })
        .unwrap();
}

/// An update is not to be larger than what may be in memory.
#[test]
fn an_update_is_as_large_as_memory_allows() {
    let most = |image_bytes_max| {
        Sim::new(1)
            .run(move || {
                let (_, fs, log) = set_up();
                let config = Config { image_bytes_max, ..Config::default() };
                let journal = Journal::open(log, fs.device(), config).unwrap();
                let (most, bytes) = (journal.max_update_blocks(), journal.image_bytes());
                journal.close().unwrap();
                (most, bytes)
            })
            .unwrap()
    };
    let (of_log, (now, max)) = most(u64::MAX);
    assert!((200..=256).contains(&of_log) && now == 0 && max > 1000 * BLOCK as u64);
    // The smallest log's share is always allowed.
    assert_eq!(most(1), (of_log, (0, 1)));
}

/// An update that is larger than the bound joins alone; so does what joins on demand only.
#[test]
fn what_is_larger_than_the_bound_is_let_in_alone() {
    for on_demand in [false, true] {
        Sim::new(1)
            .run(move || {
                let (_, fs, log) = set_up();
                let bound = 10 * BLOCK as u64;
                let config = Config { image_bytes_max: bound, on_demand, ..Config::default() };
                let journal = Journal::open(log, fs.device(), config).unwrap();
                for n in 0..5 {
                    journal.submit(blocks(n * 50..n * 50 + 50, n as u8)).unwrap();
                }
                assert_eq!(journal.stats().commits, if on_demand { 0 } else { 4 });
                journal.close().unwrap();
                assert!(fs.bytes()[4 * 50 * BLOCK..][..50 * BLOCK].iter().all(|b| *b == 4));
            })
            .unwrap();
    }
}

/// The same on threads: what the simulation cannot show.
#[test]
fn real_threads() {
    let fs = Disk::plain("fs", vec![0; FS_BLOCKS as usize * BLOCK]);
    let log_disk = Disk::plain("log", formatted(|_| ()));
    let log = Log::external(log_disk.device(), BLOCK as u32).unwrap();
    let shape = Shape { most: 100, data_percent: 30, commit_percent: 30 };
    let load = Load::new(fs.device(), Recorder::new(), 0..FS_BLOCKS, shape, 9);
    let journal = Journal::open(log.clone(), fs.device(), Config::default()).unwrap();
    let tasks: Vec<_> = (0..8)
        .map(|i| {
            let (journal, load) = (Arc::clone(&journal), Arc::clone(&load));
            spawn(format!("task {i}"), move || {
                for _ in 0..200 {
                    load.step(&journal).unwrap();
                }
            })
        })
        .collect();
    tasks.into_iter().for_each(|t| t.join().unwrap());
    load.check_live(&journal, || fs.bytes());
    journal.close().unwrap();
    assert_eq!(load.judge(&fs.bytes(), 1600, true), Ok(1600));
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = || {
        let body = || {
            let (recorder, fs, log) = set_up();
            let shape = Shape { most: 60, data_percent: 20, commit_percent: 20 };
            let load = Load::new(fs.device(), recorder, 0..FS_BLOCKS, shape, 4);
            let journal = Journal::open(log, fs.device(), Config::default()).unwrap();
            let tasks: Vec<_> = (0..4)
                .map(|i| {
                    let (journal, load) = (Arc::clone(&journal), Arc::clone(&load));
                    spawn(format!("task {i}"), move || {
                        (0..30).for_each(|_| load.step(&journal).unwrap());
                    })
                })
                .collect();
            tasks.into_iter().for_each(|t| t.join().unwrap());
            let stats = journal.stats();
            journal.close().unwrap();
            (now(), stats)
        };
        let (value, _, trace) = Sim::new(7).traced().run_full(body).unwrap();
        (value, trace)
    };
    assert!(run() == run());
}

#[test]
fn commits_are_shared() {
    Sim::new(1)
        .run(|| {
            let (_, fs, log) = set_up();
            let journal = Journal::open(log, fs.device(), Config::default()).unwrap();
            let tasks: Vec<_> = (0..16)
                .map(|i| {
                    let journal = Arc::clone(&journal);
                    spawn(format!("task {i}"), move || {
                        for n in 0..10 {
                            let tid = journal.submit(blocks(i..i + 1, n)).unwrap();
                            journal.commit(tid).unwrap();
                        }
                    })
                })
                .collect();
            tasks.into_iter().for_each(|t| t.join().unwrap());
            let commits = journal.stats().commits;
            assert!((10..=25).contains(&commits), "{commits} commits for 160 requests");
            journal.close().unwrap();
        })
        .unwrap();
}

#[test]
fn batching_waits_for_company_but_not_long() {
    let commits_with = |max_batch_time| {
        Sim::new(1)
            .run(move || {
                let (_, fs, log) = set_up();
                let config = Config { max_batch_time, ..Config::default() };
                let journal = Journal::open(log, fs.device(), config).unwrap();
                let tasks: Vec<_> = (0..8)
                    .map(|i| {
                        let journal = Arc::clone(&journal);
                        spawn(format!("task {i}"), move || {
                            for n in 0..20 {
                                sleep(Duration::from_micros(100 * i));
                                let tid = journal.submit(blocks(i..i + 1, n)).unwrap();
                                journal.commit(tid).unwrap();
                            }
                        })
                    })
                    .collect();
                tasks.into_iter().for_each(|t| t.join().unwrap());
                let commits = journal.stats().commits;
                journal.close().unwrap();
                commits
            })
            .unwrap()
    };
    let (at_once, batched) =
        (commits_with(Duration::ZERO), commits_with(Duration::from_millis(15)));
    assert!(batched < at_once, "{batched} commits batched, {at_once} without");
}

#[test]
fn an_update_nobody_waits_for_is_durable_after_the_interval() {
    Sim::new(1)
        .run(|| {
            let (_, fs, log) = set_up();
            let journal = Journal::open(log.clone(), fs.device(), Config::default()).unwrap();
            let tid = journal.submit(blocks(1..2, 1)).unwrap();
            sleep(Duration::from_millis(4900));
            assert!(tid.is_after(journal.committed_tid()));
            sleep(Duration::from_millis(200));
            assert_eq!(journal.committed_tid(), tid);
            // Nothing else happens: an idle journal writes nothing.
            sleep(Duration::from_secs(100));
            assert_eq!(journal.stats().commits, 1);
            journal.abandon();
            assert_eq!(recover(&log, &*fs).unwrap().transactions, 1);
        })
        .unwrap();
}

#[test]
fn numbers_and_clean_logs() {
    Sim::new(1)
        .run(|| {
            let (_, fs, log) = set_up();
            let journal = Journal::open(log.clone(), fs.device(), Config::default()).unwrap();
            assert_eq!((journal.running_tid(), journal.committed_tid()), (Tid(2), Tid(1)));
            // Nothing to commit is committed; so is a number not reached yet.
            journal.commit(Tid(2)).unwrap();
            journal.commit(Tid(99)).unwrap();
            assert_eq!(journal.submit(blocks(5..8, 1)).unwrap(), Tid(2));
            journal.start_commit(Tid(2));
            journal.commit(Tid(2)).unwrap();
            assert_eq!(journal.running_tid(), Tid(3));
            journal.checkpoint_all().unwrap();
            assert!(journal.image(FsBlock(5)).is_none());
            assert_eq!(fs.block(7, BLOCK), image(1));
            assert!(log.read_superblock().unwrap().start().is_none());
            // And on from there.
            let tid = journal.submit(blocks(5..6, 2)).unwrap();
            journal.commit(tid).unwrap();
            assert!(log.read_superblock().unwrap().start().is_some());
            journal.close().unwrap();
            assert_eq!(log.read_superblock().unwrap().sequence(), Tid(4));
            let refusals = [journal.submit(blocks(1..2, 1)).map(drop), journal.wait_for_room(1, 0)];
            for r in refusals {
                assert_eq!(r.unwrap_err().to_string(), "the journal is closed");
            }
            let again = Journal::open(log, fs.device(), Config::default()).unwrap();
            assert_eq!(again.running_tid(), Tid(5));
        })
        .unwrap();
}

#[test]
fn images_are_the_newest_until_revoked() {
    Sim::new(1)
        .run(|| {
            let (_, fs, log) = set_up();
            let journal = Journal::open(log, fs.device(), Config::default()).unwrap();
            let b = FsBlock(9);
            let tid = journal.submit(blocks(9..10, 1)).unwrap();
            journal.commit(tid).unwrap();
            journal.submit(blocks(9..10, 2)).unwrap();
            assert_eq!(journal.image(b).unwrap(), image(2));
            let revoke = || Update { revokes: vec![b], ..Update::default() };
            let tid = journal.submit(revoke()).unwrap();
            assert_eq!(journal.image(b), None);
            journal.start_commit(tid);
            sleep(Duration::from_micros(10));
            assert_eq!(journal.image(b), None, "while committing");
            journal.commit(tid).unwrap();
            assert_eq!(journal.image(b), None);
            journal.close().unwrap();
            assert_eq!(fs.block(9, BLOCK), image(0), "a revoked image went home");
        })
        .unwrap();
}

#[test]
fn updates_that_can_never_join_are_refused() {
    let fs = Disk::plain("fs", vec![0; FS_BLOCKS as usize * BLOCK]);
    let log_disk = Disk::plain("log", formatted(|o| o.wide = false));
    let log = Log::external(log_disk.device(), BLOCK as u32).unwrap();
    let journal = Journal::open(log, fs.device(), Config::default()).unwrap();
    let refused = |update: Update| match journal.submit(update) {
        Err(JournalError::Refused { what }) => what,
        other => panic!("{other:?}"),
    };
    let most = journal.max_update_blocks() as u64;
    assert!((200..256).contains(&most), "{most}");
    assert!(refused(blocks(0..most + 10, 1)).contains("larger journal"));
    journal.submit(Update { revokes: vec![FsBlock(1)], ..blocks(0..most, 1) }).unwrap();
    let mut short = blocks(0..1, 1);
    short.writes[0].1.truncate(512);
    assert!(refused(short).contains("512 bytes"));
    let high = Update { revokes: vec![FsBlock(1 << 32)], ..Update::default() };
    assert!(refused(high).contains("32-bit"));
    journal.close().unwrap();
}

/// data=journal: the log takes the data at the speed of large writes, and what goes home is
/// sorted and merged.
#[test]
fn journaled_data_goes_home_in_large_sorted_writes() {
    Sim::new(1)
        .run(|| {
            let (_, fs, log) = set_up();
            let config = Config { checkpoint_start_fraction: 0.4, ..Config::default() };
            let journal = Journal::open(log, fs.device(), config).unwrap();
            let mut order: Vec<u64> = (0..30).collect();
            order.sort_by_key(|n| n * 7 % 30);
            for n in order {
                journal.submit(blocks(n * 64..n * 64 + 64, n as u8)).unwrap();
            }
            journal.checkpoint_all().unwrap();
            let stats = journal.stats();
            assert_eq!(stats.home_blocks, 30 * 64);
            assert!(stats.home_writes <= 30, "{stats:?}");
            journal.close().unwrap();
            assert!((0..30 * 64).all(|b| fs.block(b, BLOCK)[0] == (b / 64) as u8));
        })
        .unwrap();
}
