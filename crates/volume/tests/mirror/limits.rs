//! Members that an enemy made, with checksums that fit: numbers that cannot grow any more, and
//! devices that are larger than anything.

use std::sync::Arc;

use steadfast_block::rng::Rng;
use steadfast_block::{BlockDevice, Request};
use steadfast_devices::source::Ram;
use steadfast_runtime::{Sim, sleep};
use steadfast_volume::member::{read_label, write_label};
use steadfast_volume::mirror::LegState;
use steadfast_volume::ondisk::label::{GENERATION_MAX, Label};
use steadfast_volume::ondisk::map::{MapBlock, Slot, slot_at};
use steadfast_volume::{MirrorOptions, NewLeg, ResyncThrottle, create_mirror};

use crate::bench::{BLOCK, Bench, REGION, bench, bench_with, degraded, options, plain, simulated};
use crate::campaign::truth::bytes_of;

/// A closed mirror with something in it, of which each label is changed.
fn relabelled(change: impl Fn(Label) -> Label) -> Bench {
    let mut b = bench(&[false, false]);
    b.write(0, 1);
    b.mirror.close().unwrap();
    b.cut(0);
    for leg in 0..2 {
        let device = b.device(leg);
        let label = read_label(&device).unwrap().unwrap().label;
        write_label(&device, &change(label)).unwrap();
    }
    b
}

/// Labels that have been changed as often as they can be: nothing waits for a change that never
/// comes.
#[test]
fn rule_labels_that_cannot_change_any_more_are_an_error_and_no_hang() {
    for left in 0..6 {
        Sim::new(5)
            .run(move || {
                let newest = GENERATION_MAX - left;
                let mut b = relabelled(|label| Label { generation: newest, base: newest, ..label });
                b.assemble(&[0, 1], &plain()).unwrap();
                assert!(b.is(0, 1), "{left}");
                let data = || bytes_of(2, 1).into();
                let first = b.mirror.write(BLOCK, data());
                let changed = b.mirror.set_policies(b.mirror.policies());
                assert_eq!(first.is_ok(), left >= 2, "{left}");
                assert_eq!(changed.is_ok(), left >= 4, "{left}");
                let write = Request::Write { offset: BLOCK, data: data(), fua: false };
                let answer = b.mirror.submit(write);
                sleep(std::time::Duration::from_secs(60));
                assert!(answer.is_done(), "{left}: it hangs");
                assert_eq!(answer.wait().is_ok(), changed.is_ok(), "{left}");
                // What is there can still be read.
                assert!(b.is(0, 1), "{left}");
                drop(b.mirror.close());
            })
            .unwrap();
    }
}

/// The newest slot of a block of the map, as an enemy numbers it.
fn renumber(b: &Bench, leg: usize, sequence: u64) {
    let device = b.device(leg);
    let volume = read_label(&device).unwrap().unwrap().label.volume;
    let slot = |at: u64| match MapBlock::decode(&device.read(at, BLOCK).unwrap(), volume, 0) {
        Slot::Valid(block) => Some(block),
        Slot::Empty | Slot::Damaged => None,
    };
    let both = [slot_at(0, 0), slot_at(0, 1)].into_iter().filter_map(slot);
    let newest = both.max_by_key(|block| block.sequence).unwrap();
    let bytes = MapBlock { sequence, ..newest }.encode(volume, 0);
    device.write_fua(slot_at(0, sequence), bytes.into()).unwrap();
}

/// A map whose number cannot grow: what was acknowledged and flushed is there at the next start, or
/// was refused.
#[test]
fn rule_a_map_that_cannot_change_any_more_promises_nothing() {
    for (left, closes) in (0..6).flat_map(|left| [(left, false), (left, true)]) {
        Sim::new(5)
            .run(move || {
                let mut b = relabelled(|label| label);
                (0..2).for_each(|leg| renumber(&b, leg, i64::MAX as u64 - left));
                b.assemble(&[0, 1], &plain()).unwrap();
                let new = 2 * REGION / BLOCK;
                let written = b.mirror.write(new * BLOCK, bytes_of(7, new).into());
                let promised = written.is_ok() && b.mirror.flush().is_ok();
                if closes {
                    drop(b.mirror.close());
                }
                b.cut(0);
                b.assemble(&[0, 1], &plain()).unwrap();
                assert!(!promised || b.is(new, 7), "{left} {closes}: it was flushed");
                assert!(b.is(0, 1), "{left} {closes}");
                assert!(b.is(new + 20, 0), "{left} {closes}: it was never written");
            })
            .unwrap();
    }
}

/// A partial leg on a device of any size takes no more memory than the volume has regions.
#[test]
fn rule_a_partial_leg_takes_memory_by_what_it_holds() {
    simulated(|| {
        let disk: Arc<dyn BlockDevice> = Arc::new(Ram::new("disk", 3 << 20).persistent());
        let vast: Arc<dyn BlockDevice> = Arc::new(Ram::new("vast", 1 << 61));
        let partial = NewLeg { partial: true, ..NewLeg::new(Arc::clone(&vast)) };
        let mirror =
            create_mirror("m", &[NewLeg::new(Arc::clone(&disk)), partial], &options()).unwrap();
        (0..16).for_each(|n| mirror.write(n * REGION, bytes_of(1, n).into()).unwrap());
        for _ in 0..4 {
            (0..16).for_each(|n| drop(mirror.read(n * REGION, BLOCK).unwrap()));
            sleep(std::time::Duration::from_millis(20));
        }
        assert_eq!(mirror.status().legs[1].held_bytes, Some(16 * REGION));
        mirror.close().unwrap();
    });
}

/// Labels that give two legs one identity: one device is not taken for two copies.
#[test]
fn rule_a_label_that_names_one_leg_twice_makes_no_second_copy() {
    simulated(|| {
        let mut b = relabelled(|mut label| {
            label.members[1].uuid = label.members[0].uuid;
            label
        });
        if b.assemble(&[0], &degraded()).is_ok() {
            let there = b.mirror.status().legs;
            let used = there.iter().filter(|leg| leg.state != LegState::Unavailable).count();
            assert!(used <= 1, "{there:?}");
        }
    });
}

/// A map in which anything may stand, with checksums that fit: requests are answered, and what is
/// written then can be read, also after a power cut.
#[test]
fn maps_of_anything_are_used_or_refused() {
    for seed in 0..MAPS {
        Sim::new(seed).run(move || used_with_any_map(seed)).unwrap();
    }
}

const MAPS: u64 = 20;

fn used_with_any_map(seed: u64) {
    let mut rng = Rng::new(seed);
    let checksums = rng.percent(50);
    let mut b = bench_with(
        &[false, false, seed.is_multiple_of(3)],
        &MirrorOptions { checksums, ..options() },
    );
    (0..256).for_each(|n| b.write(n, 1));
    b.mirror.close().unwrap();
    b.cut(0);
    for leg in 0..2 {
        let device = b.device(leg);
        let volume = read_label(&device).unwrap().unwrap().label.volume;
        for parity in 0..2 {
            let any = |rng: &mut Rng| (0..16).map(|_| rng.bits() as u8).collect();
            let sequence = 2 * rng.below(8) + parity;
            let block = MapBlock { sequence, states: any(&mut rng), heat: any(&mut rng) };
            let bytes = block.encode(volume, 0);
            device.write_fua(slot_at(0, sequence), bytes.into()).unwrap();
        }
    }
    for boot in 0..3 {
        let there: &[usize] = if rng.percent(70) { &[0, 1, 2] } else { &[1, 2] };
        if b.assemble(there, &degraded()).is_err() {
            return;
        }
        let mut promised = Vec::new();
        for n in 0..24 {
            let block = rng.below(256);
            match rng.below(10) {
                0 => drop(b.mirror.scrub(rng.percent(50), ResyncThrottle::default())),
                1 => drop(b.mirror.resync(ResyncThrottle::default())),
                2 => drop(b.mirror.tick()),
                3 => drop(b.mirror.offline(rng.below(3) as usize)),
                4 => drop(b.mirror.online(rng.below(3) as usize, None)),
                5 => drop(b.mirror.read(block * BLOCK, BLOCK)),
                _ => {
                    let tag = 100 * (boot + 1) + n;
                    let bytes = bytes_of(tag, block).into();
                    if b.mirror.write(block * BLOCK, bytes).is_ok() {
                        promised.retain(|(other, _)| *other != block);
                        promised.push((block, tag));
                    }
                }
            }
        }
        assert!(promised.iter().all(|(block, tag)| b.is(*block, *tag)), "{seed} {boot}");
        let flushed = b.mirror.flush().is_ok();
        let whole: Vec<usize> = (0..2).filter(|leg| b.state(*leg) == LegState::Okay).collect();
        b.cut(rng.bits());
        let again = b.assemble(&[0, 1, 2], &degraded());
        if flushed && again.is_ok() {
            assert!(promised.iter().all(|(block, tag)| b.is(*block, *tag)), "{seed} {boot} cut");
        }
        b.cut(0);
        if let (true, Some(leg)) = (flushed, whole.first()) {
            b.assemble(&[*leg], &degraded()).unwrap();
            assert!(promised.iter().all(|(block, tag)| b.is(*block, *tag)), "{seed} {boot} alone");
            b.cut(0);
        }
    }
}
