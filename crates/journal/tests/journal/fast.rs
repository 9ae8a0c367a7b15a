//! Fast commits: what a power cut leaves of them, at any instant.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_journal::{
    Config, FastTag, FormatOptions, FsBlock, Journal, JournalFeatures, Log, Recovery, Tid, Update,
    format,
};
use steadfast_runtime::Sim;
use uuid::Uuid;

use crate::disk::{Cache, Disk, Recorder};
use crate::load::BLOCK;
use crate::rng::Rng;

const LOG_BLOCKS: usize = 1024 + 2 + 48;
const FAST_BLOCKS: u32 = 48;

fn log_on(disk: &Arc<Disk>) -> Log {
    Log::external(disk.device(), BLOCK as u32).unwrap()
}

fn tag(n: u64, len: usize) -> FastTag {
    let mut value = vec![n as u8; len];
    value[..8].copy_from_slice(&n.to_le_bytes());
    FastTag { tag: 6, value: value.into() }
}

fn image(n: u64) -> Update {
    let writes = vec![(FsBlock(n % 50), Bytes::from(vec![n as u8; BLOCK]))];
    Update { writes, ..Update::default() }
}

/// A note: transactions up to `tid` are durable, and of the next one fast commits up to `n`.
fn note(recorder: &Recorder, tid: Tid, n: u64) {
    recorder.note(u64::from(tid.0) << 32 | n);
}

/// Fast commits of one to many blocks, several a transaction; the numbers in their tags go up.
fn run(seed: u64, cache: Cache, atomic_write: u32, config: Config) -> Arc<Recorder> {
    let recorder = Recorder::new();
    let inner = Arc::clone(&recorder);
    Sim::new(seed)
        .run(move || {
            let formatted = Disk::plain("log", vec![0; LOG_BLOCKS * BLOCK]);
            let mut how = FormatOptions::new(Uuid::from_u128(9));
            how.fast_blocks = FAST_BLOCKS;
            format(&log_on(&formatted), &how).unwrap();
            let fs = inner.disk("fs", vec![0; 64 * BLOCK], cache);
            let log = inner.disk_of("log", formatted.bytes(), cache, atomic_write);
            let config = Config { fast_commits: true, ..config };
            let journal = Journal::open(log_on(&log), fs.device(), config).unwrap();
            let mut rng = Rng::new(seed);
            let (mut made, mut refused, mut n) = (0, 0, 1);
            for _ in 0..15 {
                let tid = journal.submit(image(n)).unwrap();
                for _ in 0..rng.below(8) {
                    n += 1;
                    assert_eq!(journal.submit(image(n)).unwrap(), tid);
                    let tags: Vec<FastTag> =
                        (0..1 + rng.below(12)).map(|_| tag(n, 8 + rng.below(BLOCK - 16))).collect();
                    if !journal.fast_commit(tid, &tags).unwrap() {
                        refused += 1;
                        break;
                    }
                    made += 1;
                    note(&inner, Tid(tid.0 - 1), n);
                }
                journal.commit(tid).unwrap();
                note(&inner, tid, 0);
                assert!(!journal.fast_commit(tid, &[]).unwrap(), "it is committed");
                n += 1;
            }
            assert_eq!(journal.stats().fast_commits, made);
            assert!(made > 15 && refused > 0, "{made} fast commits, {refused} refused");
            journal.abandon();
        })
        .unwrap();
    recorder
}

/// Gives in how many cuts the kernel would refuse the log.
fn check_all_cuts(seed: u64, cache: Cache, atomic_write: u32, config: Config) -> u64 {
    let recorder = run(seed, cache, atomic_write, config);
    let mut rng = Rng::new(seed);
    let (mut seen, mut refused) = (0, 0);
    for cut in 0..=recorder.len() {
        let keep = [0, 100, 50, 80][rng.below(4)];
        let left = recorder.cut(cut, keep, &mut rng);
        let units = [512, atomic_write];
        let [fs, log] = [0, 1].map(|i| Disk::plain_of("after", left[i].clone(), units[i]));
        let found = Recovery::read(&log_on(&log), &*fs).unwrap();
        let noted = recorder.noted(cut).unwrap_or(1 << 32);
        seen += check(&found, noted, &format!("seed {seed}, cut {cut}, keep {keep}"));
        refused += u64::from(is_refused_by_the_kernel(&found, &left[1]));
    }
    assert!(seen > 100, "{seen} cuts left fast commits");
    refused
}

/// `ext4_fc_replay_scan`, fs/ext4/fast_commit.c: where there is the head of a fast commit of the
/// transaction that comes next, the first one must be whole.
fn is_refused_by_the_kernel(found: &Recovery, log: &[u8]) -> bool {
    let first = LOG_BLOCKS - FAST_BLOCKS as usize + 1;
    let head = &log[first * BLOCK..][..12];
    let is_head = head[..4] == [9, 0, 8, 0];
    let tid = Tid(u32::from_le_bytes([0, 1, 2, 3].map(|i| head[8 + i])));
    let next = found.report.range.map(|(_, last)| last.plus(1));
    is_head && next == Some(tid) && found.fast_commits.is_none()
}

/// Returns 1 if there are fast commits.
fn check(found: &Recovery, noted: u64, what: &str) -> u64 {
    let (promised_tid, promised) = (Tid((noted >> 32) as u32), noted & 0xffff_ffff);
    let committed = found.report.range.map_or(promised_tid, |(_, last)| last);
    assert!(!promised_tid.is_after(committed), "{what}: {committed} of {promised_tid}");
    let Some(fast) = &found.fast_commits else {
        assert!(promised == 0 || committed.is_after(promised_tid), "{what}: no fast commits");
        return 0;
    };
    assert_eq!(fast.tid, committed.plus(1), "{what}: of the next transaction");
    let found: Vec<u64> = fast
        .commits
        .iter()
        .flatten()
        .map(|tag| u64::from_le_bytes(tag.value[..8].try_into().unwrap()))
        .collect();
    assert!(found.is_sorted(), "{what}: {found:?}");
    if committed == promised_tid {
        let last = found.last().copied().unwrap_or(0);
        assert!(last >= promised, "{what}: {last} of {promised}");
    }
    1
}

#[test]
fn what_was_acknowledged_is_found_after_a_cut() {
    for (seed, cache) in [(1, Cache::Volatile), (2, Cache::None)] {
        assert_eq!(check_all_cuts(seed, cache, 512, Config::default()), 0);
    }
}

/// On memory a power cut keeps any words of the first block, and the kernel takes the log all the
/// same.
#[test]
fn the_first_one_is_not_torn_in_words() {
    for seed in 1..=3 {
        assert_eq!(check_all_cuts(seed, Cache::None, 8, Config::default()), 0, "seed {seed}");
    }
}

/// The test of the test.
#[cfg(feature = "planted-bugs")]
#[test]
fn planted_written_at_once_the_first_one_is_torn() {
    let planted =
        steadfast_block::planted::BugSwitch::with(steadfast_journal::Bug::FastCommitHeadAtOnce);
    let refused = |seed| {
        let config = Config { planted, ..Config::default() };
        check_all_cuts(seed, Cache::None, 8, config)
    };
    assert!((1..=3).map(refused).sum::<u64>() > 0);
}

#[test]
fn of_a_log_that_says_it_is_clean_there_are_none() {
    Sim::new(1)
        .run(|| {
            let disk = Disk::plain("log", vec![0; LOG_BLOCKS * BLOCK]);
            let fs = Disk::plain("fs", vec![0; 64 * BLOCK]);
            let mut how = FormatOptions::new(Uuid::from_u128(9));
            how.fast_blocks = FAST_BLOCKS;
            format(&log_on(&disk), &how).unwrap();
            let config = Config { fast_commits: true, ..Config::default() };
            let journal = Journal::open(log_on(&disk), fs.device(), config.clone()).unwrap();
            let tid = journal.submit(image(1)).unwrap();
            assert!(!journal.fast_commit(tid, &[tag(1, 9)]).unwrap(), "recovery would not look");
            journal.commit(tid).unwrap();
            assert!(!journal.fast_commit(tid.plus(1), &[tag(1, 9)]).unwrap(), "nothing to record");
            let tid = journal.submit(image(2)).unwrap();
            assert!(journal.fast_commit(tid, &[tag(2, 9)]).unwrap());
            journal.checkpoint_all().unwrap();
            let tid = journal.submit(image(3)).unwrap();
            assert!(!journal.fast_commit(tid, &[tag(3, 9)]).unwrap(), "clean again");
            journal.close().unwrap();
            // Without the option the area stays what it is, and is not used.
            let plain = Config { fast_commits: false, ..config };
            let journal = Journal::open(log_on(&disk), fs.device(), plain).unwrap();
            journal.commit(journal.submit(image(4)).unwrap()).unwrap();
            let tid = journal.submit(image(5)).unwrap();
            assert!(!journal.fast_commit(tid, &[tag(5, 9)]).unwrap(), "not asked for");
            journal.close().unwrap();
        })
        .unwrap();
}

/// The kernel and e2fsck refuse a log with the feature and less than 1024 blocks beside the area.
#[test]
fn a_log_without_room_for_them_does_not_get_the_feature() {
    Sim::new(1)
        .run(|| {
            for (fast_blocks, fits) in [(48, true), (50, true), (51, false), (0, false)] {
                let disk = Disk::plain("log", vec![0; LOG_BLOCKS * BLOCK]);
                let mut how = FormatOptions::new(Uuid::from_u128(9));
                how.fast_blocks = fast_blocks;
                format(&log_on(&disk), &how).unwrap();
                let fs = Disk::plain("fs", vec![0; 64 * BLOCK]);
                let open = |fast_commits| {
                    let config = Config { fast_commits, ..Config::default() };
                    Journal::open(log_on(&disk), fs.device(), config)
                };
                let opened = open(true);
                if let Err(e) = &opened {
                    assert!(e.to_string().contains("fast commits need"), "{e}");
                }
                assert_eq!(opened.is_ok(), fits, "{fast_blocks} blocks");
                let journal = opened.or_else(|_| open(false)).unwrap();
                journal.submit(image(1)).and_then(|tid| journal.commit(tid)).unwrap();
                journal.abandon();
                let has = log_on(&disk).read_superblock().unwrap().features();
                assert_eq!(
                    has.has_incompat(JournalFeatures::FAST_COMMIT),
                    fits,
                    "{fast_blocks} blocks"
                );
            }
        })
        .unwrap();
}
