//! Which leg is trusted: old copies, legs that were away, labels that a power cut left half
//! written.

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::BlockDevice;
use steadfast_devices::filter::fault::{Effect, FaultRule, Ops};
use steadfast_runtime::{sleep, spawn};
use steadfast_volume::member::read_label;
use steadfast_volume::mirror::LegState;
use steadfast_volume::ondisk::{LABEL_AT, second_label_at};
use steadfast_volume::{AssembleOptions, ResyncThrottle, assemble};

use crate::bench::{BLOCK, Bench, DATA, Device, REGION, bench, degraded, plain, simulated};
use crate::campaign::media::LEG_BYTES;
use crate::gate::writes;

/// With one block that was written before and after the second leg was copied.
fn copied() -> (Bench, steadfast_devices::store::Store) {
    let b = bench(&[false, false]);
    b.write(0, 1);
    b.mirror.flush().unwrap();
    b.settle();
    let old = b.copy(1);
    (0..3).for_each(|_| b.relabel());
    b.write(0, 2);
    b.mirror.flush().unwrap();
    b.settle();
    (b, old)
}

/// An old copy of a leg that is out of use lacks more than what the map says of the leg.
#[test]
fn rule_an_old_copy_does_not_come_online() {
    simulated(|| {
        let (mut b, old) = copied();
        b.mirror.offline(1).unwrap();
        b.write(100, 3);
        b.restore(1, old);
        let refused = b.mirror.online(1, Some(b.device(1))).unwrap_err().to_string();
        assert!(refused.contains("is an old copy of the leg"), "{refused}");
        assert!(refused.contains("replace it instead"), "{refused}");
        assert!(b.is_everywhere(0, 2) && b.is_everywhere(100, 3));
    });
}

/// From the first region to the last.
#[test]
fn a_resync_copies_every_region() {
    simulated(|| {
        let b = bench(&[false, false]);
        b.mirror.offline(1).unwrap();
        let regions = b.mirror.info().size / REGION;
        let of_region = REGION / BLOCK;
        let blocks = || (0..regions).flat_map(|n| [n * of_region, (n + 1) * of_region - 1]);
        blocks().for_each(|block| b.write(block, 1));
        b.mirror.flush().unwrap();
        b.mirror.online(1, Some(b.device(1))).unwrap();
        let resynced = b.mirror.resync(ResyncThrottle::default()).unwrap();
        assert_eq!((resynced.regions, resynced.complete), (regions, true));
        // What is read now is what was copied.
        b.mirror.offline(0).unwrap();
        blocks().for_each(|block| assert!(b.is(block, 1), "block {block}"));
    });
}

/// The same where the leg was missing at an assembly, and is taken into use by itself.
#[test]
fn rule_an_old_copy_of_a_missing_leg_lacks_everything() {
    simulated(|| {
        let (mut b, old) = copied();
        b.cut(0);
        b.assemble(&[0], &degraded()).unwrap();
        b.write(100, 3);
        b.mirror.flush().unwrap();
        b.cut(0);
        b.restore(1, old);
        b.assemble(&[0, 1], &plain()).unwrap();
        assert_eq!(b.state(1), LegState::Resyncing);
        assert!(b.is_everywhere(0, 2) && b.is_everywhere(100, 3));
        b.mirror.resync(ResyncThrottle::default()).unwrap();
        assert!(b.is_everywhere(0, 2) && b.is_everywhere(100, 3));
    });
}

/// An old copy that went on by itself is not the newest, though it remembers the other's data.
#[test]
fn rule_what_went_on_from_an_old_copy_is_apart() {
    simulated(|| {
        let (mut b, old) = copied();
        b.cut(0);
        b.restore(1, old);
        b.assemble(&[1], &degraded()).unwrap();
        b.write(100, 3);
        b.mirror.flush().unwrap();
        b.cut(0);
        let refused = b.assemble(&[0, 1], &plain()).unwrap_err();
        assert!(refused.contains("written to apart"), "{refused}");
    });
}

/// A leg that is away is known when it comes back, whatever has happened to the others meanwhile;
/// and of what is too old to be known it is said that nothing is known.
#[test]
fn rule_a_leg_is_known_however_long_it_was_away() {
    simulated(|| {
        let mut b = bench(&[false, false, false]);
        b.write(0, 1);
        b.mirror.flush().unwrap();
        b.settle();
        let old = b.copy(2);
        b.relabel();
        b.cut(0);
        b.assemble(&[0, 1], &degraded()).unwrap();
        (10..30).for_each(|tag| comes_and_goes(&b, tag));
        b.cut(0);
        b.assemble(&[0, 1, 2], &plain()).unwrap();
        let resynced = b.mirror.resync(ResyncThrottle::default()).unwrap();
        assert_eq!((resynced.regions, resynced.complete), (1, true), "only what it missed");
        assert!(b.is_everywhere(0, 29));
        // A copy of it from before, with the name of data that nobody remembers by now.
        (30..50).for_each(|tag| comes_and_goes(&b, tag));
        b.cut(0);
        b.restore(2, old);
        let refused = b.assemble(&[0, 1, 2], &plain()).unwrap_err();
        assert!(refused.contains("leg2 (generation 2) may be an old copy"), "{refused}");
        assert!(refused.contains("does not go back so far"), "{refused}");
        let label = read_label(&b.device(1)).unwrap().unwrap().label;
        let uuid = label.members[label.slot].uuid;
        assert!(refused.contains(&format!("--keep {uuid}")), "{refused}");
        b.assemble(&[0, 1, 2], &AssembleOptions { keep: Some(uuid), ..plain() }).unwrap();
        assert_eq!(b.state(2), LegState::Resyncing);
        assert!(b.is_everywhere(0, 49));
    });
}

/// The data gets a new identity.
fn comes_and_goes(b: &Bench, tag: u64) {
    b.mirror.offline(1).unwrap();
    b.write(0, tag);
    b.mirror.online(1, None).unwrap();
    assert!(b.mirror.resync(ResyncThrottle::default()).unwrap().complete);
}

/// A leg that was missing at the assembly comes back with its data where it was.
#[test]
fn rule_a_missing_leg_comes_online_with_what_it_missed() {
    simulated(|| {
        let mut b = bench(&[false, false]);
        b.write(0, 1);
        b.mirror.flush().unwrap();
        b.cut(0);
        b.assemble(&[0], &degraded()).unwrap();
        b.write(40, 2);
        b.mirror.online(1, Some(b.device(1))).unwrap();
        let resynced = b.mirror.resync(ResyncThrottle::default()).unwrap();
        assert!(resynced.complete && resynced.regions <= 2, "{resynced:?}");
        assert!(b.is_everywhere(0, 1) && b.is_everywhere(40, 2));
        b.write(41, 3);
        b.mirror.flush().unwrap();
        b.cut(0);
        b.assemble(&[1, 0], &plain()).unwrap();
        assert!(b.is_everywhere(0, 1) && b.is_everywhere(40, 2) && b.is_everywhere(41, 3));
    });
}

/// A device whose end was overwritten is no leg that is trusted, and no component.
#[test]
fn rule_a_leg_whose_end_was_overwritten_is_not_believed() {
    simulated(|| {
        let mut b = bench(&[false, false]);
        b.write(0, 1);
        b.mirror.close().unwrap();
        b.device(0).write(LEG_BYTES - (1 << 20), vec![7; 1 << 20].into()).unwrap();
        let refused = b.assemble(&[0], &plain()).unwrap_err();
        assert!(refused.contains("its end was overwritten"), "{refused}");
        b.assemble(&[0, 1], &plain()).unwrap();
        assert_eq!(b.state(0), LegState::Resyncing);
        b.mirror.resync(ResyncThrottle::default()).unwrap();
        assert!(b.is_everywhere(0, 1));
    });
}

/// An old image of the start of a leg, beside the newest label at its end.
#[test]
fn rule_a_leg_whose_start_is_old_is_not_believed() {
    simulated(|| {
        let mut b = bench(&[false, false]);
        let start = b.device(0).read(0, 1 << 20).unwrap();
        b.write(0, 1);
        b.settle();
        (0..3).for_each(|_| b.relabel());
        b.mirror.close().unwrap();
        b.device(0).write(0, start.into()).unwrap();
        b.assemble(&[0, 1], &plain()).unwrap();
        assert_eq!(b.state(0), LegState::Resyncing);
        assert!(b.is_everywhere(0, 1));
    });
}

/// A power cut between the labels of the legs, or between the copies of one, is no reason to doubt
/// a leg, also when the next assembly is cut in the same place, and the one after that.
#[test]
fn rule_interrupted_label_changes_leave_all_legs_believed() {
    let places = [LABEL_AT, second_label_at(LEG_BYTES)];
    for at in places {
        steadfast_runtime::Sim::new(5)
            .run(move || {
                let mut b = bench(&[false, false]);
                (0..64).for_each(|n| b.write(n, 1));
                b.mirror.flush().unwrap();
                b.cut(0);
                for _ in 0..3 {
                    b.gates[0].shut(writes(at..at + BLOCK));
                    let devices = b.devices(&[0, 1]);
                    drop(spawn("boot", move || {
                        let found = assemble(&devices, &plain());
                        found.volumes.iter().for_each(|v| drop(v.device.flush()));
                    }));
                    b.gates[0].wait();
                    // The other leg's arrives.
                    sleep(Duration::from_millis(1));
                    b.cut(0);
                }
                b.assemble(&[0, 1], &plain()).unwrap();
                assert!((0..64).all(|n| b.is(n, 1)));
                b.mirror.resync(ResyncThrottle::default()).unwrap();
                assert_eq!((b.state(0), b.state(1)), (LegState::Okay, LegState::Okay));
                assert!((0..64).all(|n| b.is_everywhere(n, 1)));
            })
            .unwrap();
    }
}

/// What a person said is to count counts, also where its own map says that it lacked something.
#[test]
fn rule_the_kept_leg_is_taken_as_it_is() {
    simulated(|| {
        let mut b = bench(&[false, false]);
        b.write(0, 1);
        b.mirror.flush().unwrap();
        b.settle();
        b.mirror.offline(1).unwrap();
        b.write(1, 2);
        b.mirror.online(1, None).unwrap();
        b.cut(0);
        // Leg 0 is lost, and leg 1 was not resynced.
        b.assemble(&[1], &degraded()).unwrap();
        assert!(b.mirror.read(0, BLOCK).is_err(), "it is known to be old");
        let uuid = b.mirror.status().legs.iter().find(|l| l.slot == 1).unwrap().uuid;
        b.assemble(&[1], &AssembleOptions { keep: Some(uuid), ..plain() }).unwrap();
        assert!(b.is(0, 1) && b.is(1, 0));
    });
}

/// Who a leg is does not depend on the handle.
#[test]
fn rule_a_leg_in_use_is_not_taken_twice() {
    simulated(|| {
        let b = bench(&[false, false]);
        let again: Device = Arc::new(b.gates[1].clone());
        let refused = b.mirror.online(1, Some(again)).unwrap_err().to_string();
        assert!(refused.contains("is in use"), "{refused}");
    });
}

/// Regions that no leg can give do not keep a resync in parts from reaching what lies behind them.
#[test]
fn parts_of_a_resync_reach_what_lies_behind_unreadable_regions() {
    simulated(|| {
        let b = bench(&[false, false]);
        b.mirror.offline(1).unwrap();
        let in_region = |region: u64| region * REGION / BLOCK;
        (0..8).for_each(|region| b.write(in_region(region), region + 1));
        b.mirror.flush().unwrap();
        b.mirror.online(1, Some(b.device(1))).unwrap();
        let bad = FaultRule::new(Ops::READ, Effect::Fail("bad sectors".into()));
        b.plugs[0].faults.clear();
        b.plugs[0].faults.add(bad.within(DATA..DATA + 4 * REGION));
        let part = ResyncThrottle { regions: Some(2), ..ResyncThrottle::default() };
        for _ in 0..2 {
            let done = b.mirror.resync(part).unwrap();
            assert_eq!((done.regions, done.unreadable), (2, 4), "{done:?}");
        }
        let done = b.mirror.resync(part).unwrap();
        assert_eq!((done.regions, done.complete), (0, false), "{done:?}");
        b.plugs[0].faults.clear();
        b.settle();
        assert!((0..8).all(|region| b.is_everywhere(in_region(region), region + 1)));
    });
}
