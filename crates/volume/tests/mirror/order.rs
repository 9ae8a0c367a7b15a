//! What must come before what, one by one: with it exchanged or left out these fail, and for long
//! no run of the campaign does.

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::{BlockDevice, Request};
use steadfast_devices::filter::fault::{Effect, FaultRule, Ops};
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_runtime::{Sim, sleep, spawn};
use steadfast_volume::member::read_label;
use steadfast_volume::mirror::LegState;
use steadfast_volume::ondisk::checksums::record_at;
use steadfast_volume::{
    AssembleOptions, MirrorOptions, NewLeg, Policies, ReadPolicy, ResyncThrottle, assemble,
    create_mirror,
};

use crate::bench::{
    BLOCK, Bench, DATA, Device, REGION, bench, bench_with, degraded, options, plain, simulated,
};
use crate::campaign::truth::bytes_of;
use crate::gate::{is_flush, writes};

/// The first block of the second region.
const SECOND: u64 = REGION / BLOCK;

fn fua(b: &Bench, block: u64, tag: u64) {
    let data = bytes_of(tag, block).into();
    b.mirror.submit(Request::Write { offset: block * BLOCK, data, fua: true }).wait().unwrap();
}

/// A write with FUA to what is written already is on each durable leg.
#[test]
fn rule_fua_means_every_durable_leg() {
    simulated(|| {
        for (left, seed) in (0..3).flat_map(|left| (0..4).map(move |seed| (left, seed))) {
            let mut b = bench(&[false, false, false]);
            b.write(0, 1);
            b.mirror.flush().unwrap();
            fua(&b, 0, 2);
            b.cut(seed);
            b.assemble(&[left], &degraded()).unwrap();
            assert!(b.is(0, 2), "leg {left}, seed {seed}");
        }
    });
}

/// The map says that a region is unwritten before any leg is asked to discard it.
#[test]
fn rule_a_leg_forgets_what_the_map_has_given_up() {
    simulated(|| {
        for late in 0..2 {
            let mut b = bench(&[false, false]);
            (0..4).for_each(|n| b.write(n, 1));
            b.mirror.flush().unwrap();
            b.settle();
            b.gates[late].shut(|request| matches!(request, Request::Discard { .. }));
            drop(b.mirror.submit(Request::Discard { offset: 0, len: REGION }));
            b.gates[late].wait();
            sleep(Duration::from_millis(1));
            b.plugs[1 - late].device.flush().unwrap();
            b.cut(0);
            b.assemble(&[0, 1], &plain()).unwrap();
            assert!(b.is_everywhere(0, 0), "leg {late} did not forget it, the other one did");
        }
    });
}

/// A region that is written while others become clean is not clean: the legs may hold different
/// parts of it after a power cut.
#[test]
fn rule_what_is_written_meanwhile_does_not_become_clean() {
    for seed in 0..8 {
        Sim::new(seed)
            .run(move || {
                let mut b = bench(&[false, false]);
                b.write(0, 1);
                b.mirror.flush().unwrap();
                b.gates[1].shut(is_flush);
                let mirror = b.mirror.clone();
                let upkeep = spawn("upkeep", move || (0..2).for_each(|_| mirror.tick().unwrap()));
                b.gates[1].wait();
                b.write(0, 2);
                b.gates[1].open();
                upkeep.join().unwrap();
                b.cut(seed);
                b.assemble(&[0, 1], &plain()).unwrap();
                let first = b.mirror.read(0, BLOCK).unwrap();
                for slot in 0..2 {
                    let read = ReadPolicy::Preferred(slot);
                    b.mirror.set_policies(Policies { read, ..Policies::default() }).unwrap();
                    assert!(b.mirror.read(0, BLOCK).unwrap() == first, "{seed}: leg {slot}");
                }
            })
            .unwrap();
    }
}

/// A leg that is dropped while it is given what it lacks lacks it still when it is back, and what
/// was written meanwhile.
#[test]
fn rule_what_was_copied_before_a_leg_left_is_not_what_it_holds() {
    simulated(|| {
        let b = bench(&[false, false]);
        [0, SECOND].into_iter().for_each(|n| b.write(n, 1));
        b.mirror.flush().unwrap();
        b.mirror.offline(1).unwrap();
        [0, SECOND].into_iter().for_each(|n| b.write(n, 2));
        b.mirror.flush().unwrap();
        b.settle();
        b.mirror.online(1, None).unwrap();
        let before = b.mirror.status();
        // The first region is copied when leg 1 fails a flush.
        b.gates[1].shut(writes(DATA + REGION..DATA + 2 * REGION));
        let mirror = b.mirror.clone();
        let resync = spawn("resync", move || drop(mirror.resync(ResyncThrottle::default())));
        b.gates[1].wait();
        let failing = FaultRule::new(Ops::FLUSH, Effect::Fail("injected".into())).nth(1);
        b.plugs[1].with(Some(failing), 10);
        b.mirror.flush().unwrap();
        assert_eq!(b.state(1), LegState::NeedsMaintenance);
        b.gates[1].open();
        resync.join().unwrap();
        let why = b.mirror.status().failed_since(&before).unwrap();
        assert!(why.starts_with("leg 1 (") && why.contains("injected"), "{why}");
        b.write(0, 3);
        b.mirror.flush().unwrap();
        b.settle();
        b.mirror.online(1, None).unwrap();
        assert!(b.is_everywhere(0, 3) && b.is_everywhere(SECOND, 2));
        assert!(b.mirror.resync(ResyncThrottle::default()).unwrap().complete);
        assert!(b.is_everywhere(0, 3) && b.is_everywhere(SECOND, 2));
    });
}

/// The map of the new part of a volume is on the legs before a label covers it: it reads as
/// zeros, whatever the devices held there.
#[test]
fn rule_the_map_of_what_is_new_comes_before_the_label() {
    simulated(|| {
        const SMALL: u64 = 4096;
        // More regions than one block of the map covers, and then more than two.
        let (before, after) = (2100 * SMALL, 4200 * SMALL);
        let junk = |_| {
            let mut store = Store::new(32 << 20);
            (0..32 << 8).for_each(|n| store.write_slice(n * BLOCK, &bytes_of(9, n)));
            Ram::from_store("leg", store).persistent()
        };
        let legs: Vec<Ram> = (0..2).map(junk).collect();
        let new = legs.iter().map(|leg| NewLeg::new(Arc::new(leg.clone()) as Device));
        let size = MirrorOptions {
            size: Some(before),
            region_bytes: Some(SMALL as u32),
            ..MirrorOptions::default()
        };
        let mirror = create_mirror("m", &new.collect::<Vec<_>>(), &size).unwrap();
        mirror.write(0, bytes_of(1, 0).into()).unwrap();
        mirror.flush().unwrap();
        mirror.grow(Some(after)).unwrap();
        // As a power cut would leave it.
        let copy = |leg: &Ram| Arc::new(Ram::from_store("leg", leg.store()).persistent()) as Device;
        let found = assemble(&legs.iter().map(copy).collect::<Vec<_>>(), &plain());
        let again = found.volumes[0].mirror.as_ref().unwrap();
        assert_eq!(again.info().size, after);
        assert!(again.read(0, BLOCK).unwrap() == bytes_of(1, 0));
        for region in [2099, 2100, 4031, 4032, 4199] {
            let read = again.read(region * SMALL, SMALL).unwrap();
            assert!(read.iter().all(|byte| *byte == 0), "{region}");
        }
        found.close().unwrap();
    });
}

/// Of a leg that was used apart and given up nothing of its map counts, however often it was
/// written there.
#[test]
fn rule_the_map_of_a_leg_that_is_given_up_is_forgotten() {
    simulated(|| {
        for more in 0..2 {
            let mut b = bench(&[false, false]);
            b.write(0, 1);
            b.mirror.flush().unwrap();
            b.mirror.close().unwrap();
            b.cut(0);
            b.assemble(&[1], &degraded()).unwrap();
            // There the first region is unwritten, and the map has high numbers.
            b.mirror.discard(0, REGION).unwrap();
            for n in 0..10 + more {
                b.write((1 + n) * SECOND, 5);
                b.mirror.flush().unwrap();
            }
            b.cut(0);
            b.assemble(&[0], &degraded()).unwrap();
            b.write(1, 2);
            b.mirror.flush().unwrap();
            let uuid = b.mirror.status().legs.iter().find(|leg| leg.slot == 0).unwrap().uuid;
            b.cut(0);
            let keep = AssembleOptions { keep: Some(uuid), ..plain() };
            b.assemble(&[0, 1], &keep).unwrap();
            // It is written down which side counts, and the power goes again.
            b.mirror.flush().unwrap();
            b.cut(0);
            b.assemble(&[0, 1], &plain()).unwrap();
            assert!(b.is_everywhere(0, 1) && b.is_everywhere(1, 2), "{more}");
            assert!(b.is_everywhere(2 * SECOND, 0), "{more}");
        }
    });
}

fn with_checksums() -> MirrorOptions {
    MirrorOptions { checksums: true, ..options() }
}

/// A leg that was given a region, and no record of its checksums, is not taken to have one: it may
/// have an old one.
#[test]
fn rule_an_old_record_of_a_leg_that_is_back_disproves_nothing() {
    simulated(|| {
        let mut b = bench_with(&[false, false], &with_checksums());
        (0..4).for_each(|n| b.write(SECOND + n, 1));
        b.mirror.flush().unwrap();
        b.settle();
        b.mirror.offline(1).unwrap();
        b.write(SECOND + 1, 7);
        b.mirror.flush().unwrap();
        b.settle();
        b.cut(0);
        b.assemble(&[0, 1], &plain()).unwrap();
        // Nobody has looked at the record yet: that of leg 0 cannot be read while the region is
        // copied.
        let label = read_label(&b.device(0)).unwrap().unwrap().label;
        let (at, len) = record_at(label.map_blocks, REGION, 1);
        let bad =
            FaultRule::new(Ops::READ, Effect::Fail("a bad sector".into())).within(at..at + len);
        b.plugs[0].with(Some(bad), 10);
        b.mirror.online(1, None).unwrap();
        assert!(b.mirror.resync(ResyncThrottle::default()).unwrap().complete);
        assert!(b.mirror.status().legs[0].counters.errors > 0);
        b.mirror.flush().unwrap();
        b.cut(0);
        b.assemble(&[1], &degraded()).unwrap();
        assert!(b.is(SECOND + 1, 7) && b.is(SECOND, 1));
    });
}

/// Nobody knows what a block is of which a write failed on all legs: neither of both is refused.
#[test]
fn rule_a_write_that_fails_on_all_legs_has_no_checksum() {
    simulated(|| {
        for late in [[false, false], [true, false], [false, true], [true, true]] {
            let b = bench_with(&[false, false], &with_checksums());
            (0..4).for_each(|n| b.write(n, 1));
            b.mirror.flush().unwrap();
            let data = read_label(&b.device(0)).unwrap().unwrap().label.data_start;
            for (plug, late) in b.plugs.iter().zip(late) {
                let text = "injected".to_owned();
                let effect = if late { Effect::FailAfter(text) } else { Effect::Fail(text) };
                plug.with(
                    Some(FaultRule::new(Ops::WRITE, effect).within(data..data + 1).nth(1)),
                    10,
                );
            }
            b.mirror.write(0, bytes_of(2, 0).into()).unwrap_err();
            let found = b.mirror.read(0, BLOCK).unwrap();
            assert!([1, 2].iter().any(|tag| found == bytes_of(*tag, 0)), "{late:?}");
            assert!((1..4).all(|n| b.is(n, 1)), "{late:?}");
        }
    });
}

/// Each leg cannot be read in one of two regions: the other one has it.
#[test]
fn rule_of_each_region_that_leg_is_asked_that_can_be_read() {
    simulated(|| {
        for options in [options(), with_checksums()] {
            for waits in [true, false] {
                let b = bench_with(&[false, false], &options);
                [0, SECOND].iter().for_each(|block| b.write(*block, 1));
                b.mirror.flush().unwrap();
                let data = read_label(&b.device(0)).unwrap().unwrap().label.data_start;
                for (plug, at) in b.plugs.iter().zip([data, data + REGION]) {
                    let bad = FaultRule::new(Ops::READ, Effect::Fail("a bad sector".into()));
                    plug.with(Some(bad.within(at..at + BLOCK)), 10);
                }
                let len = 2 * REGION;
                let found = match waits {
                    true => b.mirror.read(0, len).unwrap(),
                    false => b.mirror.submit(Request::Read { offset: 0, len }).wait().unwrap(),
                };
                for block in [0, SECOND] {
                    let at = (block * BLOCK) as usize;
                    assert!(found[at..].starts_with(&bytes_of(1, block)), "{block} {waits}");
                }
            }
        }
    });
}
