//! Recovery logs what fast commits have changed as one transaction: after a cut at any instant all
//! of it is there in the end, and the log is clean.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_journal::{
    Checksums, Config, FastTag, FormatOptions, FsBlock, Journal, JournalError, Log, Overlay,
    Recovery, Tid, Update, format,
};
use steadfast_runtime::Sim;
use uuid::Uuid;

use crate::disk::{Cache, Disk, Recorder};
use crate::load::{BLOCK, stamp};
use crate::recovered::Owner;
use crate::rng::Rng;

const FS_BLOCKS: usize = 1200;
const FAST_BLOCKS: u32 = 48;
const LOG_BLOCKS: usize = 1024 + 2 + FAST_BLOCKS as usize;

fn log_on(disk: &Arc<Disk>) -> Log {
    Log::external(disk.device(), BLOCK as u32).unwrap()
}

fn update(block: u64, n: u64) -> Update {
    let writes = vec![(FsBlock(block), Bytes::from(stamp(block, n)))];
    Update { writes, ..Update::default() }
}

/// What the file system makes of the fast commits: block images, more than one descriptor has tags
/// for. Some begin with the journal's magic number.
fn changes(count: usize) -> Overlay {
    (10..10 + count as u64).map(|b| (FsBlock(b), Bytes::from(stamp(b, b)))).collect()
}

/// A log with one transaction of block 5, and a fast commit of the next. That one, of a hundred
/// blocks, begins to be committed too: the events of `recorder` from the number returned on.
fn run(checksums: Checksums) -> (Arc<Recorder>, usize) {
    let recorder = Recorder::new();
    let inner = Arc::clone(&recorder);
    let fast_at = Sim::new(3)
        .run(move || {
            let formatted = Disk::plain("log", vec![0; LOG_BLOCKS * BLOCK]);
            let mut how = FormatOptions::new(Uuid::from_u128(9));
            (how.fast_blocks, how.checksums) = (FAST_BLOCKS, checksums);
            format(&log_on(&formatted), &how).unwrap();
            let fs = inner.disk("fs", vec![0; FS_BLOCKS * BLOCK], Cache::Volatile);
            let log = inner.disk("log", formatted.bytes(), Cache::Volatile);
            let config =
                Config { fast_commits: true, max_request_bytes: 8 << 10, ..Config::default() };
            let journal = Journal::open(log_on(&log), fs.device(), config).unwrap();
            let first = journal.submit(update(5, 1)).unwrap();
            journal.commit(first).unwrap();
            let tid = journal.submit(update(6, 2)).unwrap();
            let tag = FastTag { tag: 6, value: vec![7; 40].into() };
            assert!(journal.fast_commit(tid, &[tag]).unwrap());
            let fast_at = inner.len();
            for b in 10..110 {
                journal.submit(update(b, 3)).unwrap();
            }
            journal.commit(tid).unwrap();
            journal.abandon();
            fast_at
        })
        .unwrap();
    (recorder, fast_at)
}

fn check_whole(fs: &Disk, changes: &Overlay, what: &str) {
    for (block, image) in changes {
        assert!(fs.block(block.0, BLOCK) == image[..], "{what}: block {block} is not home");
    }
}

#[test]
fn the_changes_are_logged_and_go_home() {
    for checksums in [Checksums::V3, Checksums::V2, Checksums::V1, Checksums::None] {
        let (recorder, fast_at) = run(checksums);
        let states = recorder.cut(fast_at, 100, &mut Rng::new(1));
        let [fs, disk] = [0, 1].map(|i| Disk::plain("after", states[i].clone()));
        let (log, changes, owner) = (log_on(&disk), changes(150), Owner::default());
        let found = Recovery::read(&log, &*fs).unwrap();
        assert_eq!((found.report.range, found.report.fast_commits), (Some((Tid(2), Tid(2))), 2));
        let report = found.finish(&log, &*fs, &changes, Some(&owner)).unwrap();
        check_whole(&fs, &changes, &format!("{checksums:?}"));
        // Their own transaction has number 3, and one number is skipped.
        assert_eq!((report.next_tid, report.newest_tid()), (Tid(5), Tid(3)));
        let asked = owner.asked.lock().unwrap();
        let due = [(Tid(2), vec![FsBlock(5)]), (Tid(3), changes.keys().copied().collect())];
        assert_eq!(*asked, due);
        let clean = Recovery::read(&log, &*fs).unwrap();
        assert!(clean.report.was_clean && clean.fast_commits.is_none());
        assert_eq!(clean.report.next_tid, report.next_tid);
    }
}

/// The power goes while the transaction of the fast commits is being committed in full, and again
/// at every instant of the recovery.
#[test]
fn a_second_cut_loses_none_of_the_changes() {
    for checksums in [Checksums::V3, Checksums::V1, Checksums::None] {
        let (recorder, fast_at) = run(checksums);
        let mut rng = Rng::new(2);
        let (mut found_fast, mut found_whole, changes) = (0, 0, changes(70));
        for _ in 0..6 {
            let first = fast_at + rng.below(recorder.len() - fast_at);
            let states = recorder.cut(first, [0, 60][rng.below(2)], &mut rng);
            let again = Recorder::new();
            let fs = again.disk("fs", states[0].clone(), Cache::Volatile);
            let disk = again.disk("log", states[1].clone(), Cache::Volatile);
            let log = log_on(&disk);
            let found = Recovery::read(&log, &*fs).unwrap();
            if found.fast_commits.is_none() {
                continue;
            }
            found.finish(&log, &*fs, &changes, None).unwrap();
            for cut in 0..=again.len() {
                for keep in [0, 50, 100] {
                    let states = again.cut(cut, keep, &mut rng);
                    let what = format!("{checksums:?}, cuts {first} and {cut}, keep {keep} %");
                    let [fs, log] = [0, 1].map(|i| Disk::plain("after", states[i].clone()));
                    let log = log_on(&log);
                    let found = Recovery::read(&log, &*fs).unwrap_or_else(|e| {
                        panic!("{what}: {e}");
                    });
                    let has_fast = found.fast_commits.is_some();
                    let none = Overlay::new();
                    let due = if has_fast { &changes } else { &none };
                    found_fast += u32::from(has_fast);
                    found_whole += u32::from(!has_fast);
                    found.finish(&log, &*fs, due, None).unwrap();
                    check_whole(&fs, &changes, &what);
                    assert!(fs.block(5, BLOCK) == stamp(5, 1), "{what}");
                }
            }
        }
        assert!(found_fast > 50 && found_whole > 20, "{found_fast}, {found_whole}");
    }
}

/// The largest result that fits takes every block of the log; the next is refused, and nothing
/// is written.
#[test]
fn changes_fit_the_log_or_are_refused_at_once() {
    let (recorder, fast_at) = run(Checksums::V3);
    let states = recorder.cut(fast_at, 100, &mut Rng::new(1));
    let mut fits = 0;
    for count in 1000..1020 {
        let [fs, disk] = [0, 1].map(|i| Disk::plain("after", states[i].clone()));
        let (log, changes) = (log_on(&disk), changes(count));
        let found = Recovery::read(&log, &*fs).unwrap();
        match found.finish(&log, &*fs, &changes, None) {
            Ok(_) => {
                check_whole(&fs, &changes, &format!("{count} changes"));
                fits = count;
            }
            Err(JournalError::Refused { what }) => {
                assert!(what.contains("e2fsck"), "{what}");
                assert!([fs.bytes(), disk.bytes()] == states[..], "a refusal has written");
            }
            Err(e) => panic!("{count} changes: {e}"),
        }
    }
    // 61 tags a descriptor, and a commit block.
    let capacity = log_on(&Disk::plain("log", states[1].clone())).read_superblock().unwrap();
    let blocks = |count: usize| count + count.div_ceil(61) + 1;
    let capacity = capacity.capacity() as usize;
    assert!(blocks(fits) <= capacity && blocks(fits + 1) > capacity, "{fits} of {capacity}");
}
