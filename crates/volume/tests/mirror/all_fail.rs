//! Requests that fail on every durable leg: what was flushed before is on each of them, so any may
//! be lost afterwards.

use steadfast_block::{BlockDevice, Request};
use steadfast_devices::filter::fault::{Effect, FaultRule, Ops};
use steadfast_volume::ResyncThrottle;
use steadfast_volume::mirror::LegState;

use crate::bench::{BLOCK, Bench, DATA, REGION, bench, degraded, plain, simulated};
use crate::campaign::truth::bytes_of;

/// Versions of block 0, on which the failed write was.
const EITHER: [u64; 2] = [1, 2];

/// With version 1 of some blocks, flushed.
fn flushed(volatile: &[bool]) -> Bench {
    let b = bench(volatile);
    (0..4).for_each(|n| b.write(n, 1));
    b.write(100, 1);
    b.mirror.flush().unwrap();
    b
}

/// The next write to this range fails on these legs, after it was carried out or not at all.
fn fail_writes(b: &Bench, legs: &[(usize, bool)], range: std::ops::Range<u64>) {
    for (leg, late) in legs {
        let text = "injected".to_owned();
        let effect = if *late { Effect::FailAfter(text) } else { Effect::Fail(text) };
        let rule = FaultRule::new(Ops::WRITE, effect).within(range.clone()).nth(1);
        b.plugs[*leg].with(Some(rule), 10);
    }
}

fn sound(b: &Bench, legs: &[usize]) {
    legs.iter().for_each(|leg| b.plugs[*leg].with(None, 10));
}

fn write_fails(b: &Bench, tag: u64, fua: bool) {
    let data = bytes_of(tag, 0).into();
    b.mirror.submit(Request::Write { offset: 0, data, fua }).wait().unwrap_err();
}

fn is_either(b: &Bench) -> u64 {
    let found = b.mirror.read(0, BLOCK).unwrap();
    EITHER.into_iter().find(|tag| found == bytes_of(*tag, 0)).expect("one of the two")
}

/// For each leg: the write was carried out all the same.
const HOW: [[bool; 2]; 4] = [[false, false], [true, false], [false, true], [true, true]];

/// Both legs fail one write, then one of them is lost, before anybody has read the region.
#[test]
fn rule_a_write_that_fails_on_all_legs_leaves_what_was_flushed_on_each() {
    simulated(|| {
        for late in HOW {
            for lost in 0..2 {
                let b = flushed(&[false, false]);
                fail_writes(&b, &[(0, late[0]), (1, late[1])], DATA..DATA + BLOCK);
                write_fails(&b, 2, false);
                b.plugs[lost].unplug();
                is_either(&b);
                assert!((1..4).all(|n| b.is(n, 1)) && b.is(100, 1), "{late:?} {lost}");
                b.write(0, 5);
                b.mirror.flush().unwrap();
                assert!(b.is(0, 5));
            }
        }
    });
}

/// The same where the power is cut, and one leg does not come back.
#[test]
fn rule_the_same_after_a_cut() {
    simulated(|| {
        for (late, seed) in HOW.into_iter().zip(0..) {
            for left in 0..2 {
                let mut b = flushed(&[false, false]);
                fail_writes(&b, &[(0, late[0]), (1, late[1])], DATA..DATA + BLOCK);
                write_fails(&b, 2, seed % 2 == 0);
                // What is acknowledged afterwards, in other places, holds on both.
                sound(&b, &[0, 1]);
                b.write(200, 3);
                b.mirror.flush().unwrap();
                b.cut(seed);
                b.assemble(&[left], &degraded()).unwrap();
                is_either(&b);
                assert!((1..4).all(|n| b.is(n, 1)) && b.is(100, 1) && b.is(200, 3));
            }
        }
    });
}

/// What was read after the failed write is what is read from then on, from every leg and after a
/// power cut; and writes beside it that are acknowledged hold on both.
#[test]
fn rule_what_was_read_after_a_failed_write_stays() {
    simulated(|| {
        for (late, seed) in HOW.into_iter().zip(0..) {
            for left in 0..2 {
                let mut b = flushed(&[false, false]);
                fail_writes(&b, &[(0, late[0]), (1, late[1])], DATA..DATA + BLOCK);
                write_fails(&b, 2, false);
                sound(&b, &[0, 1]);
                let tag = is_either(&b);
                assert!(b.is_everywhere(0, tag), "{late:?}");
                b.write(1, 4);
                b.mirror.flush().unwrap();
                b.cut(seed);
                b.assemble(&[left], &degraded()).unwrap();
                assert!(b.is(0, tag) && b.is(1, 4) && b.is(2, 1), "{late:?} {left}");
            }
        }
    });
}

/// A write to two regions of which one leg lacks one: that leg is not taken for one that has the
/// other, and nobody is taken to have what all have failed.
#[test]
fn rule_a_failed_write_over_two_regions() {
    simulated(|| {
        for lost in 0..2 {
            let b = flushed(&[false, false, false]);
            let second = REGION / BLOCK;
            b.write(second, 1);
            b.mirror.flush().unwrap();
            b.settle();
            b.mirror.offline(2).unwrap();
            b.write(1, 6);
            b.mirror.flush().unwrap();
            b.mirror.online(2, None).unwrap();
            // Leg 2 lacks the first region, and takes the second half.
            let all = DATA..DATA + 2 * REGION;
            fail_writes(&b, &[(0, false), (1, true)], all);
            let (from, count) = (second - 1, 2);
            let data: Vec<u8> = (from..from + count).flat_map(|n| bytes_of(2, n)).collect();
            b.mirror.write(from * BLOCK, data.into()).unwrap_err();
            sound(&b, &[0, 1]);
            b.plugs[lost].unplug();
            assert!(b.is(0, 1) && b.is(1, 6) && b.is(2, 1), "{lost}");
            // What leg 2 took was not acknowledged, and may be either.
            let found = b.mirror.read(second * BLOCK, BLOCK).unwrap();
            let tag = EITHER.into_iter().find(|tag| found == bytes_of(*tag, second)).unwrap();
            assert!(b.is_everywhere(second, tag));
            assert!(b.mirror.resync(ResyncThrottle::default()).unwrap().complete);
            assert!(b.is_everywhere(0, 1) && b.is_everywhere(1, 6));
            assert!(b.is_everywhere(second, tag));
        }
    });
}

/// One of the two is gone for good: it is dropped, and the other one stands for all.
#[test]
fn rule_a_leg_that_is_gone_is_dropped_where_the_other_one_failed_too() {
    simulated(|| {
        for gone in 0..2 {
            let mut b = flushed(&[false, false]);
            b.plugs[gone].unplug();
            fail_writes(&b, &[(1 - gone, false)], DATA..DATA + BLOCK);
            write_fails(&b, 2, false);
            assert_eq!(b.state(gone), LegState::NeedsMaintenance);
            assert!(b.is(0, 1) && b.is(1, 1));
            b.write(1, 3);
            b.mirror.flush().unwrap();
            b.cut(0);
            b.assemble(&[0, 1], &plain()).unwrap();
            assert!(b.is_everywhere(0, 1) && b.is_everywhere(1, 3));
        }
    });
}

/// Memory took the write that failed on both disks: it is not what counts.
#[test]
fn rule_memory_alone_does_not_hold_what_failed() {
    simulated(|| {
        let mut b = flushed(&[false, false, true]);
        fail_writes(&b, &[(0, false), (1, false)], DATA..DATA + BLOCK);
        write_fails(&b, 2, false);
        sound(&b, &[0, 1]);
        assert!(b.is(0, 1) && b.is_everywhere(0, 1));
        b.mirror.resync(ResyncThrottle::default()).unwrap();
        assert!(b.is_everywhere(0, 1));
        b.cut(0);
        b.assemble(&[0, 1], &degraded()).unwrap();
        assert!(b.is_everywhere(0, 1));
    });
}

/// A flush that fails on all legs ends the use; the next assembly may do with either leg.
#[test]
fn rule_a_flush_that_fails_on_all_legs_leaves_what_was_flushed_on_each() {
    simulated(|| {
        for left in 0..2 {
            let mut b = flushed(&[false, false]);
            b.write(0, 2);
            for plug in &b.plugs {
                plug.with(
                    Some(FaultRule::new(Ops::FLUSH, Effect::Fail("injected".into())).nth(1)),
                    10,
                );
            }
            b.mirror.flush().unwrap_err();
            b.mirror.flush().unwrap_err();
            // Either leg can be read until then.
            b.plugs[1 - left].unplug();
            is_either(&b);
            assert!(b.is(1, 1) && b.is(100, 1));
            // Of block 0 the cut leaves each sector old or new.
            b.cut(0);
            b.assemble(&[left], &degraded()).unwrap();
            assert!((1..4).all(|n| b.is(n, 1)) && b.is(100, 1));
        }
    });
}

/// A leg that has failed a write like all the others is notified, and is good again once somebody
/// says that it is.
#[test]
fn legs_that_all_failed_are_reported_and_taken_online() {
    simulated(|| {
        let b = flushed(&[false, false]);
        fail_writes(&b, &[(0, false), (1, false)], DATA..DATA + BLOCK);
        write_fails(&b, 2, false);
        sound(&b, &[0, 1]);
        assert_eq!((b.state(0), b.state(1)), (LegState::LastErred, LegState::LastErred));
        b.mirror.online(0, None).unwrap();
        b.mirror.online(1, None).unwrap();
        assert!(b.mirror.resync(ResyncThrottle::default()).unwrap().complete);
        assert_eq!((b.state(0), b.state(1)), (LegState::Okay, LegState::Okay));
        b.mirror.online(1, None).unwrap_err();
        assert!(b.is_everywhere(0, 1));
    });
}
