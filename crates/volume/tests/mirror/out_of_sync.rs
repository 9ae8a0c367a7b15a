//! Regions that are out of sync after a power cut: until they are read or written any present leg
//! may become their primary, and afterwards all legs hold the same.

use std::time::Duration;
use steadfast_block::{BlockDevice, Request};
use steadfast_devices::filter::fault::{Effect, FaultRule, Ops};
use steadfast_runtime::sleep;
use steadfast_volume::ResyncThrottle;
use steadfast_volume::mirror::LegState;

use crate::bench::{BLOCK, Bench, DATA, REGION, bench, degraded, plain, simulated};
use crate::campaign::truth::bytes_of;
use crate::gate::writes;

/// Of so many legs, after a cut in the middle of a write of block 0: the legs that are `behind`
/// hold version 1 of it, which was flushed, the others version 2.
fn in_doubt(legs: usize, behind: &[usize]) -> Bench {
    let mut b = bench(&vec![false; legs]);
    (0..4).for_each(|n| b.write(n, 1));
    b.write(100, 1);
    b.mirror.flush().unwrap();
    behind.iter().for_each(|leg| b.gates[*leg].shut(writes(DATA..1 << 20)));
    let data = bytes_of(2, 0).into();
    drop(b.mirror.submit(Request::Write { offset: 0, data, fua: true }));
    behind.iter().for_each(|leg| b.gates[*leg].wait());
    sleep(Duration::from_millis(1));
    b.cut(0);
    b
}

/// Data that was read of an out-of-sync region is stable, also after another power cut.
#[test]
fn rule_what_was_read_stays() {
    simulated(|| {
        let mut b = in_doubt(2, &[0]);
        b.assemble(&[0, 1], &plain()).unwrap();
        assert!(b.is(0, 1));
        b.cut(0);
        // Leg 1 was given it before it was read.
        b.assemble(&[1], &degraded()).unwrap();
        assert!(b.is(0, 1));
        b.assemble(&[1, 0], &plain()).unwrap();
        assert!(b.is_everywhere(0, 1));
    });
}

/// The same where a leg was away when it was read: it does not stand for the region when it is
/// back, though nothing was written meanwhile.
#[test]
fn rule_what_was_read_without_a_leg_stays() {
    simulated(|| {
        // Leg 0 would be the first to stand for it.
        let mut b = in_doubt(2, &[1]);
        b.assemble(&[1], &degraded()).unwrap();
        assert!(b.is(0, 1));
        b.cut(0);
        b.assemble(&[0, 1], &degraded()).unwrap();
        assert!(b.is(0, 1));
    });
}

/// Two legs come back one after the other that both hold what the one that was there lacks: what
/// was read from the first is what is read with the second.
#[test]
fn rule_what_was_read_from_the_first_that_is_back_stays() {
    simulated(|| {
        let mut b = bench(&[false, false, false]);
        (0..4).for_each(|n| b.write(n, 1));
        b.mirror.flush().unwrap();
        b.settle();
        b.mirror.offline(2).unwrap();
        b.write(0, 3);
        b.mirror.flush().unwrap();
        // Leg 2 lacks the region from here on, and is in use.
        b.mirror.online(2, None).unwrap();
        b.gates[1].shut(writes(DATA..1 << 20));
        let data = bytes_of(2, 0).into();
        drop(b.mirror.submit(Request::Write { offset: 0, data, fua: true }));
        b.gates[1].wait();
        sleep(Duration::from_millis(1));
        b.cut(0);
        b.assemble(&[2], &degraded()).unwrap();
        b.mirror.read(0, BLOCK).unwrap_err();
        b.mirror.online(0, Some(b.device(0))).unwrap();
        assert!(b.is(0, 2));
        b.mirror.online(1, Some(b.device(1))).unwrap();
        assert!(b.is_everywhere(0, 2));
        assert!(b.mirror.resync(ResyncThrottle::default()).unwrap().complete);
        assert!(b.is_everywhere(0, 2));
    });
}

/// The leg that stands for it is lost before it was copied: another one does.
#[test]
fn rule_any_leg_may_stand_for_what_nobody_has_read() {
    simulated(|| {
        for (behind, cut) in [(0, true), (1, true), (0, false), (1, false)] {
            let mut b = in_doubt(2, &[behind]);
            b.assemble(&[0, 1], &plain()).unwrap();
            // It is in use, and what it decided is written down.
            b.write(200, 3);
            b.mirror.flush().unwrap();
            assert_ne!((b.state(0), b.state(1)), (LegState::Okay, LegState::Okay));
            if cut {
                b.cut(0);
                b.assemble(&[1], &degraded()).unwrap();
            } else {
                b.plugs[0].unplug();
            }
            assert!(b.is(0, if behind == 0 { 2 } else { 1 }), "{behind} {cut}");
            assert!((1..4).all(|n| b.is(n, 1)) && b.is(100, 1) && b.is(200, 3));
            b.write(1, 5);
            b.mirror.flush().unwrap();
            b.cut(0);
            b.assemble(&[0, 1], &plain()).unwrap();
            assert!(b.mirror.resync(ResyncThrottle::default()).unwrap().complete);
            assert!(b.is_everywhere(1, 5));
            assert!(b.is_everywhere(0, if behind == 0 { 2 } else { 1 }));
        }
    });
}

/// The leg that stands for it cannot be read: another one does, and that leg is given the region.
#[test]
fn rule_a_leg_that_cannot_be_read_does_not_stand_for_it() {
    simulated(|| {
        let mut b = in_doubt(3, &[0]);
        let bad =
            FaultRule::new(Ops::READ, Effect::Fail("injected".into())).within(DATA..DATA + REGION);
        b.plugs[0].with(Some(bad), 10);
        b.assemble(&[0, 1, 2], &plain()).unwrap();
        assert!(b.is(0, 2) && b.is(1, 1));
        b.plugs[0].with(None, 10);
        b.cut(0);
        b.assemble(&[0], &degraded()).unwrap();
        assert!(b.is(0, 2) && b.is(1, 1));
    });
}

/// No leg can be read everywhere: what one can be read is, and the others may be written again.
#[test]
fn what_no_leg_holds_whole_is_read_where_it_can_be() {
    simulated(|| {
        let mut b = in_doubt(2, &[1]);
        let broken = |at: u64| {
            let place = DATA + at * BLOCK..DATA + (at + 1) * BLOCK;
            Some(FaultRule::new(Ops::READ, Effect::Fail("injected".into())).within(place))
        };
        b.plugs[0].with(broken(3), 10);
        b.plugs[1].with(broken(2), 10);
        b.assemble(&[0, 1], &plain()).unwrap();
        assert!(b.is(0, 2) && b.is(1, 1));
        b.mirror.read(3 * BLOCK, BLOCK).unwrap_err();
        b.plugs.iter().for_each(|plug| plug.with(None, 10));
        b.write(3, 7);
        assert!(b.mirror.resync(ResyncThrottle::default()).unwrap().complete);
        assert!(b.is_everywhere(0, 2) && b.is_everywhere(3, 7));
    });
}

/// A power cut while a leg is given what is in doubt: nothing that was flushed is lost, and the
/// next read decides for all.
#[test]
fn rule_a_cut_while_it_is_decided_loses_nothing() {
    simulated(|| {
        for seed in 0..8 {
            let mut b = in_doubt(3, &[0, 2]);
            b.assemble(&[0, 1, 2], &plain()).unwrap();
            b.gates[1].shut(writes(DATA..1 << 20));
            let mirror = b.mirror.clone();
            drop(steadfast_runtime::spawn("reader", move || drop(mirror.read(0, BLOCK))));
            b.gates[1].wait();
            sleep(Duration::from_millis(1));
            b.cut(seed);
            let there: &[usize] = if seed % 2 == 0 { &[1, 2] } else { &[2, 1, 0] };
            b.assemble(there, &degraded()).unwrap();
            let found = b.mirror.read(0, BLOCK).unwrap();
            assert!([1, 2].iter().any(|tag| found == bytes_of(*tag, 0)), "seed {seed}");
            let alone = 1 + (seed as usize / 2) % 2;
            b.cut(seed);
            b.assemble(&[alone], &degraded()).unwrap();
            assert!(b.mirror.read(0, BLOCK).unwrap() == found, "seed {seed}");
            assert!((1..4).all(|n| b.is(n, 1)) && b.is(100, 1));
        }
    });
}

/// Memory is filled with what stands for the region; when that is lost before the other legs are
/// flushed, memory lacks it.
#[test]
fn rule_memory_does_not_keep_what_another_leg_stood_for() {
    simulated(|| {
        let mut b = bench(&[false, false, true]);
        b.write(0, 1);
        b.mirror.flush().unwrap();
        b.gates[0].shut(writes(DATA..1 << 20));
        let data = bytes_of(2, 0).into();
        drop(b.mirror.submit(Request::Write { offset: 0, data, fua: true }));
        b.gates[0].wait();
        sleep(Duration::from_millis(1));
        b.cut(0);
        b.assemble(&[0, 1], &plain()).unwrap();
        let memory = steadfast_volume::NewLeg::new(b.device(2));
        b.mirror.replace(2, Some(&memory)).unwrap();
        // Leg 1 does not take the copy, and leg 0 is lost in the middle of it.
        b.gates[1].shut(writes(DATA..1 << 20));
        let mirror = b.mirror.clone();
        let copy = steadfast_runtime::spawn("resync", move || {
            drop(mirror.resync(ResyncThrottle::default()));
        });
        b.gates[1].wait();
        sleep(Duration::from_millis(1));
        b.plugs[0].unplug();
        b.gates[1].open();
        copy.join().unwrap();
        let found = b.mirror.read(0, BLOCK).unwrap();
        assert!([1, 2].iter().any(|tag| found == bytes_of(*tag, 0)));
        b.mirror.resync(ResyncThrottle::default()).unwrap();
        let tag = if found == bytes_of(1, 0) { 1 } else { 2 };
        assert!(b.is_everywhere(0, tag));
    });
}
