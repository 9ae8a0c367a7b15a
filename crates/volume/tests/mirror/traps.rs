//! The traps of a RAM leg: a test each, with the power cut where it matters.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_block::rng::Rng;
use steadfast_devices::filter::fault::{Effect, FaultRule, Ops};
use steadfast_devices::source::Ram;
use steadfast_runtime::spawn;
use steadfast_volume::mirror::LegState;
use steadfast_volume::{NewLeg, Policies, ReadPolicy, ResyncThrottle};

use crate::bench::{BLOCK, Device, bench, plain, simulated};
use crate::campaign::media::Medium;
use crate::campaign::truth::bytes_of;
use crate::gate::Gate;

/// Trap 1: with the RAM leg first and the others resynced from it, a power loss left no valid copy.
#[test]
fn trap_memory_is_never_the_only_source_of_a_resync() {
    simulated(|| {
        let mut b = bench(&[true, false, false]);
        let read = ReadPolicy::First;
        b.mirror.set_policies(Policies { read, ..Policies::default() }).unwrap();
        (0..64).for_each(|n| b.write(n, 100 + n));
        b.mirror.flush().unwrap();
        // A leg is replaced: all of it is copied. What memory returns is wrong from now on.
        b.plugs[0].with(Some(FaultRule::new(Ops::READ, Effect::Corrupt)), 10);
        let fresh = Medium::used("new", false, &mut Rng::new(3));
        let plug = fresh.plug(10);
        b.mirror.replace(2, Some(&NewLeg::new(Arc::clone(&plug.device)))).unwrap();
        b.mirror.resync(ResyncThrottle { regions: Some(2), ..ResyncThrottle::default() }).unwrap();
        b.disks[2] = fresh;
        plug.unplug();
        // In the middle of it the power goes: the one whole copy is there, and goes on.
        b.cut(0);
        b.assemble(&[1, 2], &plain()).unwrap();
        assert!((0..64).all(|n| b.is(n, 100 + n)));
        assert!(b.mirror.resync(ResyncThrottle::default()).unwrap().complete);
        assert!((0..64).all(|n| b.is_everywhere(n, 100 + n)));
        assert_eq!(b.state(0), LegState::Unavailable);
        assert!(b.mirror.status().is_whole(), "an absent RAM leg is no alarm");
    });
}

/// Trap 2: a blank RAM disk that was made again looked Okay: reads gave zeros, and a resync copied
/// them onto the disks.
#[test]
fn trap_a_blank_ram_disk_is_not_okay() {
    simulated(|| {
        let mut b = bench(&[true, false]);
        b.write(3, 7);
        b.mirror.flush().unwrap();
        b.cut(0);
        // Whoever starts it gives the new RAM disk along: it has no label, and is nobody.
        b.assemble(&[0, 1], &plain()).unwrap();
        assert_eq!(b.state(0), LegState::Unavailable);
        assert!(b.is(3, 7));
        let new = NewLeg::new(b.device(0));
        b.mirror.replace(0, Some(&new)).unwrap();
        let read = ReadPolicy::First;
        b.mirror.set_policies(Policies { read, ..Policies::default() }).unwrap();
        assert!(b.is(3, 7), "before the resync it is asked for nothing");
        assert_eq!(b.state(0), LegState::Resyncing);
        b.mirror.resync(ResyncThrottle::default()).unwrap();
        assert_eq!(b.state(0), LegState::Okay);
        assert!(b.is_everywhere(3, 7));
    });
}

/// The same with contents that survived, or came from a snapshot: they carry the label, and are not
/// trusted.
#[test]
fn trap_old_contents_of_memory_are_not_believed() {
    simulated(|| {
        let mut b = bench(&[true, false]);
        b.write(3, 7);
        b.mirror.flush().unwrap();
        let kept = b.disks[0].contents();
        b.write(3, 8);
        b.mirror.flush().unwrap();
        b.cut(0);
        b.disks[0] = Medium::new("leg0", true, kept);
        b.plugs[0] = b.disks[0].plug(10);
        b.gates[0] = Gate::new(Arc::clone(&b.plugs[0].device));
        b.assemble(&[0, 1], &plain()).unwrap();
        assert_eq!(b.state(0), LegState::Resyncing);
        assert!(b.is_everywhere(3, 8));
        b.mirror.resync(ResyncThrottle::default()).unwrap();
        assert!(b.is_everywhere(3, 8));
    });
}

/// Trap 3: the read order could not be changed without destroying the mirror.
#[test]
fn trap_the_read_order_changes_while_the_mirror_is_used() {
    simulated(|| {
        let mut b = bench(&[false, false, true]);
        (0..16).for_each(|n| b.write(n, 9));
        let mirror = b.mirror.clone();
        let writer = spawn("writer", move || {
            for n in 0..200 {
                mirror.write(n % 16 * BLOCK, bytes_of(9, n % 16).into()).unwrap();
            }
        });
        for slot in [2, 0, 1, 2] {
            assert!(b.is_everywhere(3, 9));
            let read = ReadPolicy::Preferred(slot);
            b.mirror.set_policies(Policies { read, ..Policies::default() }).unwrap();
        }
        writer.join().unwrap();
        let before = b.mirror.status().legs[2].counters.reads;
        (0..10).for_each(|n| assert!(b.is(n, 9)));
        assert_eq!(b.mirror.status().legs[2].counters.reads - before, 10);
        b.mirror.flush().unwrap();
        b.cut(0);
        b.assemble(&[1, 0], &plain()).unwrap();
        assert_eq!(b.mirror.policies().read, ReadPolicy::Preferred(2), "it is kept");
    });
}

/// Trap 4: a smaller first leg shrank the mirror under a file system.
#[test]
fn trap_a_smaller_leg_never_shrinks_the_volume() {
    simulated(|| {
        let b = bench(&[false]);
        let size = b.mirror.info().size;
        let small: Device = Arc::new(Ram::new("small", 1 << 20));
        let refused = b.mirror.attach(&NewLeg::new(Arc::clone(&small))).unwrap_err().to_string();
        assert!(refused.contains("small: is too small"), "{refused}");
        let refused = b.mirror.replace(0, Some(&NewLeg::new(small))).unwrap_err().to_string();
        assert!(refused.contains("last good durable copy"), "{refused}");
        let refused = b.mirror.grow(Some(size / 2)).unwrap_err().to_string();
        assert!(refused.contains("never made smaller"), "{refused}");
        assert_eq!(b.mirror.info().size, size);
    });
}

/// Trap 5: with write-behind a write was acknowledged that was only in memory. Here memory is what
/// may follow, never a disk.
#[test]
fn trap_write_behind_waits_for_every_durable_leg() {
    simulated(|| {
        let b = bench(&[true, false, false]);
        let write = steadfast_volume::WritePolicy::WriteBehind;
        b.write(0, 1);
        b.mirror.set_policies(Policies { write, ..Policies::default() }).unwrap();
        b.plugs[2].with(None, 5_000);
        let begun = steadfast_runtime::now();
        b.write(0, 2);
        assert!((steadfast_runtime::now() - begun).as_micros() >= 5_000);
        b.plugs[2].with(None, 10);
        b.plugs[0].with(None, 50_000);
        let begun = steadfast_runtime::now();
        b.write(0, 3);
        assert!((steadfast_runtime::now() - begun).as_micros() < 5_000, "memory follows");
        // Memory does not have it yet, and is not asked.
        assert!(b.is_everywhere(0, 3));
    });
}

/// Trap 5, second half: a stale member was chosen as the source after staggered losses.
#[test]
fn trap_staggered_losses_do_not_make_a_stale_leg_the_source() {
    simulated(|| {
        let mut b = bench(&[false, false]);
        b.write(0, 1);
        b.mirror.flush().unwrap();
        b.plugs[1].faults.take_away("cable");
        b.write(0, 2);
        b.mirror.flush().unwrap();
        assert_eq!(b.state(1), LegState::NeedsMaintenance);
        b.cut(0);
        // Only the stale one is there: it cannot know, so it does not go on by itself.
        let refused = b.assemble(&[1], &plain()).unwrap_err();
        assert!(refused.contains("leg 0 (leg0) is missing"), "{refused}");
        assert!(refused.contains("--degraded"), "{refused}");
        // The other one knows that it may.
        b.assemble(&[0], &plain()).unwrap();
        assert!(b.is(0, 2));
        b.cut(0);
        b.assemble(&[1, 0], &plain()).unwrap();
        assert!(b.is_everywhere(0, 2));
    });
}
