//! Power cuts at many instants, each leaving many legal states; every one must recover to a
//! prefix of the updates that contains all acknowledged ones.

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::BlockDevice;
use steadfast_journal::{
    Checksums, Config, FormatOptions, Journal, Log, LogBlock, LogExtent, Tid, format, recover,
    recover_dry,
};
use steadfast_runtime::{Sim, spawn};
use uuid::Uuid;

use crate::disk::{Cache, Disk, Recorder};
use crate::load::{BLOCK, Load, Shape};
use crate::rng::Rng;

const LOG_BLOCKS: u32 = 1024;

#[derive(Clone)]
struct Case {
    name: &'static str,
    external: bool,
    fs_cache: Cache,
    log_cache: Cache,
    async_commit: bool,
    checksums: Checksums,
    sequence: Tid,
    tasks: u64,
    updates: u64,
    shape: Shape,
    ordered: bool,
    checkpoint_start: f64,
    /// Blocks of the make-believe file system; an internal log follows them.
    fs_blocks: u64,
    /// What the log's device keeps whole at a power cut, bytes.
    log_atomic: u32,
}

impl Case {
    fn new(name: &'static str) -> Case {
        Case {
            name,
            external: false,
            fs_cache: Cache::Volatile,
            log_cache: Cache::Volatile,
            async_commit: false,
            checksums: Checksums::V3,
            sequence: Tid(1),
            tasks: 3,
            updates: 260,
            shape: Shape { most: 24, data_percent: 40, commit_percent: 25 },
            ordered: true,
            checkpoint_start: 0.3,
            fs_blocks: 300,
            log_atomic: 512,
        }
    }

    fn log(&self, disks: &[Arc<dyn BlockDevice>]) -> Log {
        if self.external {
            return Log::external(Arc::clone(&disks[1]), BLOCK as u32).unwrap();
        }
        // In three pieces out of order, as a fragmented journal file is.
        let extent = |log, at, len| LogExtent {
            log_block: LogBlock(log),
            device_block: self.fs_blocks + at,
            len,
        };
        let extents = vec![extent(0, 700, 324), extent(324, 0, 400), extent(724, 400, 300)];
        Log::internal(Arc::clone(&disks[0]), BLOCK as u32, extents).unwrap()
    }

    /// Disks with a formatted log.
    fn fresh(&self) -> Vec<Vec<u8>> {
        let fs = self.fs_blocks as usize + if self.external { 0 } else { LOG_BLOCKS as usize };
        let mut sizes = vec![fs * BLOCK];
        if self.external {
            sizes.push((LOG_BLOCKS as usize + 3) * BLOCK);
        }
        let disks: Vec<_> = sizes.into_iter().map(|n| Disk::plain("d", vec![0; n])).collect();
        let devices: Vec<_> = disks.iter().map(|d| d.device()).collect();
        let mut options = FormatOptions::new(Uuid::from_u128(0x1234));
        options.checksums = self.checksums;
        options.sequence = self.sequence;
        format(&self.log(&devices), &options).unwrap();
        disks.iter().map(|d| d.bytes()).collect()
    }
}

/// What a run leaves to be judged.
struct Run {
    recorder: Arc<Recorder>,
    load: Arc<Load>,
}

/// Runs updates on recording disks. `seed` chooses everything.
fn run(case: &Case, seed: u64) -> Run {
    let recorder = Recorder::new();
    let mut fresh = case.fresh().into_iter();
    let mut devices = vec![recorder.disk("fs", fresh.next().unwrap(), case.fs_cache).device()];
    if let Some(bytes) = fresh.next() {
        let log = recorder.disk_of("log", bytes, case.log_cache, case.log_atomic);
        devices.push(log.device());
    }
    let fs = Arc::clone(&devices[0]);
    let load =
        Load::new(Arc::clone(&fs), Arc::clone(&recorder), 0..case.fs_blocks, case.shape, seed);
    let (case, load2) = (case.clone(), Arc::clone(&load));
    Sim::new(seed)
        .run(move || {
            let config = Config {
                async_commit: case.async_commit,
                commit_interval: Duration::from_millis(20),
                checkpoint_start_fraction: case.checkpoint_start,
                max_request_bytes: 16 << 10,
                checkpoint_in_flight: 4,
                ..Config::default()
            };
            let journal = Journal::open(case.log(&devices), fs, config).unwrap();
            let tasks: Vec<_> = (0..case.tasks)
                .map(|i| {
                    let (journal, load) = (Arc::clone(&journal), Arc::clone(&load2));
                    spawn(format!("task {i}"), move || {
                        for _ in 0..case.updates / case.tasks {
                            load.step(&journal).unwrap();
                        }
                    })
                })
                .collect();
            tasks.into_iter().for_each(|t| t.join().unwrap());
            let stats = journal.stats();
            assert!(stats.checkpoints > 0, "{stats:?}");
            journal.close().unwrap();
        })
        .unwrap();
    Run { recorder, load }
}

fn disks(case: &Case, states: Vec<Vec<u8>>) -> (Vec<Arc<Disk>>, Vec<Arc<dyn BlockDevice>>) {
    let atomic = [512, case.log_atomic];
    let disks: Vec<_> =
        states.into_iter().zip(atomic).map(|(s, a)| Disk::plain_of("cut", s, a)).collect();
    let devices = disks.iter().map(|d| d.device()).collect();
    (disks, devices)
}

/// Recovers one state after a power cut and judges it.
fn judge(case: &Case, run: &Run, cut: usize, states: Vec<Vec<u8>>) -> Result<(), String> {
    let (disks, devices) = disks(case, states);
    let log = case.log(&devices);
    let (dry, overlay) = recover_dry(&log, &*devices[0]).map_err(|e| e.to_string())?;
    let wet = recover(&log, &*devices[0]).map_err(|e| e.to_string())?;
    assert_eq!(dry, wet);
    let bytes = disks[0].bytes();
    for (b, image) in overlay {
        assert_eq!(bytes[b.0 as usize * BLOCK..][..BLOCK], image[..], "dry and real recovery");
    }
    assert!(recover(&log, &*devices[0]).unwrap().was_clean);
    if !case.async_commit && case.log_atomic == 512 {
        // Then no cut leaves anything that recovery has to judge.
        assert_eq!(wet.findings, []);
    }
    let acknowledged = run.recorder.noted(cut).unwrap_or(0);
    run.load.judge(&bytes, acknowledged, case.ordered).map(drop)
}

/// Cuts the power in the middle of recovery, recovers again, and judges.
fn judge_twice(
    case: &Case,
    run: &Run,
    cut: usize,
    states: Vec<Vec<u8>>,
    rng: &mut Rng,
) -> Result<(), String> {
    let recorder = Recorder::new();
    let caches = [case.fs_cache, case.log_cache];
    let devices: Vec<_> = states
        .into_iter()
        .zip(caches.into_iter().zip([512, case.log_atomic]))
        .map(|(s, (cache, atomic))| recorder.disk_of("again", s, cache, atomic).device())
        .collect();
    recover(&case.log(&devices), &*devices[0]).map_err(|e| e.to_string())?;
    for _ in 0..4 {
        let second = rng.below(recorder.len() + 1);
        let states = recorder.cut(second, 50, rng);
        judge(case, run, cut, states).map_err(|e| format!("cut again at {second}: {e}"))?;
    }
    Ok(())
}

/// Judges many cuts of one run: failures found.
fn cuts(case: &Case, run: &Run, random_cuts: usize, seed: u64) -> Vec<String> {
    let mut rng = Rng::new(seed);
    let end = run.recorder.len();
    let mut instants = run.recorder.flush_boundaries();
    // Every second boundary or so keeps the time in bounds; seeds differ.
    instants.retain(|_| rng.chance(25));
    instants.extend((0..random_cuts).map(|_| rng.below(end + 1)));
    instants.push(end);
    let mut failures = Vec::new();
    for (i, cut) in instants.into_iter().enumerate() {
        let keep = [50, 0, 90, 10][i % 4];
        let states = run.recorder.cut(cut, keep, &mut rng);
        let verdict = if i % 16 == 0 {
            judge_twice(case, run, cut, states, &mut rng)
        } else {
            judge(case, run, cut, states)
        };
        if let Err(e) = verdict {
            failures.push(format!("{} cut at {cut} of {end}, keep {keep}%: {e}", case.name));
        }
    }
    failures
}

fn check(case: &Case) {
    for seed in 1..=2 {
        let run = run(case, seed);
        let failures = cuts(case, &run, 150, seed + 100);
        assert!(failures.is_empty(), "{} failures, first: {}", failures.len(), failures[0]);
    }
}

#[test]
fn internal() {
    check(&Case::new("internal"));
}

#[test]
fn internal_without_a_cache() {
    check(&Case { fs_cache: Cache::None, ..Case::new("internal, no cache") });
}

#[test]
fn external() {
    check(&Case { external: true, ..Case::new("external") });
}

#[test]
fn external_on_memory_before_a_cached_disk() {
    let log_cache = Cache::None;
    check(&Case { external: true, log_cache, ..Case::new("external, log without cache") });
}

#[test]
fn external_before_an_uncached_disk() {
    let fs_cache = Cache::None;
    check(&Case { external: true, fs_cache, ..Case::new("external, disk without cache") });
}

#[test]
fn async_commit_internal() {
    // With one flush for both, the kernel refuses data=ordered: data is not judged here.
    check(&Case { async_commit: true, ordered: false, ..Case::new("internal async") });
}

#[test]
fn async_commit_external() {
    check(&Case { external: true, async_commit: true, ..Case::new("external async") });
}

#[test]
fn async_commit_on_memory() {
    let log_cache = Cache::None;
    let case = Case { external: true, async_commit: true, log_cache, ..Case::new("async, memory") };
    check(&case);
}

/// Memory keeps words, not sectors: the journal superblock and commit blocks may be torn.
#[test]
fn a_log_on_memory_that_tears_sectors() {
    for async_commit in [false, true] {
        let (log_cache, log_atomic) = (Cache::None, 8);
        let base = Case::new("words");
        check(&Case { external: true, async_commit, log_cache, log_atomic, ..base });
    }
}

#[test]
fn async_commit_with_checksum_v1() {
    let checksums = Checksums::V1;
    let case = Case { external: true, async_commit: true, checksums, ..Case::new("async, v1") };
    check(&case);
}

#[test]
fn older_checksums() {
    for checksums in [Checksums::None, Checksums::V1, Checksums::V2] {
        check(&Case { checksums, updates: 130, ..Case::new("older checksums") });
    }
}

#[test]
fn transaction_numbers_wrap() {
    check(&Case { sequence: Tid(u32::MAX - 20), ..Case::new("wrap") });
}

#[test]
fn journaled_data_only() {
    let shape = Shape { most: 60, data_percent: 0, commit_percent: 40 };
    check(&Case { shape, external: true, ..Case::new("data=journal") });
}

/// Space is freed only when somebody waits for it, so it is reused at once; and whoever waits has
/// uncommitted updates in the running transaction while older images of their blocks go home.
#[test]
fn a_full_log() {
    for external in [false, true] {
        let shape = Shape { most: 90, data_percent: 20, commit_percent: 4 };
        let (fs_blocks, checkpoint_start) = (1500, 2.0);
        let case = Case { external, shape, fs_blocks, checkpoint_start, ..Case::new("full log") };
        check(&case);
    }
}

#[test]
fn a_lying_cache_is_found_out() {
    for external in [false, true] {
        let mut case = Case { external, ..Case::new("lying") };
        (case.fs_cache, case.log_cache) = (Cache::Lying, Cache::Lying);
        let run = run(&case, 1);
        let failures = cuts(&case, &run, 100, 5);
        assert!(failures.len() > 20, "only {} of the cuts did harm", failures.len());
    }
}
