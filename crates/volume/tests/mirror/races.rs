//! What happens in the middle of something else.

use std::sync::Arc;

use steadfast_block::rng::Rng;
use steadfast_block::{BlockDevice, Request};
use steadfast_devices::filter::fault::{Effect, FaultRule, Ops};
use steadfast_runtime::{Sim, sleep, spawn};
use steadfast_volume::mirror::LegState;
use steadfast_volume::{NewLeg, ResyncThrottle};

use crate::bench::{BLOCK, DATA, bench, degraded, plain, simulated};
use crate::campaign::media::{LEG_BYTES, Medium};
use crate::campaign::truth::bytes_of;
use crate::gate::{Gate, is_flush, writes};

const MAP: std::ops::Range<u64> = 8192..DATA;

/// A block of the map, and not the zeros before there is one.
fn is_map(request: &Request) -> bool {
    match request {
        Request::Write { offset, data, .. } => {
            MAP.contains(offset) && data.slice(0, 4).into_contiguous() == b"SFRM"[..]
        }
        _ => false,
    }
}

/// A flush promises what was written before it, also if another flush is still writing down that
/// it is there.
#[test]
fn rule_a_flush_waits_for_the_map_of_another_flush() {
    for legs in [&[false][..], &[false, false], &[false, true]] {
        Sim::new(5)
            .run(move || {
                let mut b = bench(legs);
                b.write(20, 5);
                b.gates[0].shut(writes(MAP));
                let first = b.mirror.submit(Request::Flush);
                b.gates[0].wait();
                let second = b.mirror.submit(Request::Flush);
                sleep(std::time::Duration::from_millis(5));
                let promised = first.is_done() || second.is_done();
                b.cut(0);
                b.assemble(&[0], &degraded()).unwrap();
                assert!(!promised || b.is(20, 5), "{legs:?}: a flush was acknowledged");
            })
            .unwrap();
    }
}

/// A first write is promised by a flush that began after it, not by one that began before the
/// region was discarded and written again.
#[test]
fn rule_a_flush_does_not_promise_a_first_write_that_it_did_not_see() {
    // More or less of what is in the caches is lost.
    (0..6).for_each(|seed| Sim::new(seed).run(move || discarded_under_a_flush(seed)).unwrap());
}

fn discarded_under_a_flush(seed: u64) {
    let mut b = bench(&[false, false]);
    // The legs take discards, and forget nothing.
    for plug in &b.plugs {
        plug.with(Some(FaultRule::new(Ops::DISCARD, Effect::Lost)), 10);
    }
    b.write(20, 5);
    let mut held = false;
    b.gates[1].shut(move |request| is_flush(request) && !std::mem::replace(&mut held, true));
    let first = b.mirror.submit(Request::Flush);
    b.gates[1].wait();
    sleep(std::time::Duration::from_millis(1));
    b.mirror.discard(64 << 10, 64 << 10).unwrap();
    b.mirror.flush().unwrap();
    // From here on block 20 is zeros for good. The new zeros are in the caches of the legs.
    b.write(21, 6);
    b.gates[1].open();
    first.wait().unwrap();
    b.cut(seed);
    b.assemble(&[0, 1], &plain()).unwrap();
    assert!(b.is_everywhere(20, 0));
}

/// A leg that is dropped while a region is read for it does not hold the region.
#[test]
fn rule_a_leg_that_leaves_during_a_copy_does_not_hold_the_region() {
    simulated(|| {
        let mut b = bench(&[false, false]);
        b.write(0, 1);
        b.mirror.flush().unwrap();
        b.settle();
        b.mirror.offline(1).unwrap();
        b.write(0, 2);
        b.mirror.flush().unwrap();
        b.mirror.online(1, None).unwrap();
        b.gates[0]
            .shut(|request| matches!(request, Request::Read { offset, .. } if *offset >= DATA));
        let mirror = b.mirror.clone();
        let resync = spawn("resync", move || mirror.resync(ResyncThrottle::default()));
        b.gates[0].wait();
        b.plugs[1].with(Some(FaultRule::new(Ops::FLUSH, Effect::Fail("injected".into()))), 10);
        b.mirror.flush().unwrap();
        assert_eq!(b.state(1), LegState::NeedsMaintenance);
        b.plugs[1].with(None, 10);
        b.gates[0].open();
        resync.join().unwrap().unwrap();
        b.mirror.online(1, None).unwrap();
        assert!(b.is_everywhere(0, 2), "it got nothing");
        b.cut(0);
        b.assemble(&[1, 0], &plain()).unwrap();
        assert!(b.is_everywhere(0, 2), "the map says that it has it");
    });
}

/// A write over two regions is acknowledged when each of them is on a durable leg.
#[test]
fn rule_a_write_over_two_regions_needs_a_holder_of_each() {
    simulated(|| {
        let mut b = bench(&[false, false]);
        (14..18).for_each(|n| b.write(n, 1));
        b.mirror.flush().unwrap();
        b.settle();
        b.mirror.offline(1).unwrap();
        b.write(15, 2);
        b.mirror.flush().unwrap();
        b.mirror.online(1, None).unwrap();
        b.cut(0);
        // Leg 0 is gone, and alone has the first region.
        b.assemble(&[1], &degraded()).unwrap();
        let both = [bytes_of(3, 15), bytes_of(3, 16)].concat();
        for fua in [false, true] {
            let write = Request::Write { offset: 15 * BLOCK, data: both.clone().into(), fua };
            let refused = b.mirror.submit(write).wait().unwrap_err().to_string();
            assert!(
                refused.contains("no durable leg that is there holds this region"),
                "{refused}"
            );
        }
        b.mirror.write(15 * BLOCK, both.into()).unwrap_err();
        b.write(17, 4);
        b.mirror.flush().unwrap();
        b.cut(0);
        // It comes back, with what it alone has.
        b.assemble(&[1, 0], &plain()).unwrap();
        assert!(b.is_everywhere(15, 2) && b.is_everywhere(16, 1) && b.is_everywhere(17, 4));
    });
}

/// A label names a new leg when the map says what it lacks, also if another leg fails meanwhile.
#[test]
fn rule_a_new_leg_is_named_when_the_map_is_durable() {
    simulated(|| {
        let mut b = bench(&[false, false]);
        b.write(0, 1);
        b.mirror.flush().unwrap();
        b.settle();
        b.write(32, 1);
        // A write is in flight on leg 1, and will fail.
        b.gates[1].shut(writes(DATA..LEG_BYTES - BLOCK));
        let late = b.mirror.submit(Request::Write {
            offset: 33 * BLOCK,
            data: bytes_of(2, 33).into(),
            fua: false,
        });
        b.gates[1].wait();
        b.gates[0].shut(is_map);
        let fresh = Medium::used("leg2", false, &mut Rng::new(3));
        let plug = fresh.plug(10);
        let gate = Gate::new(Arc::clone(&plug.device));
        gate.shut(is_map);
        let (mirror, new) = (b.mirror.clone(), NewLeg::new(Arc::new(gate.clone())));
        drop(spawn("attach", move || drop(mirror.attach(&new))));
        b.gates[0].wait();
        b.plugs[1].with(Some(FaultRule::new(Ops::WRITE, Effect::Fail("injected".into()))), 10);
        b.gates[1].open();
        // The failed leg is dropped, durably.
        late.wait().unwrap();
        b.disks.push(fresh);
        b.plugs.push(plug);
        b.gates.push(gate);
        b.cut(0);
        b.assemble(&[0, 1, 2], &degraded()).unwrap();
        assert!(b.is_everywhere(0, 1), "the new leg holds nothing");
    });
}

/// A region that was copied to a leg and not flushed stays somewhere when the leg that it came from
/// fails: the map does not call it stale on both.
#[test]
fn rule_what_was_copied_is_flushed_before_its_source_is_stale() {
    simulated(|| {
        let mut b = bench(&[false, false]);
        b.write(0, 1);
        b.write(16, 1);
        b.mirror.flush().unwrap();
        b.settle();
        b.mirror.offline(1).unwrap();
        b.write(0, 2);
        b.write(16, 2);
        b.mirror.flush().unwrap();
        b.mirror.online(1, None).unwrap();
        // The first region is copied, and the power goes before leg 1 is asked to flush; the
        // second one is still on leg 0 alone, so that leg 0 cannot be dropped.
        b.gates[1].shut(is_flush);
        let mirror = b.mirror.clone();
        let one = ResyncThrottle { regions: Some(1), ..ResyncThrottle::default() };
        drop(spawn("resync", move || drop(mirror.resync(one))));
        b.gates[1].wait();
        let failing = FaultRule::new(Ops::WRITE, Effect::Fail("injected".into()));
        b.plugs[0].with(Some(failing.within(DATA..DATA + (64 << 10))), 10);
        let data = bytes_of(3, 1).into();
        let late = b.mirror.submit(Request::Write { offset: BLOCK, data, fua: false });
        sleep(std::time::Duration::from_millis(2));
        let done = late.is_done();
        b.cut(0);
        b.assemble(&[0, 1], &plain()).unwrap();
        assert!(b.is_everywhere(0, 2) && b.is_everywhere(16, 2), "acknowledged: {done}");
    });
}

/// A leg that was given all that it lacks is called Okay when that would survive a power cut:
/// whoever reads "Okay" may take the other leg away.
#[test]
fn rule_a_leg_is_okay_when_a_cut_would_leave_it_so() {
    type Hold = fn(&Gate);
    let holds: [Hold; 2] = [|gate| gate.shut(is_flush), |gate| gate.shut(writes(MAP))];
    for hold in holds {
        Sim::new(5)
            .run(move || {
                let mut b = bench(&[false, false]);
                (0..64).for_each(|n| b.write(n, 5));
                b.mirror.flush().unwrap();
                b.mirror.offline(1).unwrap();
                (0..64).for_each(|n| b.write(n, 6 + n));
                b.mirror.flush().unwrap();
                b.mirror.online(1, None).unwrap();
                hold(&b.gates[1]);
                let mirror = b.mirror.clone();
                let resync =
                    spawn("resync", move || mirror.resync(ResyncThrottle::default()).is_ok());
                b.gates[1].wait();
                sleep(std::time::Duration::from_millis(5));
                assert_eq!(b.mirror.status().legs[1].lacking_bytes, 0);
                assert_eq!(b.state(1), LegState::Resyncing);
                b.gates[1].open();
                assert!(resync.join().unwrap());
                assert_eq!(b.state(1), LegState::Okay);
                // The other one is gone with the power.
                b.cut(0);
                b.assemble(&[1], &degraded()).unwrap();
                assert!((0..64).all(|n| b.is(n, 6 + n)));
            })
            .unwrap();
    }
}
