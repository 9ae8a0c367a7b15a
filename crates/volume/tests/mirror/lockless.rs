//! Reads that take no lock, while the legs change under them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use steadfast_block::rng::Rng;
use steadfast_block::{BlockDevice, Request};
use steadfast_devices::filter::fault::{Effect, FaultRule, Ops};
use steadfast_devices::source::Ram;
use steadfast_runtime::{Mutex, spawn};
use steadfast_volume::mirror::LegState;
use steadfast_volume::{
    Mirror, NewLeg, Policies, ReadPolicy, ResyncThrottle, VolumeError, WritePolicy, create_mirror,
};

use crate::bench::{BLOCK, Bench, DATA, Device, REGION, bench, options, simulated};
use crate::campaign::truth::bytes_of;
use crate::gate::Gate;

const BLOCKS: u64 = (1 << 20) / BLOCK;

fn prefers(mirror: &Mirror, slot: usize) {
    let read = ReadPolicy::Preferred(slot);
    mirror.set_policies(Policies { read, ..Policies::default() }).unwrap();
}

fn reads_of(mirror: &Mirror, slot: usize) -> (u64, u64) {
    let counters = mirror.status().legs.into_iter().find(|l| l.slot == slot).unwrap().counters;
    (counters.reads, counters.read_bytes)
}

/// A block that was written and flushed, read until this is done without the lock.
fn warmed(b: &Bench, block: u64) {
    b.write(block, 1);
    b.mirror.flush().unwrap();
    (0..3).for_each(|_| assert!(b.is(block, 1)));
}

#[test]
fn a_leg_that_leaves_answers_no_more() {
    simulated(|| {
        let b = bench(&[false, false, false]);
        prefers(&b.mirror, 1);
        warmed(&b, 20);
        b.mirror.offline(1).unwrap();
        b.write(20, 2);
        assert!(b.is(20, 2), "what the leg that left has is old");
        b.mirror.online(1, None).unwrap();
        assert!(b.is(20, 2), "it does not hold the region yet");
        b.mirror.resync(ResyncThrottle::default()).unwrap();
        let (before, _) = reads_of(&b.mirror, 1);
        (0..5).for_each(|_| assert!(b.is(20, 2)));
        assert_eq!(reads_of(&b.mirror, 1).0, before + 5, "and then answers again");
    });
}

#[test]
fn every_read_is_counted_once() {
    simulated(|| {
        let b = bench(&[false, false]);
        prefers(&b.mirror, 1);
        warmed(&b, 20);
        let (reads, bytes) = reads_of(&b.mirror, 1);
        for n in 1..=100 {
            assert!(b.is(20, 1));
            if n == 50 {
                b.mirror.tick().unwrap();
            }
            assert_eq!(reads_of(&b.mirror, 1), (reads + n, bytes + n * BLOCK));
        }
        prefers(&b.mirror, 0);
        assert_eq!(reads_of(&b.mirror, 1), (reads + 100, bytes + 100 * BLOCK));
    });
}

/// Policies, zeros and ranges that need the lock take it.
#[test]
fn what_is_no_usual_read_is_answered_too() {
    simulated(|| {
        let b = bench(&[false, false]);
        prefers(&b.mirror, 0);
        warmed(&b, 15);
        b.write(16, 3);
        assert!(b.is(16, 3) && b.is(15, 1));
        let both = b.mirror.read(15 * BLOCK, 2 * BLOCK).unwrap();
        assert_eq!(both[BLOCK as usize..], bytes_of(3, 16)[..], "over two regions");
        assert!(b.is(100, 0), "never written");
        b.mirror.discard(0, REGION).unwrap();
        assert!(b.is(15, 0), "discarded");
        for (offset, len) in [(BLOCK, 0), (1, BLOCK), (BLOCK, 100), (1 << 20, BLOCK)] {
            assert!(b.mirror.read(offset, len).is_err(), "{offset}, {len}");
        }
        assert!(b.mirror.read(u64::MAX - 4095, 4096).is_err());
        b.mirror.close().unwrap();
        assert!(b.mirror.read(16 * BLOCK, BLOCK).is_err(), "closed");
    });
}

/// The leg of an error is notified, another one answers, and the first is repaired.
#[test]
fn a_leg_that_fails_without_the_lock_is_noted() {
    simulated(|| {
        let b = bench(&[false, false]);
        prefers(&b.mirror, 1);
        warmed(&b, 20);
        let once = FaultRule::new(Ops::READ, Effect::Fail("bad".into())).nth(1);
        b.plugs[1].with(Some(once), 10);
        assert!(b.is(20, 1));
        let status = b.mirror.status();
        assert_eq!(status.legs[1].counters.errors, 1);
        assert_eq!(status.legs[1].state, LegState::Okay);
    });
}

/// While a read waits for its leg, others go on, and the leg can be changed. Its device is given
/// back when the read is done.
#[test]
fn a_read_that_hangs_holds_up_nobody() {
    simulated(|| {
        let b = bench(&[false, false]);
        let extra: Device = Arc::new(Ram::new("extra", 4 << 20).persistent());
        let slot = b.mirror.attach(&NewLeg::new(Arc::clone(&extra))).unwrap();
        prefers(&b.mirror, 0);
        warmed(&b, 20);
        b.mirror.resync(ResyncThrottle::default()).unwrap();
        b.gates[0].shut(|request| matches!(request, Request::Read { .. }));
        let mirror = b.mirror.clone();
        let hanging = spawn("hanging", move || mirror.read(20 * BLOCK, BLOCK).unwrap());
        b.gates[0].wait();
        prefers(&b.mirror, slot);
        (0..3).for_each(|_| assert!(b.is(20, 1)));
        b.mirror.detach(slot).unwrap();
        b.mirror.offline(0).unwrap();
        b.write(20, 2);
        assert!(b.is(20, 2));
        b.gates[0].open();
        assert_eq!(hanging.join().unwrap(), bytes_of(1, 20), "as it was when it began");
        b.mirror.tick().unwrap();
        assert_eq!(Arc::strong_count(&extra), 1, "the device is given back");
        assert!(b.is(20, 2));
    });
}

/// So is the device of a leg that nobody reads from when it leaves, at once.
#[test]
fn the_device_of_a_leg_that_leaves_is_given_back() {
    simulated(|| {
        let b = bench(&[false, false]);
        let extra: Device = Arc::new(Ram::new("extra", 4 << 20).persistent());
        let slot = b.mirror.attach(&NewLeg::new(Arc::clone(&extra))).unwrap();
        prefers(&b.mirror, slot);
        warmed(&b, 20);
        b.mirror.resync(ResyncThrottle::default()).unwrap();
        (0..3).for_each(|_| assert!(b.is(20, 1)));
        assert!(Arc::strong_count(&extra) > 2, "a view has it: without one this shows nothing");
        b.mirror.detach(slot).unwrap();
        assert_eq!(Arc::strong_count(&extra), 1);
    });
}

/// Regions are as hot by reads without the lock as by others: memory gets the hottest first.
#[test]
fn reads_without_the_lock_make_regions_hot() {
    simulated(|| {
        let b = bench(&[false, false]);
        prefers(&b.mirror, 1);
        (0..BLOCKS).step_by(16).for_each(|block| b.write(block, 1));
        b.mirror.flush().unwrap();
        for _ in 0..40 {
            assert!(b.is(160, 1) && b.is(32, 1));
        }
        let memory = Gate::new(Arc::new(Ram::new("memory", 4 << 20)));
        let given = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&given);
        memory.shut(move |request| {
            if let Request::Write { offset, .. } = request
                && (DATA..DATA + (1 << 20)).contains(offset)
            {
                seen.lock().push((*offset - DATA) / REGION);
            }
            false
        });
        b.mirror.attach(&NewLeg { volatile: true, ..NewLeg::new(Arc::new(memory)) }).unwrap();
        b.mirror.resync(ResyncThrottle::default()).unwrap();
        let mut given = given.lock().clone();
        given.dedup();
        given.truncate(2);
        given.sort();
        assert_eq!(given, [2, 10]);
    });
}

/// Ends the tasks of a scope, also when what drives them fails: the scope waits for them.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Whoever reads after a write was acknowledged sees it or a later one, on threads of the machine,
/// while legs leave, come back, and are preferred by turns.
#[test]
fn no_read_is_older_than_what_was_acknowledged_before_it() {
    let ram = |name: &str| -> Device { Arc::new(Ram::new(name, 4 << 20).persistent()) };
    let devices = [ram("a"), ram("b"), ram("c")];
    let legs = devices.clone().map(NewLeg::new);
    let mirror = create_mirror("m", &legs, &options()).unwrap();
    let numbers: Vec<AtomicU64> = (0..BLOCKS).map(|_| AtomicU64::new(0)).collect();
    let stop = AtomicBool::new(false);
    let write = &|half: u64| {
        let mut rng = Rng::new(half);
        while !stop.load(Ordering::Relaxed) {
            let block = rng.below(BLOCKS / 2) * 2 + half;
            let next = numbers[block as usize].load(Ordering::Acquire) + 1;
            let mut data = vec![0; BLOCK as usize];
            data[..8].copy_from_slice(&next.to_le_bytes());
            mirror.write(block * BLOCK, bytes::Bytes::from(data).into()).unwrap();
            numbers[block as usize].store(next, Ordering::Release);
        }
    };
    let read = &|seed: u64| {
        let mut rng = Rng::new(seed);
        while !stop.load(Ordering::Relaxed) {
            let block = rng.below(BLOCKS);
            let least = numbers[block as usize].load(Ordering::Acquire);
            let data = mirror.read(block * BLOCK, BLOCK).unwrap();
            let found = u64::from_le_bytes(data[..8].try_into().unwrap());
            assert!(found >= least, "block {block}: {found}, and {least} was acknowledged");
        }
    };
    std::thread::scope(|scope| {
        let tasks = [0, 1].map(|n| [scope.spawn(move || write(n)), scope.spawn(move || read(n))]);
        let ends = Stops(&stop);
        let mut rng = Rng::new(20);
        for _ in 0..150 {
            let slot = rng.below(3) as usize;
            let mut left = mirror.offline(slot);
            for _ in 0..1000 {
                // A write that was on its way while the leg came back may leave something to copy.
                if !matches!(left, Err(VolumeError::Refused(_))) {
                    break;
                }
                mirror.resync(ResyncThrottle::default()).unwrap();
                left = mirror.offline(slot);
            }
            left.unwrap();
            prefers(&mirror, rng.below(3) as usize);
            mirror.online(slot, None).unwrap();
            prefers(&mirror, slot);
            mirror.resync(ResyncThrottle::default()).unwrap();
            mirror.tick().unwrap();
        }
        drop(ends);
        tasks.into_iter().flatten().for_each(|task| task.join().unwrap());
    });
}

/// With write-behind a leg may lack what was acknowledged.
#[test]
fn a_leg_that_is_behind_is_not_read() {
    simulated(|| {
        let b = bench(&[false, true]);
        prefers(&b.mirror, 1);
        warmed(&b, 20);
        let (read, write) = (ReadPolicy::Preferred(1), WritePolicy::WriteBehind);
        b.mirror.set_policies(Policies { read, write, ..Policies::default() }).unwrap();
        b.gates[1].shut(|request| matches!(request, Request::Write { .. }));
        b.write(20, 2);
        (0..3).for_each(|_| assert!(b.is(20, 2)));
        b.gates[1].open();
    });
}

/// What was discarded reads as zeros, also where a leg keeps the old bytes.
#[test]
fn what_was_discarded_is_not_read_from_a_leg() {
    simulated(|| {
        let b = bench(&[false, false]);
        prefers(&b.mirror, 1);
        warmed(&b, 20);
        b.plugs
            .iter()
            .for_each(|plug| plug.with(Some(FaultRule::new(Ops::DISCARD, Effect::Lost)), 10));
        b.mirror.discard(REGION, REGION).unwrap();
        (0..3).for_each(|_| assert!(b.is(20, 0)));
    });
}

/// A write that failed on all legs, and was carried out on one of them: which of the two it is, is
/// decided before the first read.
#[test]
fn what_is_in_doubt_is_decided_before_it_is_read() {
    simulated(|| {
        let b = bench(&[false, false]);
        prefers(&b.mirror, 1);
        warmed(&b, 20);
        for (leg, effect) in [(0, Effect::Fail("bad".into())), (1, Effect::FailAfter("bad".into()))]
        {
            let data = DATA + 20 * BLOCK..DATA + 21 * BLOCK;
            let rule = FaultRule::new(Ops::WRITE, effect).within(data).nth(1);
            b.plugs[leg].with(Some(rule), 10);
        }
        b.mirror.write(20 * BLOCK, bytes_of(2, 20).into()).unwrap_err();
        let found = b.mirror.read(20 * BLOCK, BLOCK).unwrap();
        for slot in [0, 1, 0] {
            prefers(&b.mirror, slot);
            (0..3).for_each(|_| assert_eq!(b.mirror.read(20 * BLOCK, BLOCK).unwrap(), found));
        }
    });
}

/// The same with a write that was begun with write-behind, after the policy has changed.
#[test]
fn a_leg_that_is_behind_of_another_policy_is_not_read() {
    simulated(|| {
        let b = bench(&[false, true]);
        prefers(&b.mirror, 1);
        warmed(&b, 20);
        let (read, write) = (ReadPolicy::Preferred(1), WritePolicy::WriteBehind);
        b.mirror.set_policies(Policies { read, write, ..Policies::default() }).unwrap();
        let to_data = |request: &Request| match request {
            Request::Write { offset, .. } => (DATA..DATA + (1 << 20)).contains(offset),
            _ => false,
        };
        b.gates[0].shut(to_data);
        b.gates[1].shut(to_data);
        let data = bytes_of(2, 20).into();
        let written = b.mirror.submit(Request::Write { offset: 20 * BLOCK, data, fua: false });
        b.gates[0].wait();
        b.gates[1].wait();
        prefers(&b.mirror, 1);
        (0..3).for_each(|_| assert!(b.is(20, 1)));
        b.gates[0].open();
        written.wait().unwrap();
        (0..3).for_each(|_| assert!(b.is(20, 2)));
        b.gates[1].open();
    });
}
