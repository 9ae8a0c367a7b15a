//! The log filled to its last block, and the power cut there. The blocks from the tail on disk on
//! are what recovery needs: a transaction that takes one more than are free destroys transactions
//! that were acknowledged.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::BlockDevice;
use steadfast_journal::{
    Config, FormatOptions, FsBlock, Journal, Log, LogBlock, LogExtent, Update, format, recover,
};
use steadfast_runtime::Sim;
use uuid::Uuid;

use crate::disk::{Cache, Disk, Recorder};
use crate::load::{BLOCK, stamp};
use crate::rng::Rng;

const FS_BLOCKS: usize = 1600;
const LOG_BLOCKS: usize = 1027;
/// Images of a transaction that fills the log, and log blocks beside them: a descriptor and a
/// commit block.
const IMAGES: u64 = 10;
const BESIDE: u64 = 2;
/// File system blocks that each transaction has for itself, at least the images it writes.
const OWN_BLOCKS: u64 = 16;

fn log_on(devices: &[Arc<dyn BlockDevice>]) -> Log {
    match devices {
        [disk] => {
            let (log_block, device_block, len) = (LogBlock(0), FS_BLOCKS as u64, LOG_BLOCKS as u32);
            let extents = vec![LogExtent { log_block, device_block, len }];
            Log::internal(Arc::clone(disk), BLOCK as u32, extents).unwrap()
        }
        [_, log] => Log::external(Arc::clone(log), BLOCK as u32).unwrap(),
        _ => unreachable!("one disk or two"),
    }
}

/// Disks with a formatted log: one, or one for the log too.
fn fresh(external: bool) -> Vec<Vec<u8>> {
    let sizes = if external { vec![FS_BLOCKS, LOG_BLOCKS] } else { vec![FS_BLOCKS + LOG_BLOCKS] };
    let disks: Vec<_> = sizes.iter().map(|n| Disk::plain("d", vec![0; n * BLOCK])).collect();
    let devices: Vec<_> = disks.iter().map(|d| d.device()).collect();
    format(&log_on(&devices), &FormatOptions::new(Uuid::from_u128(7))).unwrap();
    disks.iter().map(|d| d.bytes()).collect()
}

/// The blocks of transaction `n`: the one with its number, and some that no other writes.
fn blocks_of(n: u64, images: u64) -> impl Iterator<Item = u64> {
    let own = n * OWN_BLOCKS;
    std::iter::once(0).chain(own..own + images - 1)
}

fn transaction(n: u64, images: u64) -> Update {
    let image = |b| (FsBlock(b), Bytes::from(stamp(b, n)));
    Update { writes: blocks_of(n, images).map(image).collect(), ..Update::default() }
}

/// What a run leaves for the judge.
struct Run {
    recorder: Arc<Recorder>,
    /// Images of each transaction, the first being number 1.
    images: Vec<u64>,
    /// Events before the log was full.
    full_at: usize,
    /// A transaction waited for room.
    waited: bool,
}

/// Fills the log until `left` blocks of it are free, then commits transactions of so many images.
fn run(external: bool, left: u64, last: &'static [u64]) -> Run {
    let recorder = Recorder::new();
    let disks = fresh(external).into_iter().zip(["fs", "log"]);
    let devices: Vec<_> =
        disks.map(|(bytes, name)| recorder.disk(name, bytes, Cache::Volatile).device()).collect();
    let inner = Arc::clone(&recorder);
    let (images, full_at, waited) = Sim::new(1)
        .run(move || {
            let log = log_on(&devices);
            let capacity = u64::from(log.read_superblock().unwrap().capacity());
            // Space is freed when somebody waits for it, and as little as can be.
            let config = Config {
                checkpoint_start_fraction: 2.0,
                checkpoint_stop_fraction: 1.0,
                ..Config::default()
            };
            let journal = Journal::open(log, Arc::clone(&devices[0]), config).unwrap();
            let mut images = Vec::new();
            let mut commit = |count| {
                images.push(count);
                let n = images.len() as u64;
                let tid = journal.submit(transaction(n, count)).unwrap();
                journal.commit(tid).unwrap();
                inner.note(n);
            };
            let mut free = capacity - left;
            while free >= IMAGES + BESIDE + 1 + BESIDE {
                commit(IMAGES);
                free -= IMAGES + BESIDE;
            }
            commit(free - BESIDE);
            assert_eq!(journal.stats().checkpoints, 0, "the log is full too early");
            let full_at = inner.len();
            last.iter().for_each(|images| commit(*images));
            let waited = journal.stats().space_waits > 0;
            journal.abandon();
            (images, full_at, waited)
        })
        .unwrap();
    Run { recorder, images, full_at, waited }
}

/// Recovers what a cut has left: every acknowledged transaction is there, and no half of one.
fn judge(run: &Run, acknowledged: u64, states: Vec<Vec<u8>>) -> Result<(), String> {
    let disks: Vec<_> = states.into_iter().map(|bytes| Disk::plain("cut", bytes)).collect();
    let devices: Vec<_> = disks.iter().map(|d| d.device()).collect();
    recover(&log_on(&devices), &*devices[0]).map_err(|e| e.to_string())?;
    let bytes = disks[0].bytes();
    let n = u64::from_le_bytes(bytes[8..16].try_into().unwrap());
    if n < acknowledged {
        return Err(format!("{n} transactions, {acknowledged} were acknowledged"));
    }
    for (number, images) in (1..=n).zip(&run.images) {
        // The first block is written again by each.
        for b in blocks_of(number, *images).skip(1) {
            if bytes[b as usize * BLOCK..][..BLOCK] != stamp(b, number) {
                return Err(format!("of {n} transactions, number {number} has lost block {b}"));
            }
        }
    }
    Ok(())
}

/// Cuts the power at every instant from the full log on.
fn check(external: bool, left: u64, last: &'static [u64]) -> Run {
    let run = run(external, left, last);
    let mut rng = Rng::new(left);
    for cut in run.full_at..=run.recorder.len() {
        for keep in [0, 60, 100] {
            let acknowledged = run.recorder.noted(cut).unwrap();
            let states = run.recorder.cut(cut, keep, &mut rng);
            if let Err(e) = judge(&run, acknowledged, states) {
                panic!("{left} blocks free, {last:?} images, cut {cut}, keep {keep} %: {e}");
            }
        }
    }
    run
}

/// Transactions that need fewer blocks than are free, just as many, and more.
#[test]
fn live_part() {
    for external in [false, true] {
        for last in [&[1], &[4]] {
            let needed = last[0] + BESIDE;
            for left in needed - 2..=needed + 1 {
                let run = check(external, left, last);
                // One block always stays free: a full log would look like an empty one.
                assert_eq!(run.waited, needed >= left, "{left} free, {last:?} images");
            }
        }
    }
}

/// What a checkpoint frees can be taken again, and not a block more: the log stays full.
#[test]
fn freed_part() {
    for external in [false, true] {
        assert!(check(external, 1, &[10, 1, 2, 12, 3, 1, 1, 9]).waited);
    }
}
