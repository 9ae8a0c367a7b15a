//! Rules of safety, and the traps of a RAM leg: a test each, with the power cut where it matters.

use std::sync::Arc;

use steadfast_block::rng::Rng;
use steadfast_block::{BlockDevice, Request};
use steadfast_devices::filter::fault::{Effect, Ops, Rule};
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_runtime::{Sim, spawn};
use steadfast_volume::member::read_label;
use steadfast_volume::mirror::LegState;
use steadfast_volume::{
    AssembleOptions, Mirror, MirrorOptions, NewLeg, Policies, ReadPolicy, Throttle, assemble,
    create_mirror,
};

use crate::campaign::media::{LEG_BYTES, Medium, Plugged};
use crate::campaign::truth::bytes_of;

type Device = Arc<dyn BlockDevice>;

const REGION: u64 = 64 << 10;
const BLOCK: u64 = 4096;

/// Two durable legs and one of memory, all with old data on them.
struct Bench {
    disks: Vec<Medium>,
    mirror: Mirror,
    plugs: Vec<Plugged>,
}

fn options() -> MirrorOptions {
    MirrorOptions {
        size: Some(1 << 20),
        region_bytes: Some(REGION as u32),
        ..MirrorOptions::default()
    }
}

fn bench(volatile: &[bool]) -> Bench {
    let mut rng = Rng::new(1);
    let disks: Vec<Medium> = volatile
        .iter()
        .enumerate()
        .map(|(n, v)| Medium::used(&format!("leg{n}"), *v, &mut rng))
        .collect();
    let plugs: Vec<_> = disks.iter().map(|d| d.plug(10)).collect();
    let legs: Vec<NewLeg> = plugs.iter().map(|p| NewLeg::new(Arc::clone(&p.device))).collect();
    let mirror = create_mirror("m", &legs, &options()).unwrap();
    Bench { disks, mirror, plugs }
}

impl Bench {
    /// Cuts the power of everything, losing all that was not flushed or keeping some.
    fn cut(&mut self, seed: u64) {
        self.plugs.iter().for_each(|p| p.unplug());
        self.disks.iter().for_each(|d| d.cut(seed));
        self.plugs = self.disks.iter().map(|d| d.plug(10)).collect();
    }

    fn devices(&self, which: &[usize]) -> Vec<Device> {
        which.iter().map(|n| Arc::clone(&self.plugs[*n].device)).collect()
    }

    fn assemble(&mut self, which: &[usize], options: &AssembleOptions) -> Result<(), String> {
        let mut found = assemble(&self.devices(which), options);
        match found.volumes.pop() {
            Some(volume) => self.mirror = volume.mirror.unwrap(),
            None => return Err(found.problems[0].1.to_string()),
        }
        Ok(())
    }

    fn write(&self, block: u64, tag: u64) {
        self.mirror.write(block * BLOCK, bytes_of(tag, block).into()).unwrap();
    }

    fn is(&self, block: u64, tag: u64) -> bool {
        self.mirror.read(block * BLOCK, BLOCK).unwrap() == bytes_of(tag, block)
    }

    fn state(&self, slot: usize) -> LegState {
        self.mirror.status().legs.iter().find(|l| l.slot == slot).unwrap().state
    }

    /// Reads the same from every leg.
    fn is_everywhere(&self, block: u64, tag: u64) -> bool {
        (0..4).all(|slot| {
            let read = ReadPolicy::Preferred(slot);
            self.mirror.set_policies(Policies { read, ..Policies::default() }).unwrap();
            self.is(block, tag)
        })
    }
}

fn simulated(body: fn()) {
    Sim::new(5).run(body).unwrap();
}

fn plain() -> AssembleOptions {
    AssembleOptions::default()
}

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
        b.plugs[0].with(Some(Rule::new(Ops::READ, Effect::Corrupt)), 10);
        let fresh = Medium::used("new", false, &mut Rng::new(3));
        let plug = fresh.plug(10);
        b.mirror.replace(2, Some(&NewLeg::new(Arc::clone(&plug.device)))).unwrap();
        b.mirror.resync(Throttle { regions: Some(2), ..Throttle::default() }).unwrap();
        b.disks[2] = fresh;
        plug.unplug();
        // In the middle of it the power goes: the one whole copy is there, and goes on.
        b.cut(0);
        b.assemble(&[1, 2], &plain()).unwrap();
        assert!((0..64).all(|n| b.is(n, 100 + n)));
        assert!(b.mirror.resync(Throttle::default()).unwrap().complete);
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
        let new = NewLeg::new(Arc::clone(&b.plugs[0].device));
        b.mirror.replace(0, Some(&new)).unwrap();
        let read = ReadPolicy::First;
        b.mirror.set_policies(Policies { read, ..Policies::default() }).unwrap();
        assert!(b.is(3, 7), "before the resync it is asked for nothing");
        assert_eq!(b.state(0), LegState::Resyncing);
        b.mirror.resync(Throttle::default()).unwrap();
        assert_eq!(b.state(0), LegState::Okay);
        assert!(b.is_everywhere(3, 7));
    });
}

/// The same with contents that survived, or came from a snapshot: they carry the label, and are not
/// believed.
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
        b.assemble(&[0, 1], &plain()).unwrap();
        assert_eq!(b.state(0), LegState::Resyncing);
        assert!(b.is_everywhere(3, 8));
        b.mirror.resync(Throttle::default()).unwrap();
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
        b.plugs[0].with(Some(Rule::new(Ops::WRITE, Effect::Torn(512))), 10);
        let fua = Request::Write { offset: 0, data: bytes_of(2, 0).into(), fua: true };
        b.mirror.submit(fua).wait().unwrap();
        b.cut(0);
        b.assemble(&[0, 1], &plain()).unwrap();
        assert_eq!(b.state(0), LegState::NeedsMaintenance);
        assert!(b.is_everywhere(0, 2));
        // It is taken back with what it missed, not with everything.
        b.mirror.online(0, None).unwrap();
        let resynced = b.mirror.resync(Throttle::default()).unwrap();
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
        b.disks[1] = Medium::new("leg1", false, old);
        b.plugs[1] = b.disks[1].plug(10);
        b.assemble(&[1, 0], &plain()).unwrap();
        assert_eq!(b.state(1), LegState::Resyncing);
        assert!(b.is_everywhere(0, 2));
        b.mirror.resync(Throttle::default()).unwrap();
        assert!(b.is_everywhere(0, 2));
        b.cut(0);
        // Blank: nobody; the other one does not go on without being told to.
        b.disks[1] = Medium::new("leg1", false, Store::new(LEG_BYTES));
        b.plugs[1] = b.disks[1].plug(10);
        let refused = b.assemble(&[1, 0], &plain()).unwrap_err();
        assert!(refused.contains("leg 1 (leg1) is missing"), "{refused}");
        b.assemble(&[1, 0], &AssembleOptions { degraded: true, ..plain() }).unwrap();
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
            b.assemble(&[leg], &AssembleOptions { degraded: true, ..plain() }).unwrap();
            b.write(0, tag);
            b.mirror.flush().unwrap();
        }
        b.cut(0);
        let refused = b.assemble(&[0, 1], &plain()).unwrap_err();
        assert!(refused.contains("written to apart"), "{refused}");
        let label = read_label(&b.plugs[1].device).unwrap().unwrap().label;
        let uuid = label.members[label.slot].uuid;
        assert!(refused.contains(&format!("leg1 (generation {})", label.generation)), "{refused}");
        assert!(refused.contains(&format!("--keep {uuid}")), "{refused}");
        b.assemble(&[0, 1], &AssembleOptions { keep: Some(uuid), ..plain() }).unwrap();
        assert!(b.is_everywhere(0, 20));
        b.mirror.resync(Throttle::default()).unwrap();
        assert!(b.is_everywhere(0, 20));
    });
}

/// What a discard or nothing has made unwritten reads as zeros, from every leg and after a cut.
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
        b.plugs.push(plug);
        b.plugs[0].faults.take_away("broken");
        b.write(0, 2);
        b.mirror.tick().unwrap();
        assert!(b.mirror.resync(Throttle::default()).unwrap().complete);
        b.mirror.flush().unwrap();
        b.cut(0);
        b.assemble(&[2, 1], &plain()).unwrap();
        assert!(b.is_everywhere(0, 2));
        b.mirror.resync(Throttle::default()).unwrap();
        assert!(b.mirror.status().is_whole());
        assert!(b.is_everywhere(0, 2));
    });
}

/// A leg whose start was overwritten is known by its second label, and not believed.
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
        b.mirror.resync(Throttle::default()).unwrap();
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
