//! A sector namespace keeps its promises whatever a power cut leaves of the memory below.

// For people who look at what was tried.
#![allow(clippy::print_stdout)]

mod btt_cuts;

use std::sync::Arc;

use btt_cuts::every::{Run, Tally, explore, perform, recorded};
use btt_cuts::{Op, bytes, check, made, write};
use steadfast_block::BlockDevice;
use steadfast_block::planted::BugSwitch;
use steadfast_block::rng::Rng;
use steadfast_devices::filter::RecordLog;
use steadfast_devices::filter::btt::{self, Options, Version};
use steadfast_devices::filter::record::DeviceId;
use steadfast_devices::source::Ram;

/// How many times as many cases as usual.
fn soak() -> u64 {
    std::env::var("STEADFAST_SOAK").ok().and_then(|n| n.parse().ok()).unwrap_or(1)
}

fn explored(run: &Run, tally: &mut Tally) {
    explore(run, BugSwitch::default(), tally).unwrap();
}

/// All orders in which two sectors can be written `len` times.
fn orders(len: usize) -> impl Iterator<Item = Vec<Op>> {
    (0..1 << len)
        .map(move |bits: u64| (0..len).map(|n| write(bits >> n & 1, n as u8 + 11)).collect())
}

/// Every cut of every order of two or three writes to two sectors, and all that it may leave: each
/// sector is old or new, never torn, and new if the write was answered.
#[test]
fn all_that_a_cut_may_leave_is_old_or_new() {
    let prefixes: [&[Op]; 3] =
        [&[], &[write(0, 1)], &[write(0, 1), write(1, 2), write(0, 3), write(0, 4), write(1, 5)]];
    let mut tally = Tally::default();
    for before in prefixes {
        for nfree in [1, 2] {
            // Three writes for each are a minute: some in every run, all of them in a soak.
            let len = if soak() > 1 || (before.len(), nfree) == (5, 2) { 3 } else { 2 };
            for ops in (1..=len).flat_map(orders) {
                explored(&Run { sector: 512, nfree, before, ops: &ops }, &mut tally);
            }
        }
    }
    println!("FIGURES: {tally:?}");
    assert!(tally.recovered > 100 && tally.again > 100, "{tally:?}");
}

#[test]
fn sectors_of_4096_bytes_and_several_at_once() {
    let two = |version| Op { sector: 0, count: 2, version };
    let runs: [&[Op]; 3] = [&[write(0, 1), write(0, 2)], &[two(1), write(1, 2)], &[two(1), two(2)]];
    for ops in runs {
        let before = [two(9)];
        explored(&Run { sector: 4096, nfree: 2, before: &before, ops }, &mut Tally::default());
    }
}

#[test]
fn discards_leave_what_was_there_or_zeros() {
    let discard = |sector, count| Op { sector, count, version: 0 };
    let runs: [&[Op]; 4] = [
        &[discard(0, 2)],
        &[write(0, 2), discard(0, 1)],
        &[discard(0, 2), write(0, 2)],
        &[write(1, 2), discard(0, 2), write(1, 3)],
    ];
    for nfree in [1, 2] {
        for ops in runs {
            let before = [write(0, 7), write(1, 8)];
            explored(&Run { sector: 4096, nfree, before: &before, ops }, &mut Tally::default());
        }
    }
}

#[test]
fn several_tasks_that_write_and_read() {
    for seed in 0..60 * soak() {
        btt_cuts::some::run(seed, BugSwitch::default()).unwrap();
    }
}

/// A power cut while a namespace is made over another one leaves the old one whole, or none, or the
/// new one whole.
#[test]
fn a_namespace_that_is_being_made() {
    let ram = Ram::from_store("pmem0", made(512, 3)).persistent();
    let device: Arc<dyn BlockDevice> = Arc::new(ram.clone());
    let old = btt::probe(&*device).unwrap().unwrap();
    perform(&btt::open(&device).unwrap(), write(3, 9), 512).unwrap();
    let base = ram.store();
    let (mut seen, mut rng) = ([0; 3], Rng::new(5));
    for version in [Version::V1_1, Version::V2_0] {
        let log = RecordLog::new();
        let options = Options { nfree: 2, version, ..Options::default() };
        let new = btt::format(&recorded(base.clone(), &log), options).unwrap();
        let recording = log.take();
        for cut in recording.first_crash_point()..=recording.last_crash_point() {
            for kept in [0, 50, 50, 90, 90, 100] {
                let at = recording.at(DeviceId(0), cut);
                let state = at.contents(&base, 0, kept, &mut rng);
                let device: Arc<dyn BlockDevice> = Arc::new(Ram::from_store("pmem0", state));
                let Some(found) = btt::probe(&*device).unwrap() else {
                    seen[0] += 1;
                    continue;
                };
                let opened = btt::open(&device).unwrap();
                let size = u64::from(found.sector);
                let got = opened.read(3 * size, size).unwrap();
                if found.uuid == old.uuid {
                    seen[1] += 1;
                    assert_eq!(got, bytes(write(3, 9), 3, 512));
                } else {
                    seen[2] += 1;
                    assert_eq!((found.uuid, found.bytes()), (new.uuid, new.bytes()));
                    assert_eq!(got, vec![0; 4096]);
                }
                drop(opened);
                btt::restore(&device, None).unwrap();
                check(&*device).unwrap();
            }
        }
    }
    assert!(seen.iter().all(|times| *times > 10), "{seen:?}");
}

/// A power cut while a lost info block, or a lost copy, is written again: of the words any may be
/// there. It can be done again, and what was written is found.
#[test]
fn an_info_block_that_is_being_restored() {
    for version in [Version::V1_1, Version::V2_0] {
        let ram = Ram::new("pmem0", 17 << 20).persistent();
        let device: Arc<dyn BlockDevice> = Arc::new(ram.clone());
        let made =
            btt::format(&device, Options { nfree: 2, version, ..Options::default() }).unwrap();
        btt::open(&device).unwrap().write(3 * 4096, vec![7; 4096].into()).unwrap();
        let arena = made.arenas[0];
        let copy = arena.at + arena.bytes - 4096;
        let (mut rng, mut torn) = (Rng::new(7), 0);
        for lost in [arena.at, copy] {
            let mut base = ram.store();
            base.write_slice(lost, &[0; 4096]);
            let log = RecordLog::new();
            let recorded = recorded(base.clone(), &log);
            assert_eq!(btt::restore(&recorded, Some(version)), Ok(1));
            let recording = log.take();
            for cut in recording.first_crash_point()..=recording.last_crash_point() {
                for kept in [0, 3, 10, 50, 50, 90, 97, 100] {
                    let at = recording.at(DeviceId(0), cut);
                    let state = at.contents(&base, 0, kept, &mut rng);
                    let device: Arc<dyn BlockDevice> = Arc::new(Ram::from_store("pmem0", state));
                    torn += u64::from(btt::restore(&device, Some(version)).unwrap() > 0);
                    assert_eq!(btt::probe(&*device).unwrap().as_ref(), Some(&made));
                    assert!(btt::check(&*device).unwrap().is_good());
                    let got = btt::open(&device).unwrap().read(3 * 4096, 4096).unwrap();
                    assert_eq!(got, vec![7; 4096]);
                }
            }
        }
        assert!(torn > 10, "{torn}");
    }
}
