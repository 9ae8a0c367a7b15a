//! Legs that alone hold something, and returns that fail: nothing is lost that is there.

use std::sync::Arc;

use steadfast_block::rng::Rng;
use steadfast_block::{BlockDevice, Request};
use steadfast_devices::filter::fault::{Effect, FaultRule, Ops};
use steadfast_runtime::{Sim, sleep, spawn};
use steadfast_volume::member::read_label;
use steadfast_volume::mirror::LegState;
use steadfast_volume::ondisk::{LABEL_AT, second_label_at};
use steadfast_volume::{AssembleOptions, NewLeg, Policies, ReadPolicy, ResyncThrottle, assemble};

use crate::bench::{BLOCK, Bench, DATA, bench, degraded, plain, simulated};
use crate::campaign::media::{LEG_BYTES, Medium};
use crate::campaign::truth::bytes_of;
use crate::gate::{Gate, is_flush, writes};

/// Two legs, of which the second one alone has block 0: the first one is new and half resynced.
/// Nothing is in use; both were flushed.
fn one_alone() -> Bench {
    let mut b = bench(&[false, false]);
    (0..2).for_each(|n| b.write(n * 16, 1));
    b.mirror.flush().unwrap();
    b.settle();
    b.mirror.offline(0).unwrap();
    b.write(0, 2);
    b.mirror.flush().unwrap();
    b.settle();
    b.mirror.online(0, None).unwrap();
    b.cut(0);
    b
}

/// A leg that was missing, came back only in the label of the other one, and was missing again, is
/// still the leg that left first.
#[test]
fn rule_a_return_that_a_cut_interrupts_makes_no_old_copy() {
    for at in [LABEL_AT, second_label_at(LEG_BYTES)] {
        Sim::new(5)
            .run(move || {
                let mut b = one_alone();
                b.assemble(&[0], &degraded()).unwrap();
                b.write(100, 3);
                b.mirror.close().unwrap();
                b.cut(0);
                // Leg 0 has a label by which leg 1 is in use; leg 1 has the one with which it left.
                b.gates[1].shut(writes(at..at + BLOCK));
                let devices = b.devices(&[0, 1]);
                drop(spawn("boot", move || {
                    let found = assemble(&devices, &plain());
                    found.volumes.iter().for_each(|v| drop(v.device.flush()));
                }));
                b.gates[1].wait();
                sleep(std::time::Duration::from_millis(1));
                b.cut(0);
                b.assemble(&[0], &degraded()).unwrap();
                b.write(101, 4);
                b.mirror.close().unwrap();
                b.cut(0);
                b.assemble(&[0, 1], &plain()).unwrap();
                assert!(b.is_everywhere(0, 2), "leg 1 alone has it");
                assert!(b.mirror.resync(ResyncThrottle::default()).unwrap().complete);
                b.cut(0);
                b.assemble(&[0, 1], &plain()).unwrap();
                assert!(
                    b.is_everywhere(0, 2) && b.is_everywhere(100, 3) && b.is_everywhere(101, 4)
                );
            })
            .unwrap();
    }
}

/// A return of which a label write fails can be tried again, as often as it takes.
#[test]
fn rule_a_return_that_fails_can_be_tried_again() {
    for effect in [Effect::Fail("injected".into()), Effect::FailAfter("injected".into())] {
        Sim::new(5)
            .run(move || {
                let mut b = bench(&[false, false]);
                b.write(0, 1);
                b.mirror.flush().unwrap();
                b.settle();
                b.mirror.offline(1).unwrap();
                (0..4).for_each(|_| b.relabel());
                b.write(0, 2);
                for at in [LABEL_AT, second_label_at(LEG_BYTES)].repeat(10) {
                    let label = FaultRule::new(Ops::WRITE, effect.clone()).within(at..at + BLOCK);
                    b.plugs[1].with(Some(label), 10);
                    drop(b.mirror.online(1, None));
                    assert_eq!(b.state(1), LegState::NeedsMaintenance);
                }
                b.plugs[1].with(None, 10);
                b.mirror.flush().unwrap();
                b.cut(0);
                b.assemble(&[0, 1], &plain()).unwrap();
                b.mirror.online(1, None).unwrap();
                let resynced = b.mirror.resync(ResyncThrottle::default()).unwrap();
                assert_eq!((resynced.regions, resynced.complete), (1, true), "what it missed");
                b.mirror.flush().unwrap();
                b.cut(0);
                b.assemble(&[1], &degraded()).unwrap();
                assert!(b.is(0, 2));
            })
            .unwrap();
    }
}

/// A copy of a leg from before the last change of the labels is old, whatever was changed.
#[test]
fn rule_a_copy_from_before_one_change_is_old() {
    let changes: [fn(&Bench); 5] = [
        Bench::relabel,
        |b| {
            b.mirror.offline(2).unwrap();
        },
        |b| b.mirror.detach(2).unwrap(),
        |b| {
            let size = b.mirror.info().size;
            b.mirror.grow(Some(size + (64 << 10))).unwrap();
        },
        |b| {
            b.plugs[2].with(Some(FaultRule::new(Ops::FLUSH, Effect::Fail("injected".into()))), 10);
            b.mirror.flush().unwrap();
        },
    ];
    for (n, change) in changes.into_iter().enumerate() {
        Sim::new(5)
            .run(move || {
                // The copy is asked, and is the source where both would be.
                let mut b = bench(&[false, false, false]);
                b.write(0, 1);
                b.mirror.flush().unwrap();
                b.settle();
                let old = b.copy(0);
                change(&b);
                b.write(0, 2);
                b.write(16, 3);
                b.mirror.flush().unwrap();
                b.settle();
                b.write(17, 4);
                b.mirror.flush().unwrap();
                b.cut(0);
                b.restore(0, old);
                b.assemble(&[0, 1], &degraded()).unwrap();
                assert_eq!(b.state(0), LegState::Resyncing, "change {n}");
                assert!(b.is_everywhere(0, 2) && b.is_everywhere(17, 4));
                b.mirror.resync(ResyncThrottle::default()).unwrap();
                assert!(b.is_everywhere(0, 2) && b.is_everywhere(17, 4));
            })
            .unwrap();
    }
}

/// The same of a copy from before the volume was closed.
#[test]
fn rule_a_copy_from_before_the_end_is_old() {
    simulated(|| {
        let mut b = bench(&[false, false]);
        b.write(0, 1);
        b.mirror.flush().unwrap();
        b.settle();
        let old = b.copy(0);
        b.write(0, 2);
        b.mirror.close().unwrap();
        b.cut(0);
        b.restore(0, old);
        b.assemble(&[0, 1], &plain()).unwrap();
        assert!(b.is_everywhere(0, 2));
    });
}

/// A leg that alone holds something is not given up unless that is said, though it is not there;
/// when it is back, everything is.
#[test]
fn rule_a_missing_leg_that_alone_holds_something_stays() {
    simulated(|| {
        let mut b = one_alone();
        b.assemble(&[0], &degraded()).unwrap();
        b.write(100, 3);
        let fresh = Medium::used("leg2", false, &mut Rng::new(3));
        let new = NewLeg::new(fresh.plug(10).device);
        let refused = [b.mirror.detach(1), b.mirror.replace(1, Some(&new))];
        for refused in refused.map(|r| r.unwrap_err().to_string()) {
            assert!(refused.contains("last good durable copy of 65536 bytes"), "{refused}");
            assert!(refused.contains("--lose-data"), "{refused}");
        }
        b.mirror.flush().unwrap();
        b.cut(0);
        b.assemble(&[0, 1], &plain()).unwrap();
        assert!(b.is_everywhere(0, 2) && b.is_everywhere(100, 3));
    });
}

/// Nor is one that is there, and of which another holder is not.
#[test]
fn rule_a_leg_that_alone_can_be_read_stays() {
    simulated(|| {
        let mut b = bench(&[false, false, false]);
        b.write(0, 1);
        b.mirror.flush().unwrap();
        b.settle();
        b.mirror.offline(0).unwrap();
        b.write(0, 2);
        b.mirror.flush().unwrap();
        b.mirror.online(0, None).unwrap();
        b.cut(0);
        b.assemble(&[0, 1], &degraded()).unwrap();
        for refused in [b.mirror.offline(1), b.mirror.detach(1), b.mirror.replace(1, None)] {
            assert!(refused.is_err());
        }
        assert!(b.mirror.resync(ResyncThrottle::default()).unwrap().complete);
        b.mirror.detach(1).unwrap();
        assert!(b.is(0, 2));
    });
}

/// What may be lost is given up, durably, and reads as zeros from then on; the rest stays.
#[test]
fn what_is_given_up_reads_as_zeros() {
    for replaced in [false, true] {
        Sim::new(5)
            .run(move || {
                let mut b = one_alone();
                b.assemble(&[0], &degraded()).unwrap();
                b.write(100, 3);
                assert!(b.mirror.read(0, BLOCK).is_err());
                let lost = if replaced {
                    let fresh = Medium::used("leg2", false, &mut Rng::new(3));
                    let plug = fresh.plug(10);
                    b.disks.push(fresh);
                    b.gates.push(Gate::new(Arc::clone(&plug.device)));
                    b.plugs.push(plug);
                    b.mirror.replace_and_lose(1, Some(&NewLeg::new(b.device(2)))).unwrap()
                } else {
                    b.mirror.detach_and_lose(1).unwrap()
                };
                assert_eq!(lost, 64 << 10);
                b.mirror.flush().unwrap();
                b.cut(0);
                let here: &[usize] = if replaced { &[0, 2] } else { &[0] };
                b.assemble(here, &plain()).unwrap();
                assert!(b.is_everywhere(0, 0) && b.is_everywhere(16, 1) && b.is_everywhere(100, 3));
                b.write(1, 5);
                assert!(b.mirror.resync(ResyncThrottle::default()).unwrap().complete);
                assert!(b.mirror.status().is_whole() && b.is_everywhere(1, 5));
            })
            .unwrap();
    }
}

/// A spare does not take the place of a failed leg that alone holds something: it may be back.
#[test]
fn rule_a_spare_leaves_the_only_holder_its_place() {
    simulated(|| {
        let mut b = bench(&[false, false]);
        b.write(0, 1);
        b.mirror.flush().unwrap();
        b.settle();
        b.plugs[0].with(Some(FaultRule::new(Ops::FLUSH, Effect::Fail("injected".into()))), 10);
        b.mirror.flush().unwrap();
        assert_eq!(b.state(0), LegState::NeedsMaintenance);
        for name in ["leg2", "spare"] {
            let fresh = Medium::used(name, false, &mut Rng::new(3));
            let plug = fresh.plug(10);
            b.disks.push(fresh);
            b.gates.push(Gate::new(Arc::clone(&plug.device)));
            b.plugs.push(plug);
        }
        b.mirror.attach(&NewLeg::new(b.device(2))).unwrap();
        b.cut(0);
        // Leg 1, which had all of it, is lost; leg 2 is new, and leg 0 has failed.
        b.assemble(&[0, 2], &degraded()).unwrap();
        b.mirror.detach(1).unwrap();
        b.mirror.add_spare(&NewLeg::new(b.device(3))).unwrap();
        b.mirror.tick().unwrap();
        assert_eq!(b.state(0), LegState::NeedsMaintenance, "it alone has block 0");
        b.mirror.online(0, None).unwrap();
        assert!(b.mirror.resync(ResyncThrottle::default()).unwrap().complete);
        b.mirror.flush().unwrap();
        b.cut(0);
        b.assemble(&[2], &degraded()).unwrap();
        assert!(b.is(0, 1));
    });
}

/// The only durable leg is never given up.
#[test]
fn rule_the_only_durable_leg_is_not_given_up() {
    simulated(|| {
        let b = bench(&[false, true]);
        b.write(0, 1);
        for refused in [b.mirror.detach_and_lose(0), b.mirror.replace_and_lose(0, None)] {
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains("last good durable copy"), "{refused}");
        }
        assert!(b.is_everywhere(0, 1));
    });
}

/// An old copy does not take the place of a leg that alone holds something, which would be lost.
#[test]
fn rule_an_old_copy_does_not_take_the_place_of_the_only_holder() {
    simulated(|| {
        let mut b = one_alone();
        let whole = b.copy(1);
        let mut old = b.copy(1);
        // Its end is overwritten, or it is an old copy: the same here.
        old.write_slice(LEG_BYTES - BLOCK, &[7; BLOCK as usize]);
        b.restore(1, old);
        let refused = b.assemble(&[0, 1], &plain()).unwrap_err();
        assert!(refused.contains("alone holds 65536 bytes"), "{refused}");
        b.assemble(&[0, 1], &degraded()).unwrap();
        assert_eq!(b.state(1), LegState::Unavailable);
        b.write(100, 3);
        b.mirror.flush().unwrap();
        b.cut(0);
        b.restore(1, whole);
        b.assemble(&[0, 1], &plain()).unwrap();
        assert!(b.is_everywhere(0, 2) && b.is_everywhere(100, 3));
    });
}

/// A leg that lacked something may have gone on alone all the same.
#[test]
fn rule_a_missing_leg_may_have_gone_on_whatever_it_lacked() {
    simulated(|| {
        let mut b = one_alone();
        // Leg 0 lacks block 0.
        b.assemble(&[0], &degraded()).unwrap();
        b.write(100, 3);
        b.mirror.flush().unwrap();
        b.cut(0);
        let refused = b.assemble(&[1], &plain()).unwrap_err();
        assert!(refused.contains("leg 0 (leg0) is missing"), "{refused}");
        // Nobody went on with leg 1: nothing was split.
        b.assemble(&[0, 1], &plain()).unwrap();
        assert!(b.is_everywhere(0, 2) && b.is_everywhere(100, 3));
    });
}

/// A flush that a leg failed is nothing against who has taken its place meanwhile.
#[test]
fn rule_a_late_failure_is_not_its_successors() {
    simulated(|| {
        let b = bench(&[false, false]);
        b.write(0, 1);
        b.gates[0].shut(is_flush);
        let flush = b.mirror.submit(Request::Flush);
        b.gates[0].wait();
        let fresh = Medium::used("leg2", false, &mut Rng::new(3));
        let plug = fresh.plug(10);
        b.mirror.replace(0, Some(&NewLeg::new(Arc::clone(&plug.device)))).unwrap();
        assert!(b.mirror.resync(ResyncThrottle::default()).unwrap().complete);
        b.mirror.offline(1).unwrap();
        b.plugs[0].with(Some(FaultRule::new(Ops::FLUSH, Effect::Fail("injected".into()))), 10);
        b.gates[0].open();
        flush.wait().unwrap();
        assert_eq!(b.mirror.status().failed, None);
        b.write(0, 2);
        b.mirror.flush().unwrap();
        assert!(b.is_everywhere(0, 2));
    });
}

/// A durable leg that failed a read is repaired from a durable one, if there is one.
#[test]
fn rule_a_read_is_repaired_from_a_durable_leg() {
    simulated(|| {
        let mut b = bench(&[false, true, false]);
        b.write(0, 1);
        b.mirror.flush().unwrap();
        b.settle();
        // Memory has gone bad.
        b.disks[1].ram().write(DATA, bytes_of(9, 0).into()).unwrap();
        b.plugs[0]
            .with(Some(FaultRule::new(Ops::READ, Effect::Fail("injected".into())).nth(1)), 10);
        let first = Policies { read: ReadPolicy::First, ..Policies::default() };
        b.mirror.set_policies(first).unwrap();
        drop(b.mirror.read(0, BLOCK).unwrap());
        b.mirror.flush().unwrap();
        assert_eq!(b.state(0), LegState::Okay);
        b.cut(0);
        let look = AssembleOptions { degraded: true, read_only: true, ..plain() };
        b.assemble(&[0], &look).unwrap();
        assert!(b.is(0, 1), "it was repaired from memory");
    });
}

/// Of the only durable leg memory is all that can repair it.
#[test]
fn the_only_durable_leg_is_repaired_from_memory() {
    simulated(|| {
        let mut b = bench(&[false, true]);
        b.write(0, 1);
        b.mirror.flush().unwrap();
        b.settle();
        let bad = FaultRule::new(Ops::READ, Effect::Fail("injected".into())).nth(1);
        b.plugs[0].with(Some(bad), 10);
        b.disks[0].ram().write(DATA, vec![7; BLOCK as usize].into()).unwrap();
        let first = Policies { read: ReadPolicy::First, ..Policies::default() };
        b.mirror.set_policies(first).unwrap();
        assert!(b.is(0, 1));
        b.mirror.flush().unwrap();
        b.cut(0);
        b.assemble(&[0], &plain()).unwrap();
        assert!(b.is(0, 1));
    });
}

/// No label says of the generation before a change that it is still on all legs.
#[test]
fn every_change_is_written_twice() {
    simulated(|| {
        let b = bench(&[false, false]);
        let before = read_label(&b.device(0)).unwrap().unwrap().label;
        b.relabel();
        let after = read_label(&b.device(0)).unwrap().unwrap().label;
        assert!(after.base > before.generation, "{} {}", after.base, before.generation);
    });
}
