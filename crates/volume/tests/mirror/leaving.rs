//! Writes of which the leg that took them is gone before those that failed are dealt with.

use std::time::Duration;

use steadfast_block::{BlockDevice, Request};
use steadfast_devices::filter::fault::{Effect, FaultRule, Ops};
use steadfast_runtime::{sleep, spawn};
use steadfast_volume::ResyncThrottle;
use steadfast_volume::mirror::LegState;

use crate::bench::{BLOCK, Bench, DATA, REGION, bench, degraded, simulated};
use crate::campaign::truth::bytes_of;
use crate::gate::{is_flush, writes};

/// Where a leg's first label is.
const LABEL: std::ops::Range<u64> = 4096..8192;
/// The first block of the second region.
const SECOND: u64 = REGION / BLOCK;

/// Legs that all hold the first region; leg 1 lacks the second one, so that leg 0 stays in use
/// whatever it fails.
fn unequal(volatile: &[bool]) -> Bench {
    let b = bench(volatile);
    [0, 1, SECOND].into_iter().for_each(|n| b.write(n, 1));
    b.mirror.flush().unwrap();
    b.settle();
    b.mirror.offline(1).unwrap();
    b.write(SECOND, 2);
    b.mirror.flush().unwrap();
    b.mirror.online(1, None).unwrap();
    b
}

fn failing(range: std::ops::Range<u64>) -> Option<FaultRule> {
    Some(FaultRule::new(Ops::WRITE, Effect::Fail("injected".into())).within(range).nth(1))
}

/// A write is not acknowledged that only a leg took which is out of use by then; and one that was
/// acknowledged can be read, now and after a power cut.
fn acknowledged_or_not(mut b: Bench, acknowledged: bool) {
    assert_eq!(b.state(1), LegState::NeedsMaintenance);
    assert!(!acknowledged, "no leg that is in use has it: block 0 is {}", b.is(0, 3));
    assert!(b.is(1, 1) && b.is(SECOND, 2));
    b.write(0, 4);
    b.mirror.flush().unwrap();
    b.cut(0);
    b.assemble(&[0], &degraded()).unwrap();
    assert!(b.is(0, 4) && b.is(1, 1) && b.is(SECOND, 2));
}

/// Memory failed the write too: that is written to the labels, which leg 1 does not take.
#[test]
fn rule_a_write_is_not_acknowledged_for_a_leg_that_fails_the_labels_after_it() {
    simulated(|| {
        let b = unequal(&[false, false, true]);
        b.plugs[0].with(failing(DATA..DATA + BLOCK), 10);
        b.plugs[2].with(failing(DATA..DATA + BLOCK), 10);
        b.plugs[1].with(failing(LABEL), 10);
        let acknowledged = b.mirror.write(0, bytes_of(3, 0).into()).is_ok();
        acknowledged_or_not(b, acknowledged);
    });
}

/// Leg 1 does not take the labels that somebody else is writing.
#[test]
fn rule_a_write_is_not_acknowledged_for_a_leg_that_fails_another_change() {
    simulated(|| {
        let b = unequal(&[false, false]);
        b.gates[0].shut(writes(DATA..DATA + BLOCK));
        let data = bytes_of(3, 0).into();
        let late = b.mirror.submit(Request::Write { offset: 0, data, fua: false });
        b.gates[0].wait();
        b.gates[1].shut(writes(LABEL));
        let mirror = b.mirror.clone();
        let change = spawn("policies", move || mirror.set_policies(mirror.policies()).is_ok());
        b.gates[1].wait();
        b.plugs[0].with(failing(DATA..DATA + BLOCK), 10);
        b.plugs[1].with(failing(LABEL), 10);
        b.gates[0].open();
        sleep(Duration::from_millis(1));
        b.gates[1].open();
        assert!(change.join().unwrap());
        let acknowledged = late.wait().is_ok();
        acknowledged_or_not(b, acknowledged);
    });
}

/// Leg 1 holds a region since it was copied, and does not take the flush that would make it stay.
#[test]
fn rule_a_write_is_not_acknowledged_for_a_copy_that_cannot_be_flushed() {
    simulated(|| {
        let b = bench(&[false, false]);
        [0, 1, SECOND].into_iter().for_each(|n| b.write(n, 1));
        b.mirror.flush().unwrap();
        b.settle();
        b.mirror.offline(1).unwrap();
        [0, SECOND].into_iter().for_each(|n| b.write(n, 2));
        b.mirror.flush().unwrap();
        b.mirror.online(1, None).unwrap();
        // The first region is copied, the second one is not, and nothing is flushed yet.
        b.gates[1].shut(writes(DATA + REGION..DATA + 2 * REGION));
        let mirror = b.mirror.clone();
        let resync = spawn("resync", move || drop(mirror.resync(ResyncThrottle::default())));
        b.gates[1].wait();
        b.plugs[0].with(failing(DATA..DATA + BLOCK), 10);
        let flush = FaultRule::new(Ops::FLUSH, Effect::Fail("injected".into())).nth(1);
        b.plugs[1].with(Some(flush), 10);
        let acknowledged = b.mirror.write(0, bytes_of(3, 0).into()).is_ok();
        b.gates[1].open();
        resync.join().unwrap();
        acknowledged_or_not(b, acknowledged);
    });
}

/// A flush that is held, on the leg that is dropped meanwhile, is acknowledged for those that stay.
#[test]
fn a_flush_of_a_leg_that_is_dropped_under_it_counts_for_the_others() {
    simulated(|| {
        let mut b = bench(&[false, false]);
        b.write(0, 1);
        b.gates[1].shut(is_flush);
        let flush = b.mirror.submit(Request::Flush);
        b.gates[1].wait();
        b.plugs[1].with(failing(DATA..DATA + BLOCK), 10);
        b.write(0, 2);
        assert_eq!(b.state(1), LegState::NeedsMaintenance);
        b.gates[1].open();
        flush.wait().unwrap();
        b.mirror.flush().unwrap();
        b.cut(0);
        b.assemble(&[0, 1], &degraded()).unwrap();
        assert!(b.is_everywhere(0, 2));
    });
}
