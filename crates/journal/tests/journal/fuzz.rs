//! Damaged logs: recovery says so or does right; it never panics, hangs, or takes memory beyond
//! the log's size.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_journal::{
    Checksums, Config, FormatOptions, FsBlock, Journal, JournalError, JournalFeatures, Log, Tid,
    Update, format, recover, recover_dry,
};
use uuid::Uuid;

use crate::disk::{Disk, Recorder};
use crate::load::{BLOCK, Load, Shape};
use crate::rng::Rng;

const FS_BLOCKS: u64 = 400;
pub const LOG_BLOCKS: usize = 1027;

pub fn log_on(disk: &Arc<Disk>) -> Log {
    Log::external(disk.device(), BLOCK as u32).unwrap()
}

pub struct Dirty {
    pub load: Arc<Load>,
    pub fs: Vec<u8>,
    pub log: Vec<u8>,
    pub transactions: u32,
}

/// A log with some transactions, none of which has gone home.
pub fn dirty(checksums: Checksums) -> Dirty {
    let fs = Disk::plain("fs", vec![0; FS_BLOCKS as usize * BLOCK]);
    let log_disk = Disk::plain("log", vec![0; LOG_BLOCKS * BLOCK]);
    let log = log_on(&log_disk);
    let mut options = FormatOptions::new(Uuid::from_u128(3));
    options.checksums = checksums;
    format(&log, &options).unwrap();
    let shape = Shape { most: 40, data_percent: 0, commit_percent: 100 };
    let load = Load::new(fs.device(), Recorder::new(), 0..FS_BLOCKS, shape, 5);
    let config = Config { checkpoint_start_fraction: 2.0, ..Config::default() };
    let journal = Journal::open(log.clone(), fs.device(), config).unwrap();
    (0..25).for_each(|_| load.step(&journal).unwrap());
    assert_eq!(journal.stats().checkpoints, 0);
    journal.abandon();
    let (report, _) = recover_dry(&log, &*fs).unwrap();
    assert_eq!(report.transactions, 25);
    Dirty { load, fs: fs.bytes(), log: log_disk.bytes(), transactions: report.transactions }
}

/// Flips some bits or bytes; mostly in the blocks that transactions use.
fn damage(log: &mut [u8], rng: &mut Rng) {
    for _ in 0..1 + rng.below(3) {
        let area = if rng.chance(15) { 2 * BLOCK..3 * BLOCK } else { 3 * BLOCK..700 * BLOCK };
        let mut at = area.start + rng.below(area.len());
        if rng.chance(60) {
            // Near a block's start, where headers and tags are.
            at = at / BLOCK * BLOCK + rng.below(64);
        }
        if at < 3 * BLOCK && [4..8, 0x24..0x2c].iter().any(|r| r.contains(&(at % BLOCK))) {
            // These say whether there are checksums at all: a hole in the format.
            continue;
        }
        match rng.below(3) {
            0 => log[at] ^= 1 << rng.below(8),
            1 => log[at] = rng.next() as u8,
            _ if at < 3 * BLOCK => log[at] = 0,
            _ => log[at..at / BLOCK * BLOCK + BLOCK].fill([0, 0xff][rng.below(2)]),
        }
    }
}

#[test]
fn flips_are_found_or_harmless_with_checksums() {
    for checksums in [Checksums::V3, Checksums::V2] {
        let dirty = dirty(checksums);
        let mut rng = Rng::new(1);
        let (mut errors, mut shorter) = (0, 0);
        for round in 0..1500 {
            let mut log = dirty.log.clone();
            damage(&mut log, &mut rng);
            let (fs, disk) = (Disk::plain("fs", dirty.fs.clone()), Disk::plain("log", log));
            match recover(&log_on(&disk), &*fs) {
                Err(_) => {
                    errors += 1;
                    assert!(fs.bytes() == dirty.fs, "an error, yet something was written");
                }
                Ok(report) => {
                    // At most the last transaction can go unnoticed: its commit block.
                    assert!(
                        report.was_clean || report.transactions + 1 >= dirty.transactions,
                        "round {round}: {report:?}"
                    );
                    shorter += u32::from(report.transactions < dirty.transactions);
                    dirty.load.judge(&fs.bytes(), 0, true).unwrap();
                }
            }
        }
        assert!(errors > 500 && shorter < 150, "{errors} errors, {shorter} shorter");
    }
}

#[test]
fn flips_without_checksums_never_panic() {
    for checksums in [Checksums::None, Checksums::V1] {
        let dirty = dirty(checksums);
        let mut rng = Rng::new(2);
        for _ in 0..800 {
            let mut log = dirty.log.clone();
            damage(&mut log, &mut rng);
            let (fs, disk) = (Disk::plain("fs", dirty.fs.clone()), Disk::plain("log", log));
            let _ = recover(&log_on(&disk), &*fs);
        }
    }
}

/// Logs of nothing but plausible headers.
#[test]
fn made_up_logs_never_hang() {
    let mut rng = Rng::new(3);
    let fs = Disk::plain("fs", vec![0; FS_BLOCKS as usize * BLOCK]);
    for round in 0..300 {
        let disk = Disk::plain("log", vec![0; LOG_BLOCKS * BLOCK]);
        let log = log_on(&disk);
        let mut options = FormatOptions::new(Uuid::from_u128(3));
        options.checksums = [Checksums::None, Checksums::V1, Checksums::V3][round % 3];
        format(&log, &options).unwrap();
        let mut bytes = disk.bytes();
        let mut tid = 1u32;
        for block in bytes[3 * BLOCK..].chunks_mut(BLOCK) {
            let kind = [1, 1, 2, 5, 3, rng.next() as u32][rng.below(6)];
            let head = [0xc03b_3998, kind, tid, rng.next() as u32, rng.next() as u32 % 2048];
            for (slot, word) in block.chunks_mut(4).zip(head) {
                slot.copy_from_slice(&word.to_be_bytes());
            }
            tid += u32::from(kind == 2);
        }
        // Every block is a commit block: the longest walk there can be.
        if round % 5 == 0 {
            for (i, block) in bytes[3 * BLOCK..].chunks_mut(BLOCK).enumerate() {
                block[4..8].copy_from_slice(&2u32.to_be_bytes());
                block[8..12].copy_from_slice(&(1 + i as u32).to_be_bytes());
            }
        }
        disk.poke(0, &bytes);
        mark_dirty(&disk, &options);
        let _ = recover_dry(&log, &*fs);
    }
}

/// Sets `s_start` and `s_sequence` to 3 and 1, and the checksum where there is one.
fn mark_dirty(disk: &Arc<Disk>, options: &FormatOptions) {
    disk.poke(2 * BLOCK + 0x18, &[0, 0, 0, 1, 0, 0, 0, 3]);
    if options.checksums == Checksums::V3 {
        disk.poke(2 * BLOCK + 0xfc, &[0; 4]);
        let sum = !crc32c(&disk.bytes()[2 * BLOCK..2 * BLOCK + 1024]);
        disk.poke(2 * BLOCK + 0xfc, &sum.to_be_bytes());
    }
}

/// CRC-32C the slow way: the tests have no business with the crate's own.
fn crc32c(bytes: &[u8]) -> u32 {
    !crc32c_from(!0, bytes)
}

fn crc32c_from(seed: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(seed, |crc, b| {
        (0..8).fold(crc ^ u32::from(*b), |c, _| c >> 1 ^ if c & 1 != 0 { 0x82f6_3b78 } else { 0 })
    })
}

#[test]
fn fast_commits_are_refused_by_name() {
    let fs = Disk::plain("fs", vec![0; FS_BLOCKS as usize * BLOCK]);
    let disk = Disk::plain("log", vec![0; 2000 * BLOCK]);
    let log = log_on(&disk);
    let mut options = FormatOptions::new(Uuid::from_u128(3));
    options.checksums = Checksums::None;
    format(&log, &options).unwrap();
    let mut incompat = [0; 4];
    incompat.copy_from_slice(&(JournalFeatures::FAST_COMMIT | JournalFeatures::WIDE).to_be_bytes());
    disk.poke(2 * BLOCK + 0x28, &incompat);
    let sb = log.read_superblock().unwrap();
    assert_eq!((sb.max_len(), sb.end().0), (2000, 2000 - 256));
    // An empty area is no obstacle: the journal works, and stays out of it.
    // Checkpoints where there is no room only: the last transaction stays in the log.
    let config = Config { checkpoint_start_fraction: 2.0, ..Config::default() };
    let journal = Journal::open(log.clone(), fs.device(), config).unwrap();
    for n in 0..40u64 {
        let writes = (0..100).map(|b| (FsBlock(b), Bytes::from(vec![n as u8; BLOCK]))).collect();
        let tid = journal.submit(Update { writes, ..Update::default() }).unwrap();
        journal.commit(tid).unwrap();
    }
    journal.abandon();
    assert!(disk.bytes()[1744 * BLOCK..].iter().all(|b| *b == 0));
    let (report, _) = recover_dry(&log, &*fs).unwrap();
    // A head tag that names the transaction after the last.
    let next = Tid(report.range.unwrap().1.0 + 1);
    let mut head = vec![9, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    head[8..].copy_from_slice(&next.0.to_le_bytes());
    disk.poke(1745 * BLOCK, &head);
    // Without the end of a fast commit there is none.
    assert_eq!(recover_dry(&log, &*fs).unwrap().0.fast_commits, 0);
    head.extend([8, 0, 8, 0]);
    head.extend(next.0.to_le_bytes());
    // Their checksum starts from 0, and is not inverted.
    head.extend(crc32c_from(0, &head).to_le_bytes());
    disk.poke(1745 * BLOCK, &head);
    let before = fs.bytes();
    let e = recover(&log, &*fs).unwrap_err();
    assert!(matches!(&e, JournalError::Unsupported { what } if what.contains("fast_commit")));
    assert!(fs.bytes() == before);
}

#[test]
fn truncated_and_blank_logs_are_errors() {
    let dirty = dirty(Checksums::V3);
    let fs = Disk::plain("fs", dirty.fs.clone());
    for cut in [1026, 1025] {
        let disk = Disk::plain("log", dirty.log[..cut * BLOCK].to_vec());
        let e = recover(&log_on(&disk), &*fs).unwrap_err();
        assert!(matches!(e, JournalError::Corrupt { .. }), "{e:?}");
    }
    let disk = Disk::plain("log", vec![0; LOG_BLOCKS * BLOCK]);
    assert!(recover(&log_on(&disk), &*fs).is_err());
    let small = Disk::plain("log", vec![0; 1000 * BLOCK]);
    assert!(matches!(
        Log::external(small.device(), BLOCK as u32),
        Err(JournalError::Refused { .. })
    ));
}
