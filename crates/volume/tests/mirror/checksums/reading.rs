//! Reads of a mirror with checksums: what they ask of the legs, and what they leave alone.

use steadfast_block::{BlockDevice, Request};
use steadfast_devices::filter::fault::{Effect, FaultRule, Ops};
use steadfast_runtime::Sim;
use steadfast_volume::{MirrorOptions, Policies, ReadPolicy};

use super::{with_checksums, written};
use crate::bench::{BLOCK, Bench, REGION, bench_with, options, plain, simulated};
use crate::campaign::media::LEG_BYTES;
use crate::campaign::truth::bytes_of;

/// Who opens a mirror and reads, and finds nothing wrong, has changed nothing.
#[test]
fn rule_reading_what_is_right_writes_nothing() {
    simulated(|| {
        let mut b = written(&[false, false]);
        b.mirror.close().unwrap();
        b.assemble(&[0, 1], &plain()).unwrap();
        let before: Vec<_> = b.disks.iter().map(|d| d.ram().read(0, LEG_BYTES).unwrap()).collect();
        assert!(b.is(0, 1) && b.is(20, 1));
        b.mirror.read(0, 1 << 20).unwrap();
        b.mirror.close().unwrap();
        let after: Vec<_> = b.disks.iter().map(|d| d.ram().read(0, LEG_BYTES).unwrap()).collect();
        assert!(before == after);
    });
}

/// Memory for the checksums of a few regions: what does not fit is written to the legs, also of
/// regions that are written to all the time, and read again.
#[test]
fn rule_what_does_not_fit_in_memory_is_on_the_legs() {
    for seed in 0..4 {
        Sim::new(seed)
            .run(move || {
                let small = MirrorOptions { checksum_memory: Some(600), ..with_checksums() };
                let mut b = bench_with(&[false, false], &small);
                for round in 1..4 {
                    (0..128).for_each(|n| b.write(n * 2, round));
                    let status = b.mirror.status();
                    assert!(status.regions[3] < 4, "they are dirty: {:?}", status.regions);
                    for leg in [0, 1] {
                        b.spoil(leg, 20 + leg as u64 * 64);
                    }
                    b.prefer(1);
                    assert!((0..128).all(|n| b.is(n * 2, round)));
                    b.prefer(0);
                    assert!((0..128).all(|n| b.is(n * 2, round)));
                    assert_eq!((b.errors(0), b.errors(1)), (round, round));
                }
                b.mirror.flush().unwrap();
                b.settle();
                b.cut(seed);
                b.assemble(&[0, 1], &plain()).unwrap();
                assert_eq!(b.mirror.status().unchecked_bytes, 0);
                b.spoil(0, 40);
                assert!((0..128).all(|n| b.is_everywhere(n * 2, 3)));
            })
            .unwrap();
    }
}

/// What a leg cannot read while volumes are still being assembled is not written again: assembling
/// writes nothing.
#[test]
fn rule_an_assembly_repairs_nothing() {
    for checksums in [false, true] {
        Sim::new(5)
            .run(move || {
                let mut b = bench_with(&[false, false], &MirrorOptions { checksums, ..options() });
                (0..16).for_each(|n| b.write(n, 1));
                let policies = Policies { read: ReadPolicy::First, ..Policies::default() };
                b.mirror.set_policies(policies).unwrap();
                b.mirror.close().unwrap();
                b.cut(0);
                let at = b.data_start(0);
                let bad = FaultRule::new(Ops::READ, Effect::Fail("a bad sector".into()));
                b.plugs[0].faults.clear();
                b.plugs[0].faults.add(bad.within(at..at + REGION));
                let all = |b: &Bench| -> Vec<_> {
                    b.disks.iter().map(|d| d.ram().read(0, LEG_BYTES).unwrap()).collect()
                };
                let before = all(&b);
                // Whether the volume is a member of another one is read from it.
                b.assemble(&[0, 1], &plain()).unwrap();
                assert!(b.mirror.status().legs[0].counters.errors > 0);
                b.mirror.close().unwrap();
                assert!(all(&b) == before);
            })
            .unwrap();
    }
}

/// The first read of a region reads its checksums too, and its data once.
#[test]
fn a_read_that_is_right_asks_one_leg_once() {
    for queued in [false, true] {
        Sim::new(5)
            .run(move || {
                let mut b = written(&[false, false]);
                b.mirror.close().unwrap();
                b.assemble(&[0, 1], &plain()).unwrap();
                let nothing = std::time::Duration::ZERO;
                for leg in [0, 1] {
                    let at = b.data_start(leg) + REGION;
                    let counted = FaultRule::new(Ops::READ, Effect::Delay(nothing));
                    b.plugs[leg].faults.clear();
                    b.plugs[leg].faults.add(counted.within(at..at + REGION));
                }
                let hits = |b: &Bench| b.plugs.iter().map(|p| p.faults.hits()).sum::<u64>();
                let before = hits(&b);
                let read = Request::Read { offset: 20 * BLOCK, len: BLOCK };
                let bytes = match queued {
                    true => b.mirror.submit(read).wait(),
                    false => b.mirror.read(20 * BLOCK, BLOCK),
                };
                assert_eq!(bytes.unwrap(), bytes_of(1, 20));
                assert_eq!(hits(&b) - before, 1);
            })
            .unwrap();
    }
}
