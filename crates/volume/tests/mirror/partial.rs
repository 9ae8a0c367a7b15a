//! A RAM leg that is smaller than the volume: what it holds, and that it never holds anything old.

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::BlockDevice;
use steadfast_block::rng::Rng;
use steadfast_devices::filter::fault::{Effect, FaultRule, Ops};
use steadfast_runtime::{sleep, spawn};
use steadfast_volume::mirror::LegState;
use steadfast_volume::{NewLeg, Policies, ReadPolicy, ResyncThrottle};

use crate::bench::{BLOCK, Bench, REGION, bench_of, plain, simulated};
use crate::campaign::media::Medium;
use crate::campaign::truth::bytes_of;

/// Blocks of a region, and of the volume.
const IN_REGION: u64 = REGION / BLOCK;
const BLOCKS: u64 = 256;
/// Regions that the RAM leg has room for, of 16.
const FRAMES: u64 = 4;

/// A disk and a RAM leg that is asked first, all written.
fn small() -> Bench {
    let disk = Medium::used("disk", false, &mut Rng::new(1));
    let b = bench_of(vec![disk, Medium::small("ram", FRAMES)]);
    let read = ReadPolicy::Preferred(1);
    b.mirror.set_policies(Policies { read, ..Policies::default() }).unwrap();
    (0..BLOCKS).for_each(|n| b.write(n, 100 + n));
    b.mirror.flush().unwrap();
    b
}

/// Reads of these regions, by turns, until they are hot; then time for the copies.
fn heat(b: &Bench, regions: &[u64], times: u64) {
    for time in 0..times {
        for region in regions {
            let block = region * IN_REGION + time % IN_REGION;
            assert_eq!(
                b.mirror.read(block * BLOCK, 512).unwrap()[..],
                bytes_of(100 + block, block)[..512]
            );
        }
    }
    sleep(Duration::from_millis(50));
}

fn held(b: &Bench) -> u64 {
    b.mirror.status().legs[1].held_bytes.unwrap()
}

/// Whether reads of a region come from the RAM leg.
fn is_in_memory(b: &Bench, region: u64) -> bool {
    let reads = || b.mirror.status().legs[1].counters.reads;
    let before = reads();
    b.mirror.read(region * REGION, 512).unwrap();
    reads() > before
}

#[test]
fn the_partial_leg_holds_what_is_read_most() {
    simulated(|| {
        let b = small();
        assert_eq!((held(&b), b.state(1)), (0, LegState::Okay));
        heat(&b, &[3, 9, 12, 15], 6);
        assert_eq!(held(&b), FRAMES * REGION);
        assert!([3, 9, 12, 15].iter().all(|r| is_in_memory(&b, *r)));
        // What is read from the start to the end, once, takes nobody's place.
        (0..BLOCKS).for_each(|n| assert!(b.is(n, 100 + n)));
        sleep(Duration::from_millis(50));
        assert!([3, 9, 12, 15].iter().all(|r| is_in_memory(&b, *r)));
        // What becomes hotter does.
        heat(&b, &[1, 2], 40);
        assert!([1, 2].iter().all(|r| is_in_memory(&b, *r)));
        assert_eq!(held(&b), FRAMES * REGION);
        assert!(b.mirror.status().is_whole());
    });
}

#[test]
fn rule_what_the_partial_leg_holds_is_written_too() {
    simulated(|| {
        let b = small();
        heat(&b, &[3, 4, 12], 6);
        // Over the border of regions that are not neighbours in memory, and one that is not there.
        let blocks = 4 * IN_REGION - 3..5 * IN_REGION + 4;
        let data: Vec<u8> = blocks.clone().flat_map(|n| bytes_of(1000 + n, n)).collect();
        b.mirror.write(blocks.start * BLOCK, data.into()).unwrap();
        assert!(is_in_memory(&b, 4) && !is_in_memory(&b, 5));
        assert!(blocks.clone().all(|n| b.is_everywhere(n, 1000 + n)));
        let scrubbed = b.mirror.scrub(false, ResyncThrottle::default()).unwrap();
        assert_eq!((scrubbed.differing, scrubbed.bytes), (0, held(&b)));
        let before = held(&b);
        // What is discarded is not there any more, and gives its place to something else.
        b.mirror
            .submit(steadfast_block::Request::Discard { offset: 3 * REGION, len: REGION })
            .wait()
            .unwrap();
        assert!(b.is(3 * IN_REGION, 0) && held(&b) == before - REGION);
        heat(&b, &[7, 8], 6);
        assert_eq!(held(&b), FRAMES * REGION);
        assert!(b.is(3 * IN_REGION, 0));
    });
}

/// What other legs lack is copied to them alone: places in memory are for what is read.
#[test]
fn a_resync_of_disks_takes_no_place_in_the_partial_leg() {
    simulated(|| {
        let mut rng = Rng::new(1);
        let disks = ["a", "b"].map(|name| Medium::used(name, false, &mut rng));
        let b = bench_of(disks.into_iter().chain([Medium::small("ram", FRAMES)]).collect());
        (0..BLOCKS).for_each(|n| b.write(n, n));
        b.mirror.offline(1).unwrap();
        (0..BLOCKS).for_each(|n| b.write(n, 100 + n));
        b.mirror.online(1, None).unwrap();
        assert!(b.mirror.resync(ResyncThrottle::default()).unwrap().bytes > 0);
        assert_eq!(b.mirror.status().legs[2].held_bytes, Some(0));
    });
}

/// The map remembers what was hot; after a start the leg is blank, and is filled with that.
#[test]
fn rule_a_partial_leg_is_filled_hottest_first_after_a_restart() {
    simulated(|| {
        let mut b = small();
        heat(&b, &[3, 9, 12, 15], 6);
        heat(&b, &[14], 3);
        b.mirror.close().unwrap();
        b.cut(0);
        b.assemble(&[0], &plain()).unwrap();
        assert_eq!(b.state(1), LegState::Unavailable);
        assert!(b.mirror.status().is_whole());
        let new = NewLeg { partial: true, ..NewLeg::new(b.device(1)) };
        b.mirror.replace(1, Some(&new)).unwrap();
        let done = b.mirror.resync(ResyncThrottle::default()).unwrap();
        assert!(done.complete && done.regions == FRAMES);
        assert!([3, 9, 12, 15].iter().all(|r| is_in_memory(&b, *r)));
        assert!((0..BLOCKS).all(|n| b.is_everywhere(n, 100 + n)));
    });
}

/// Its label survived, its data too (a RAM disk of a program that was killed): it is old by then.
#[test]
fn rule_what_a_partial_leg_held_before_is_not_believed() {
    simulated(|| {
        let mut b = small();
        heat(&b, &[3, 9], 6);
        let old = b.copy(1);
        let mut before =
            vec![Arc::new(steadfast_devices::source::Ram::from_store("ram", old)) as _];
        (0..BLOCKS).for_each(|n| b.write(n, 5000 + n));
        b.mirror.flush().unwrap();
        b.cut(0);
        let mut devices: Vec<Arc<dyn BlockDevice>> = b.devices(&[0]);
        devices.append(&mut before);
        let mut found = steadfast_volume::assemble(&devices, &plain());
        b.mirror = found.volumes.pop().unwrap().mirror.unwrap();
        assert_eq!(b.state(1), LegState::Okay);
        assert_eq!(held(&b), 0);
        assert!((0..BLOCKS).all(|n| b.is_everywhere(n, 5000 + n)));
    });
}

/// It is memory: a flush does not ask it, and it never counts as a copy.
#[test]
fn rule_a_partial_leg_is_never_the_last_copy() {
    simulated(|| {
        let b = small();
        heat(&b, &[3, 9], 6);
        assert!(b.mirror.detach(0).is_err() && b.mirror.offline(0).is_err());
        let alone = NewLeg { partial: true, ..NewLeg::new(b.device(1)) };
        let made = steadfast_volume::create_mirror("alone", &[alone], &crate::bench::options());
        assert!(made.is_err());
        // It fails: nothing is lost, and nobody waits for it.
        b.plugs[1].with(Some(FaultRule::new(Ops::WRITE, Effect::Fail("broken".into()))), 10);
        b.write(3 * IN_REGION, 7);
        b.mirror.flush().unwrap();
        assert_eq!(b.state(1), LegState::NeedsMaintenance);
        assert!(b.is(3 * IN_REGION, 7));
        b.plugs[1].with(None, 10);
        b.mirror.online(1, None).unwrap();
        assert_eq!((held(&b), b.state(1)), (0, LegState::Okay));
        heat(&b, &[9], 6);
        assert!(is_in_memory(&b, 9) && b.is(3 * IN_REGION, 7));
        // The disk fails reads: what is in memory can still be read.
        b.plugs[0].with(Some(FaultRule::new(Ops::READ, Effect::Fail("broken".into()))), 10);
        assert!(b.is(9 * IN_REGION, 100 + 9 * IN_REGION));
        assert!(b.mirror.read(0, 512).is_err());
    });
}

/// Whoever reads while regions take each other's places never gets another region's bytes.
#[test]
fn rule_a_read_never_gets_the_bytes_of_another_region() {
    simulated(|| {
        let b = small();
        let readers: Vec<_> = (0..6)
            .map(|task| {
                let mirror = b.mirror.clone();
                spawn("reader", move || {
                    let mut rng = Rng::new(task);
                    for round in 0..400u64 {
                        // What is hot changes all the time.
                        let block = (round / 20 * 37 + rng.below(3 * IN_REGION)) % (BLOCKS - 20);
                        let count = 1 + rng.below(20);
                        let read = mirror.read(block * BLOCK, count * BLOCK).unwrap();
                        for (n, bytes) in (block..).zip(read.chunks(BLOCK as usize)) {
                            assert_eq!(bytes, bytes_of(100 + n, n), "block {n}");
                        }
                    }
                })
            })
            .collect();
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        assert!(b.mirror.status().legs[1].counters.reads > 200);
        assert_eq!(b.mirror.status().legs[1].counters.errors, 0);
    });
}

/// The power goes while regions come and go: nothing of it is on the disk.
#[test]
fn rule_a_cut_while_a_partial_leg_is_filled_loses_nothing() {
    for seed in 0..20 {
        steadfast_runtime::Sim::new(seed)
            .run(move || {
                let mut b = small();
                let mirror = b.mirror.clone();
                spawn("reader", move || {
                    let mut rng = Rng::new(seed);
                    loop {
                        let block = rng.below(BLOCKS - 1);
                        if mirror.read(block * BLOCK, 2 * BLOCK).is_err() {
                            return;
                        }
                    }
                });
                let mut rng = Rng::new(seed);
                for n in 0..30 + seed * 3 {
                    let block = rng.below(BLOCKS);
                    b.write(block, 100 + block);
                    if n % 7 == 0 {
                        b.mirror.flush().unwrap();
                    }
                }
                b.cut(seed);
                b.assemble(&[0], &plain()).unwrap();
                assert!((0..BLOCKS).all(|n| b.is(n, 100 + n)));
            })
            .unwrap();
    }
}

#[test]
fn a_partial_leg_that_is_no_use_is_refused() {
    simulated(|| {
        let b = small();
        let tiny = Medium::small("tiny", 0);
        let plug = tiny.plug(1);
        let refused = b.mirror.attach(&tiny.leg(&plug)).unwrap_err().to_string();
        assert!(refused.contains("too small to hold a single region"), "{refused}");
        let second = Medium::small("second", 2);
        let plug = second.plug(1);
        let refused = b.mirror.attach(&second.leg(&plug)).unwrap_err().to_string();
        assert!(refused.contains("one partial leg"), "{refused}");
        let whole = NewLeg::new(Arc::clone(&plug.device));
        let refused = b.mirror.attach(&whole).unwrap_err().to_string();
        assert!(refused.contains("--partial"), "{refused}");
    });
}
