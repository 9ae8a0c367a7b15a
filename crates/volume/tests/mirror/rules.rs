//! Rules of safety: a test each, with the power cut where it matters.

use std::sync::Arc;

use steadfast_block::rng::Rng;
use steadfast_block::{BlockDevice, Request};
use steadfast_devices::filter::fault::{Effect, FaultRule, Ops};
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_runtime::Sim;
use steadfast_volume::member::read_label;
use steadfast_volume::mirror::LegState;
use steadfast_volume::{AssembleOptions, NewLeg, ResyncThrottle, create_mirror};

use crate::bench::{BLOCK, Device, bench, degraded, options, plain, simulated};
use crate::campaign::media::{LEG_BYTES, Medium};
use crate::campaign::truth::bytes_of;
use crate::gate::Gate;

/// A flush, and a write with FUA, is acknowledged only when every durable leg has it.
#[test]
fn rule_a_flush_means_every_durable_leg() {
    for fua in [false, true] {
        Sim::new(5)
            .run(move || {
                let mut b = bench(&[false, false, true]);
                let data = bytes_of(5, 20).into();
                let write = Request::Write { offset: 20 * BLOCK, data, fua };
                b.mirror.submit(write).wait().unwrap();
                if !fua {
                    b.mirror.flush().unwrap();
                }
                b.cut(0);
                for leg in [0, 1] {
                    let options = AssembleOptions { degraded: true, read_only: true, ..plain() };
                    b.assemble(&[leg], &options).unwrap();
                    assert!(b.is(20, 5), "leg {leg}, fua {fua}");
                }
            })
            .unwrap();
    }
}

/// A leg that fails in the middle of a write is dropped, durably, before the write is acknowledged.
#[test]
fn rule_a_failed_leg_is_dropped_before_the_write_is_acknowledged() {
    simulated(|| {
        let mut b = bench(&[false, false]);
        b.write(0, 1);
        b.mirror.flush().unwrap();
        b.plugs[0].with(Some(FaultRule::new(Ops::WRITE, Effect::Torn(512))), 10);
        let fua = Request::Write { offset: 0, data: bytes_of(2, 0).into(), fua: true };
        b.mirror.submit(fua).wait().unwrap();
        b.cut(0);
        b.assemble(&[0, 1], &plain()).unwrap();
        assert_eq!(b.state(0), LegState::NeedsMaintenance);
        assert!(b.is_everywhere(0, 2));
        // It is taken back with what it missed, not with everything.
        b.mirror.online(0, None).unwrap();
        let resynced = b.mirror.resync(ResyncThrottle::default()).unwrap();
        assert_eq!((resynced.regions, resynced.complete), (1, true));
        assert!(b.is_everywhere(0, 2));
    });
}

/// The last good copy cannot be removed, whatever the way.
#[test]
fn rule_the_last_good_copy_stays() {
    simulated(|| {
        let b = bench(&[false, true]);
        b.write(0, 1);
        for refused in [
            b.mirror.detach(0).unwrap_err(),
            b.mirror.offline(0).unwrap_err(),
            b.mirror.replace(0, None).unwrap_err(),
        ] {
            assert!(refused.to_string().contains("last good durable copy"), "{refused}");
        }
        assert_eq!(b.state(0), LegState::Okay);
        b.mirror.detach(1).unwrap();
        assert!(b.is(0, 1));
    });
}

/// Blank, foreign and old devices in the place of a leg.
#[test]
fn rule_blank_foreign_and_old_legs_are_not_good_ones() {
    simulated(|| {
        let mut b = bench(&[false, false]);
        b.write(0, 1);
        b.mirror.flush().unwrap();
        let old = b.disks[1].contents();
        b.cut(0);
        b.assemble(&[0, 1], &plain()).unwrap();
        b.write(0, 2);
        b.mirror.flush().unwrap();
        b.cut(0);
        // Old: a leg that lacks everything.
        b.restore(1, old);
        b.assemble(&[1, 0], &plain()).unwrap();
        assert_eq!(b.state(1), LegState::Resyncing);
        assert!(b.is_everywhere(0, 2));
        b.mirror.resync(ResyncThrottle::default()).unwrap();
        assert!(b.is_everywhere(0, 2));
        b.cut(0);
        // Blank: nobody; the other one does not go on without a command.
        b.restore(1, Store::new(LEG_BYTES));
        let refused = b.assemble(&[1, 0], &plain()).unwrap_err();
        assert!(refused.contains("leg 1 (leg1) is missing"), "{refused}");
        b.assemble(&[1, 0], &degraded()).unwrap();
        assert!(b.is_everywhere(0, 2));
        // Foreign: another mirror's.
        let other: Device = Arc::new(Ram::new("foreign", LEG_BYTES).persistent());
        create_mirror("o", &[NewLeg::new(Arc::clone(&other))], &options()).unwrap();
        let refused = b.mirror.online(1, Some(Arc::clone(&other))).unwrap_err().to_string();
        assert!(refused.contains("is not the leg that left"), "{refused}");
        let refused = b.mirror.replace(1, Some(&NewLeg::new(other))).unwrap_err().to_string();
        assert!(refused.contains("is member 0 of volume 'o'"), "{refused}");
    });
}

/// Two halves that were written apart are refused, with the choice spelled out.
#[test]
fn rule_two_halves_written_apart_are_refused() {
    simulated(|| {
        let mut b = bench(&[false, false]);
        b.write(0, 1);
        b.mirror.flush().unwrap();
        for (leg, tag) in [(0, 10), (1, 20)] {
            b.cut(0);
            b.assemble(&[leg], &degraded()).unwrap();
            b.write(0, tag);
            b.mirror.flush().unwrap();
        }
        b.cut(0);
        let refused = b.assemble(&[0, 1], &plain()).unwrap_err();
        assert!(refused.contains("written to apart"), "{refused}");
        let label = read_label(&b.device(1)).unwrap().unwrap().label;
        let uuid = label.members[label.slot].uuid;
        assert!(refused.contains(&format!("leg1 (generation {})", label.generation)), "{refused}");
        assert!(refused.contains(&format!("--keep {uuid}")), "{refused}");
        b.assemble(&[0, 1], &AssembleOptions { keep: Some(uuid), ..plain() }).unwrap();
        assert!(b.is_everywhere(0, 20));
        b.mirror.resync(ResyncThrottle::default()).unwrap();
        assert!(b.is_everywhere(0, 20));
    });
}

/// What a discard or nothing has made unwritten reads as zeros, from every leg and after a power
/// cut.
#[test]
fn rule_unwritten_regions_read_as_zeros_everywhere() {
    simulated(|| {
        let mut b = bench(&[false, false]);
        assert!(b.is_everywhere(40, 0), "the devices hold old data");
        b.write(40, 6);
        assert!(b.is_everywhere(41, 0) && b.is_everywhere(40, 6));
        b.mirror.flush().unwrap();
        b.mirror.discard(0, 1 << 20).unwrap();
        assert!(b.is_everywhere(40, 0));
        b.mirror.flush().unwrap();
        b.write(33, 8);
        b.cut(1);
        b.assemble(&[0, 1], &plain()).unwrap();
        // Not flushed: there or not, but nothing else is.
        assert!(b.is_everywhere(40, 0) && b.is_everywhere(34, 0));
    });
}

/// A spare takes a failed leg's place by itself.
#[test]
fn rule_a_spare_takes_over() {
    simulated(|| {
        let mut b = bench(&[false, false]);
        b.write(0, 1);
        let spare = Medium::used("spare", false, &mut Rng::new(9));
        let plug = spare.plug(10);
        b.mirror.add_spare(&NewLeg::new(Arc::clone(&plug.device))).unwrap();
        b.disks.push(spare);
        b.gates.push(Gate::new(Arc::clone(&plug.device)));
        b.plugs.push(plug);
        b.plugs[0].faults.take_away("broken");
        b.write(0, 2);
        b.mirror.tick().unwrap();
        assert!(b.mirror.resync(ResyncThrottle::default()).unwrap().complete);
        b.mirror.flush().unwrap();
        b.cut(0);
        b.assemble(&[2, 1], &plain()).unwrap();
        assert!(b.is_everywhere(0, 2));
        b.mirror.resync(ResyncThrottle::default()).unwrap();
        assert!(b.mirror.status().is_whole());
        assert!(b.is_everywhere(0, 2));
    });
}

/// A leg whose start was overwritten is known by its second label, and not trusted.
#[test]
fn rule_an_overwritten_leg_is_not_believed() {
    simulated(|| {
        let mut b = bench(&[false, false]);
        b.write(0, 1);
        b.mirror.close().unwrap();
        b.plugs[0].device.write(0, vec![7; 16384].into()).unwrap();
        let refused = b.assemble(&[0], &plain()).unwrap_err();
        assert!(refused.contains("its start was overwritten"), "{refused}");
        b.assemble(&[0, 1], &plain()).unwrap();
        assert_eq!(b.state(0), LegState::Resyncing);
        b.mirror.resync(ResyncThrottle::default()).unwrap();
        assert!(b.is_everywhere(0, 1));
    });
}

/// Growing keeps what is there, and what is new reads as zeros.
#[test]
fn rule_a_grown_volume_keeps_its_data() {
    simulated(|| {
        let mut b = bench(&[false, false]);
        b.write(255, 1);
        let size = b.mirror.grow(None).unwrap();
        assert!(size > 1 << 20);
        let last = size / BLOCK - 1;
        assert!(b.is_everywhere(255, 1) && b.is_everywhere(last, 0));
        b.write(last, 2);
        b.mirror.flush().unwrap();
        b.cut(0);
        b.assemble(&[1, 0], &plain()).unwrap();
        assert_eq!(b.mirror.info().size, size);
        assert!(b.is_everywhere(255, 1) && b.is_everywhere(last, 2));
    });
}
