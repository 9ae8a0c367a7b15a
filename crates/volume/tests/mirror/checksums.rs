//! Mirrors with checksums: legs that return something else than was written, records that are
//! damaged, and power cuts between the two.

mod reading;

use std::sync::Arc;

use steadfast_block::{BlockDevice, Request};
use steadfast_devices::filter::fault::{Effect, FaultRule, Ops};
use steadfast_runtime::{Mutex, Sim, spawn};
use steadfast_volume::member::read_label;
use steadfast_volume::ondisk::checksums::record_at;
use steadfast_volume::{
    Event, LegState, MirrorOptions, NewLeg, Policies, ReadPolicy, ResyncThrottle,
};

use crate::bench::{
    BLOCK, Bench, REGION, bench_of_with, bench_with, degraded, options, plain, simulated,
};
use crate::campaign::media::Medium;
use crate::campaign::truth::bytes_of;
use crate::gate::writes;

fn with_checksums() -> MirrorOptions {
    MirrorOptions { checksums: true, ..options() }
}

/// Blocks 0, 1 and 20 are written, and clean.
fn written(volatile: &[bool]) -> Bench {
    let b = bench_with(volatile, &with_checksums());
    [0, 1, 20].into_iter().for_each(|n| b.write(n, 1));
    b.mirror.flush().unwrap();
    b.settle();
    b
}

impl Bench {
    fn data_start(&self, leg: usize) -> u64 {
        read_label(&self.device(leg)).unwrap().unwrap().label.data_start
    }

    /// What a leg's medium holds goes bad without an error.
    fn spoil(&self, leg: usize, block: u64) {
        let at = self.data_start(leg) + block * BLOCK;
        self.disks[leg].ram().write(at, bytes_of(90 + leg as u64, block).into()).unwrap();
    }

    /// So do the checksums of a region.
    fn spoil_record(&self, leg: usize, region: u32) {
        let label = read_label(&self.device(leg)).unwrap().unwrap().label;
        let (at, _) = record_at(label.map_blocks, REGION, region);
        let ram = self.disks[leg].ram();
        let mut record = ram.read(at, BLOCK).unwrap().to_vec();
        record[100] ^= 1;
        ram.write(at, record.into()).unwrap();
    }

    fn prefer(&self, slot: usize) {
        let policies = Policies { read: ReadPolicy::Preferred(slot), ..Policies::default() };
        self.mirror.set_policies(policies).unwrap();
    }

    fn errors(&self, slot: usize) -> u64 {
        let legs = self.mirror.status().legs;
        legs.iter().find(|leg| leg.slot == slot).unwrap().counters.checksum_errors
    }

    fn holds(&self, leg: usize, block: u64, tag: u64) -> bool {
        let at = self.data_start(leg) + block * BLOCK;
        self.plugs[leg].device.read(at, BLOCK).unwrap() == bytes_of(tag, block)
    }

    /// All events from now on.
    fn events(&self) -> Arc<Mutex<Vec<Event>>> {
        let events = Arc::new(Mutex::new(Vec::new()));
        let to = Arc::clone(&events);
        self.mirror.listen(Arc::new(move |event| to.lock().push(event.clone())));
        events
    }
}

/// Of a leg that returns something else nothing is trusted; it is given what is right, and what was
/// given is there after a power cut.
#[test]
fn rule_a_wrong_block_is_read_from_the_other_leg_and_repaired() {
    for queued in [false, true] {
        Sim::new(5)
            .run(move || {
                let mut b = written(&[false, false]);
                b.cut(0);
                b.assemble(&[0, 1], &plain()).unwrap();
                let events = b.events();
                b.spoil(0, 1);
                b.prefer(0);
                let read = || match queued {
                    true => b.mirror.submit(Request::Read { offset: 0, len: 2 * BLOCK }).wait(),
                    false => b.mirror.read(0, 2 * BLOCK),
                };
                assert_eq!(read().unwrap(), [bytes_of(1, 0), bytes_of(1, 1)].concat());
                assert_eq!((b.errors(0), b.errors(1)), (1, 0));
                let repaired = |e: &Event| match e {
                    Event::WrongData { leg_error, repaired } => *repaired && leg_error.slot == 0,
                    _ => false,
                };
                assert!(events.lock().iter().any(repaired), "{:?}", events.lock());
                assert!(b.holds(0, 1, 1));
                assert_eq!(b.state(0), LegState::Okay);
                b.mirror.flush().unwrap();
                b.cut(0);
                b.assemble(&[0], &degraded()).unwrap();
                assert!(b.is(1, 1));
            })
            .unwrap();
    }
}

/// The same where a read is not of whole blocks, and over two regions.
#[test]
fn parts_of_blocks_are_verified_too() {
    simulated(|| {
        let b = written(&[false, false]);
        b.spoil(0, 1);
        b.spoil(1, 16);
        b.prefer(0);
        let all: Vec<u8> = (0..32).flat_map(|n| bytes_of(u64::from(n < 2 || n == 20), n)).collect();
        for (from, len) in [(5000, 1000), (4096 + 512, 512), (0, 100 << 10), (65000, 2000)] {
            let request_promotion = &all[from as usize..(from + len) as usize];
            let read = Request::Read { offset: from / 512 * 512, len: (len + 1023) / 512 * 512 };
            let Request::Read { offset, len: longer } = read else { unreachable!() };
            let skip = (from - offset) as usize;
            let now = b.mirror.read(offset, longer).unwrap();
            let then = b.mirror.submit(read).wait().unwrap();
            assert_eq!(&now[skip..skip + len as usize], request_promotion);
            assert_eq!(now, then);
        }
    });
}

/// A power cut after the checksums are written and before the map says so: they are not looked at,
/// the region is in doubt as without them, and has new ones when it is clean.
#[test]
fn rule_checksums_count_only_where_the_map_says_so() {
    for (stop_map, seed) in [(false, 1), (true, 1), (false, 2), (true, 2)] {
        Sim::new(seed)
            .run(move || {
                let mut b = written(&[false, false]);
                b.write(1, 7);
                b.mirror.flush().unwrap();
                let label = read_label(&b.device(0)).unwrap().unwrap().label;
                let (record, len) = record_at(label.map_blocks, REGION, 0);
                let map = 8192..8192 + 8192 * u64::from(label.map_blocks);
                let place = if stop_map { map } else { record..record + len };
                b.gates.iter().for_each(|gate| gate.shut(writes(place.clone())));
                let mirror = b.mirror.clone();
                drop(spawn("upkeep", move || (0..3).for_each(|_| drop(mirror.tick()))));
                b.gates[0].wait();
                steadfast_runtime::sleep(std::time::Duration::from_millis(1));
                b.cut(seed);
                b.assemble(&[0, 1], &plain()).unwrap();
                assert_eq!(b.mirror.status().unchecked_bytes, REGION);
                assert!(b.is_everywhere(1, 7) && b.is_everywhere(0, 1) && b.is_everywhere(20, 1));
                b.mirror.resync(ResyncThrottle::default()).unwrap();
                assert_eq!(b.mirror.status().unchecked_bytes, 0);
                b.settle();
                assert!(b.mirror.region_at(0).unwrap().checked_durably);
                b.cut(seed);
                b.assemble(&[0, 1], &plain()).unwrap();
                assert_eq!(b.mirror.status().unchecked_bytes, 0);
                b.spoil(0, 1);
                assert!(b.is_everywhere(1, 7));
            })
            .unwrap();
    }
}

/// A cut in the middle of a repair: the block is right, or wrong and noticed again.
#[test]
fn rule_a_cut_in_a_repair_loses_nothing() {
    for seed in 0..6 {
        Sim::new(seed)
            .run(move || {
                let mut b = written(&[false, false]);
                b.spoil(0, 1);
                b.prefer(0);
                let at = b.data_start(0) + BLOCK;
                b.plugs[0]
                    .faults
                    .add(FaultRule::new(Ops::WRITE, Effect::Torn(512)).within(at..at + 1));
                assert!(b.is(1, 1), "also if it does not take the repair");
                b.cut(seed);
                b.assemble(&[0, 1], &plain()).unwrap();
                assert!(b.is_everywhere(1, 1) && b.is_everywhere(0, 1));
                let mut b = written(&[false, false]);
                b.spoil(0, 1);
                b.prefer(0);
                let at = b.data_start(0) + BLOCK;
                b.gates[0].shut(writes(at..at + BLOCK));
                let mirror = b.mirror.clone();
                drop(spawn("reader", move || drop(mirror.read(BLOCK, BLOCK))));
                b.gates[0].wait();
                b.cut(seed);
                b.assemble(&[0, 1], &plain()).unwrap();
                assert!(b.is_everywhere(1, 1) && b.is_everywhere(0, 1));
            })
            .unwrap();
    }
}

/// Where no leg is right the answer is an error that says where, and writing the block heals it.
#[test]
fn rule_wrong_on_all_legs_is_an_error() {
    simulated(|| {
        let mut b = written(&[false, false]);
        b.spoil(0, 1);
        b.spoil(1, 1);
        let error = b.mirror.read(0, 2 * BLOCK).unwrap_err().to_string();
        assert!(
            error.contains("4096") && error.contains("leg 0 (leg0) and leg 1 (leg1)"),
            "{error}"
        );
        assert!(b.is_everywhere(0, 1), "the other blocks can be read");
        let found = b.mirror.scrub(true, ResyncThrottle::default()).unwrap();
        assert_eq!((found.lost, found.repaired, found.clean), (1, 0, false));
        // A part of the block cannot be written: what is around it is not there.
        let part = b.mirror.write(BLOCK + 512, vec![3; 512].into()).unwrap_err().to_string();
        assert!(part.contains("its checksum says"), "{part}");
        b.cut(0);
        b.assemble(&[0, 1], &plain()).unwrap();
        assert!(b.mirror.read(BLOCK, BLOCK).is_err());
        b.write(1, 5);
        assert!(b.is_everywhere(1, 5));
        assert!(b.mirror.scrub(false, ResyncThrottle::default()).unwrap().clean);
    });
}

/// A write of a part of a block keeps the rest, and the checksum of the whole: from the leg that is
/// right.
#[test]
fn rule_a_part_of_a_block_is_written_to_what_is_right() {
    for cut in [false, true] {
        Sim::new(5)
            .run(move || {
                let mut b = written(&[false, false]);
                b.spoil(0, 1);
                b.prefer(0);
                b.mirror.write(BLOCK + 1024, vec![3; 512].into()).unwrap();
                let over = Request::Write {
                    offset: 20 * BLOCK - 512,
                    data: vec![4; 1024].into(),
                    fua: true,
                };
                b.mirror.submit(over).wait().unwrap();
                b.mirror.flush().unwrap();
                if cut {
                    b.settle();
                    b.cut(0);
                    b.assemble(&[1, 0], &plain()).unwrap();
                }
                let mut request_promotion = bytes_of(1, 1);
                request_promotion[1024..1536].fill(3);
                let mut over = bytes_of(1, 20);
                over[..512].fill(4);
                for slot in [0, 1] {
                    b.prefer(slot);
                    assert_eq!(b.mirror.read(BLOCK, BLOCK).unwrap(), request_promotion);
                    assert_eq!(b.mirror.read(20 * BLOCK, BLOCK).unwrap(), over);
                    assert_eq!(b.mirror.read(20 * BLOCK - 512, 512).unwrap(), vec![4; 512]);
                }
                assert!(b.mirror.scrub(false, ResyncThrottle::default()).unwrap().clean);
            })
            .unwrap();
    }
}

/// Damaged checksums of one leg: the other's count, and the leg is given them.
#[test]
fn rule_a_damaged_record_is_replaced_by_another_legs() {
    simulated(|| {
        let mut b = written(&[false, false]);
        b.cut(0);
        b.assemble(&[0, 1], &plain()).unwrap();
        b.spoil_record(0, 1);
        b.spoil(1, 20);
        b.prefer(1);
        assert!(b.is(20, 1));
        assert_eq!((b.errors(0), b.errors(1)), (1, 1));
        b.mirror.flush().unwrap();
        b.cut(0);
        b.assemble(&[0], &degraded()).unwrap();
        assert!(b.is(20, 1) && b.errors(0) == 0);
        // A scrub looks at the records too, though they are known by now.
        let mut b = written(&[false, false]);
        b.spoil_record(0, 0);
        b.mirror.scrub(true, ResyncThrottle::default()).unwrap();
        assert_eq!(b.errors(0), 1);
        b.cut(0);
        b.assemble(&[0], &degraded()).unwrap();
        b.mirror.scrub(true, ResyncThrottle::default()).unwrap();
        assert_eq!(b.errors(0), 0);
    });
}

/// On all legs: that is reported, data that nobody can disprove is read, and a scrub makes new
/// ones.
#[test]
fn rule_lost_checksums_refuse_nothing_and_a_scrub_makes_new_ones() {
    simulated(|| {
        let mut b = written(&[false, false]);
        b.cut(0);
        b.assemble(&[0, 1], &plain()).unwrap();
        let events = b.events();
        [0, 1].into_iter().for_each(|leg| b.spoil_record(leg, 1));
        assert!(b.is_everywhere(20, 1));
        let lost = Event::ChecksumsLost { offset: REGION, len: REGION };
        assert!(events.lock().contains(&lost), "{:?}", events.lock());
        assert_eq!(b.mirror.status().unchecked_bytes, REGION);
        b.mirror.scrub(false, ResyncThrottle::default()).unwrap();
        assert_eq!(b.mirror.status().unchecked_bytes, REGION, "it writes nothing by itself");
        b.mirror.scrub(true, ResyncThrottle::default()).unwrap();
        assert_eq!(b.mirror.status().unchecked_bytes, 0);
        b.cut(0);
        b.assemble(&[0, 1], &plain()).unwrap();
        b.spoil(0, 20);
        assert!(b.is_everywhere(20, 1));
    });
}

/// A copy is made from a leg that is right, also if another one comes first.
#[test]
fn rule_a_wrong_source_is_not_copied() {
    simulated(|| {
        let mut b = written(&[false, false]);
        b.spoil(0, 1);
        let new = Medium::used("new", false, &mut steadfast_block::rng::Rng::new(9));
        let plug = new.plug(10);
        b.mirror.attach(&NewLeg::new(Arc::clone(&plug.device))).unwrap();
        let done = b.mirror.resync(ResyncThrottle::default()).unwrap();
        assert_eq!((done.unreadable, done.complete), (0, true));
        assert_eq!(b.errors(0), 1);
        b.prefer(2);
        assert!(b.is(1, 1) && b.holds(0, 1, 1));
        // Alone, it has the checksums too.
        b.disks.push(new);
        b.plugs.push(plug);
        b.gates.push(crate::gate::Gate::new(Arc::clone(&b.plugs[2].device)));
        b.cut(0);
        b.assemble(&[2], &degraded()).unwrap();
        assert_eq!(b.mirror.status().unchecked_bytes, 0);
        b.spoil(2, 1);
        assert!(b.is(0, 1) && b.mirror.read(BLOCK, BLOCK).is_err());
    });
}

/// What memory answers is verified; and where a checksum proves it, a disk is repaired from it.
#[test]
fn rule_memory_is_verified_and_what_is_proved_repairs_a_disk() {
    simulated(|| {
        let mut b = written(&[false, true]);
        b.spoil(1, 1);
        b.prefer(1);
        assert!(b.is(1, 1) && b.errors(1) == 1 && b.holds(1, 1, 1));
        b.spoil(0, 20);
        b.prefer(0);
        assert!(b.is(20, 1) && b.errors(0) == 1 && b.holds(0, 20, 1));
        b.mirror.flush().unwrap();
        b.cut(0);
        b.assemble(&[0, 1], &plain()).unwrap();
        assert!(b.is(20, 1) && b.is(1, 1));
        b.mirror.resync(ResyncThrottle::default()).unwrap();
        b.prefer(1);
        assert!(b.is(20, 1) && b.is(1, 1));
    });
}

/// So is what a leg answers that is smaller than the volume.
#[test]
fn what_a_partial_leg_answers_is_verified() {
    simulated(|| {
        let disk = Medium::used("leg0", false, &mut steadfast_block::rng::Rng::new(1));
        let b = bench_of_with(vec![disk, Medium::small("small", 4)], &with_checksums());
        [0, 1, 20].into_iter().for_each(|n| b.write(n, 1));
        b.prefer(1);
        for _ in 0..20 {
            assert!(b.is(0, 1) && b.is(20, 1));
            steadfast_runtime::sleep(std::time::Duration::from_millis(1));
        }
        let ram = b.disks[1].ram();
        let held = b.mirror.status().legs[1].held_bytes;
        assert!(held.is_some_and(|bytes| bytes >= 2 * REGION), "{held:?}");
        let frames = ram.info().size - (64 << 10) - BLOCK;
        ram.write(64 << 10, vec![5; frames as usize].into()).unwrap();
        assert!(b.is(0, 1) && b.is(1, 1) && b.is(20, 1));
        assert!(b.errors(1) > 0 && b.errors(0) == 0);
    });
}

/// A scrub knows who is right, also if most are wrong, and in the only leg that there is.
#[test]
fn rule_a_scrub_believes_checksums_and_no_majority() {
    simulated(|| {
        let b = written(&[false, false, false]);
        for leg in [1, 2] {
            let at = b.data_start(leg);
            b.disks[leg].ram().write(at, bytes_of(66, 0).into()).unwrap();
        }
        let found = b.mirror.scrub(false, ResyncThrottle::default()).unwrap();
        assert_eq!((found.differing, found.repaired, found.lost), (2, 0, 0));
        let found = b.mirror.scrub(true, ResyncThrottle::default()).unwrap();
        assert!(found.clean && found.repaired == 2);
        assert!((0..3).all(|leg| b.holds(leg, 0, 1)));
        let b = written(&[false]);
        b.spoil(0, 20);
        let found = b.mirror.scrub(true, ResyncThrottle::default()).unwrap();
        assert_eq!((found.lost, found.bytes), (1, 2 * REGION));
    });
}

/// What is discarded, grown, or written again has no old checksums.
#[test]
fn rule_what_is_unwritten_has_no_checksums() {
    simulated(|| {
        let mut b = written(&[false, false]);
        b.mirror.discard(0, REGION).unwrap();
        assert!(b.is_everywhere(1, 0));
        b.write(3, 9);
        assert!(b.is_everywhere(1, 0) && b.is_everywhere(3, 9));
        let size = b.mirror.grow(None).unwrap();
        let last = size / BLOCK - 1;
        b.write(last, 4);
        b.mirror.flush().unwrap();
        b.settle();
        b.cut(0);
        b.assemble(&[0, 1], &plain()).unwrap();
        b.spoil(0, last);
        b.spoil(1, 3);
        assert!(b.is_everywhere(last, 4) && b.is_everywhere(3, 9) && b.is_everywhere(1, 0));
    });
}

/// A leg that was away has the checksums of what it missed.
#[test]
fn rule_a_leg_that_comes_back_gets_checksums_too() {
    simulated(|| {
        let mut b = written(&[false, false]);
        b.mirror.offline(1).unwrap();
        b.write(1, 2);
        b.write(40, 2);
        b.mirror.flush().unwrap();
        b.settle();
        b.mirror.online(1, None).unwrap();
        b.mirror.resync(ResyncThrottle::default()).unwrap();
        b.cut(0);
        b.assemble(&[1], &degraded()).unwrap();
        assert_eq!(b.mirror.status().unchecked_bytes, 0);
        assert!(b.is(1, 2) && b.is(40, 2) && b.is(20, 1));
        assert_eq!(b.errors(1), 0);
    });
}

/// Of two legs that differ, after a power cut or a write that failed on both, a scrub makes
/// checksums when it is decided which one counts: either may be lost, and the other holds what was
/// flushed.
#[test]
fn rule_no_checksums_are_made_of_what_is_in_doubt() {
    for (lost, by_cut) in [(0, false), (1, false), (0, true), (1, true)] {
        Sim::new(5)
            .run(move || {
                let mut b = bench_with(&[false, false], &with_checksums());
                (0..4).for_each(|n| b.write(n, 1));
                b.mirror.flush().unwrap();
                if by_cut {
                    b.gates[1].shut(writes(b.data_start(1)..1 << 20));
                    let data = bytes_of(2, 0).into();
                    drop(b.mirror.submit(Request::Write { offset: 0, data, fua: true }));
                    b.gates[1].wait();
                    steadfast_runtime::sleep(std::time::Duration::from_millis(1));
                    b.cut(0);
                    b.assemble(&[0, 1], &plain()).unwrap();
                } else {
                    let at = b.data_start(0)..b.data_start(0) + BLOCK;
                    let late = Effect::FailAfter("injected".into());
                    let fails = [late, Effect::Fail("injected".into())];
                    for (plug, effect) in b.plugs.iter().zip(fails) {
                        let rule = FaultRule::new(Ops::WRITE, effect).within(at.clone()).nth(1);
                        plug.with(Some(rule), 10);
                    }
                    b.mirror.write(0, bytes_of(2, 0).into()).unwrap_err();
                    b.plugs.iter().for_each(|plug| plug.with(None, 10));
                }
                let scrubbed = b.mirror.scrub(true, ResyncThrottle::default()).unwrap();
                assert_eq!((scrubbed.lost, b.mirror.status().unchecked_bytes), (0, 0));
                b.plugs[lost].unplug();
                let found = b.mirror.read(0, BLOCK).unwrap();
                assert!([1, 2].iter().any(|tag| found == bytes_of(*tag, 0)), "{lost} {by_cut}");
                assert!((1..4).all(|n| b.is(n, 1)), "{lost} {by_cut}");
            })
            .unwrap();
    }
}
