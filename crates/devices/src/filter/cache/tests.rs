use proptest::prelude::*;
use steadfast_block::{conformance, pattern};
use steadfast_runtime::Sim;

use super::*;
use crate::filter::{Effect, Fault, FaultRule, Ops};
use crate::source::Ram;

const SIZE: u64 = 128 * 1024;
const BLOCKS: u64 = SIZE / 512;

fn cache(capacity: u64, lying: bool) -> (WriteCache, Ram) {
    let ram = Ram::new("disk", SIZE).persistent();
    (WriteCache::new(Arc::new(ram.clone()), CacheSettings { capacity, lying }), ram)
}

fn data(tag: u64, block: u64, blocks: u64) -> Payload {
    pattern::bytes(tag, block * 512, (blocks * 512) as usize).into()
}

#[test]
fn conforms() {
    for (capacity, lying) in [(1 << 20, false), (1 << 20, true), (16 * 1024, false), (0, false)] {
        let make = move || -> Arc<dyn BlockDevice> { Arc::new(cache(capacity, lying).0) };
        conformance::run(&make);
        Sim::new(1).run(move || conformance::run(&make)).unwrap();
    }
}

#[test]
fn conforms_over_a_slow_device() {
    let make = || -> Arc<dyn BlockDevice> {
        let fault = Fault::new(Arc::new(Ram::new("disk", SIZE)));
        let slow = |us| Effect::Delay(std::time::Duration::from_micros(us));
        fault.faults().add(FaultRule::new(Ops::WRITE, slow(90)));
        fault.faults().add(FaultRule::new(Ops::ALL, slow(40)));
        let settings = CacheSettings { capacity: 16 * 1024, lying: false };
        Arc::new(WriteCache::new(Arc::new(fault), settings))
    };
    Sim::new(1).run(move || conformance::run(&make)).unwrap();
}

#[test]
fn holds_writes_until_a_flush_or_until_it_is_full() {
    let (cache, ram) = cache(8 * 512, false);
    cache.write(0, data(1, 0, 8)).unwrap();
    assert_eq!((cache.dirty_bytes(), ram.read(0, 512).unwrap()), (8 * 512, vec![0; 512].into()));
    // Half of it goes down, ascending; the next time it goes on from there.
    cache.write(8 * 512, data(1, 8, 1)).unwrap();
    assert_eq!(cache.dirty_bytes(), 4 * 512);
    assert_eq!(ram.read(4 * 512, 512).unwrap(), data(1, 4, 1).into_contiguous());
    assert_eq!(ram.read(5 * 512, 512).unwrap(), vec![0; 512]);
    cache.write_fua(20 * 512, data(2, 20, 2)).unwrap();
    assert_eq!(ram.read(20 * 512, 1024).unwrap(), data(2, 20, 2).into_contiguous());
    assert_eq!(cache.dirty_bytes(), 4 * 512);
    cache.flush().unwrap();
    assert_eq!(
        (cache.dirty_bytes(), ram.read(0, 9 * 512).unwrap()),
        (0, data(1, 0, 9).into_contiguous())
    );
}

/// A cache over one that is volatile too: what left the first is not durable by that.
#[test]
fn a_flush_goes_on_to_the_device_below() {
    let (below, ram) = cache(1 << 20, false);
    let settings = CacheSettings { capacity: 0, lying: false };
    let above = WriteCache::new(Arc::new(below.clone()), settings);
    // No room: the write is below when it is answered, and nothing is left here.
    above.write(0, data(1, 0, 4)).unwrap();
    assert_eq!((above.dirty_bytes(), below.dirty_bytes()), (0, 4 * 512));
    above.flush().unwrap();
    assert_eq!(below.dirty_bytes(), 0);
    assert_eq!(ram.read(0, 4 * 512).unwrap(), data(1, 0, 4).into_contiguous());
}

/// The write is drained to make room, before its own task comes to it.
#[test]
fn a_durable_write_that_was_drained_meanwhile_is_durable() {
    let run = || {
        let (below, ram) = cache(1 << 20, false);
        let settings = CacheSettings { capacity: 512, lying: false };
        let above = WriteCache::new(Arc::new(below), settings);
        let write = |block, fua| {
            let (offset, data) = (block * 512, data(1, block, 1));
            above.submit(Request::Write { offset, data, fua })
        };
        write(1, false).wait().unwrap();
        let makes_room = write(2, false);
        write(0, true).wait().unwrap();
        makes_room.wait().unwrap();
        ram.read(0, 512).unwrap()
    };
    assert_eq!(Sim::new(1).run(run).unwrap(), data(1, 0, 1).into_contiguous());
}

#[test]
fn without_power_nothing_works() {
    let (cache, _) = cache(1 << 20, false);
    cache.write(0, data(1, 0, 1)).unwrap();
    cache.power_cut(1).unwrap();
    let gone = |r: Result<()>| assert!(matches!(r, Err(BlockError::Gone { .. })), "{r:?}");
    gone(cache.write(0, data(1, 0, 1)));
    gone(cache.write_fua(0, data(1, 0, 1)));
    gone(cache.read(0, 512).map(drop));
    gone(cache.flush());
    gone(cache.discard(0, 512));
    cache.power_on();
    cache.write(0, data(2, 0, 1)).unwrap();
    assert_eq!(cache.read(0, 512).unwrap(), data(2, 0, 1).into_contiguous());
}

#[test]
fn a_failed_drain_is_final() {
    let fault = Fault::new(Arc::new(Ram::new("disk", SIZE)));
    fault.faults().add(FaultRule::new(Ops::WRITE, Effect::Fail("bad sector".into())).nth(1));
    let cache = WriteCache::new(Arc::new(fault), CacheSettings::default());
    cache.write(0, data(1, 0, 1)).unwrap();
    let first = cache.flush().unwrap_err();
    assert_eq!(first.to_string(), "disk: write at byte 0 failed: bad sector");
    assert_eq!(cache.flush(), Err(first.clone()));
    assert_eq!(cache.write_fua(512, data(1, 1, 1)), Err(first));
    assert_eq!(cache.read(0, 512).unwrap(), data(1, 0, 1).into_contiguous());
}

#[derive(Debug, Clone)]
enum Op {
    Write { block: u64, blocks: u64, fua: bool },
    Flush,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let write = (0..40u64, 1..12u64, prop::bool::weighted(0.1))
        .prop_map(|(block, blocks, fua)| Op::Write { block, blocks, fua });
    prop::collection::vec(prop_oneof![8 => write, 1 => Just(Op::Flush)], 1..60)
}

/// What a block may hold after a power cut: tags of writes, 0 for none. The first is durable.
type Legal = BTreeMap<u64, Vec<u64>>;

/// Runs the operations and returns what is legal afterwards.
fn perform(cache: &WriteCache, ops: &[Op]) -> Legal {
    let mut legal: Legal = (0..BLOCKS).map(|b| (b, vec![0])).collect();
    for (tag, op) in (1..).zip(ops) {
        match op {
            Op::Write { block, blocks, fua } => {
                let request = Request::Write {
                    offset: block * 512,
                    data: data(tag, *block, *blocks),
                    fua: *fua,
                };
                cache.submit(request).wait().unwrap();
                for (_, tags) in legal.range_mut(*block..block + blocks) {
                    if *fua {
                        tags.clear();
                    }
                    tags.push(tag);
                }
            }
            Op::Flush => {
                cache.flush().unwrap();
                for tags in legal.values_mut() {
                    tags.drain(..tags.len() - 1);
                }
            }
        }
    }
    legal
}

fn holds(ram: &Ram, block: u64) -> u64 {
    let got = ram.read(block * 512, 512).unwrap();
    if got.iter().all(|b| *b == 0) {
        return 0;
    }
    let stamp = pattern::stamp_of(&got).expect("a mixed or foreign block");
    assert_eq!(stamp.position, block * 512);
    stamp.tag
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_cut_leaves_what_is_legal(ops in ops(), seed: u64, capacity in 0..100u64) {
        let ok = Sim::new(seed).run(move || {
            let (cache, ram) = cache(capacity * 512, false);
            let legal = perform(&cache, &ops);
            cache.power_cut(seed).unwrap();
            for (block, tags) in legal {
                let held = holds(&ram, block);
                assert!(tags.contains(&held), "block {block} holds {held}, legal are {tags:?}");
            }
            cache.power_on();
            assert_eq!(cache.read(0, SIZE).unwrap(), ram.read(0, SIZE).unwrap());
        });
        prop_assert!(ok.is_ok());
    }
}

#[test]
fn cuts_leave_every_legal_combination() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..2000 {
        let (cache, ram) = cache(1 << 20, false);
        let write = |block| Op::Write { block, blocks: 1, fua: false };
        let legal = perform(&cache, &[write(0), Op::Flush, write(0), write(0), write(1)]);
        assert_eq!((&legal[&0][..], &legal[&1][..]), (&[1, 3, 4][..], &[0, 5][..]));
        let cut = cache.power_cut(seed).unwrap();
        assert_eq!(cut.kept + cut.older + cut.lost, 2);
        seen.insert((holds(&ram, 0), holds(&ram, 1)));
    }
    assert_eq!(seen.len(), 6, "{seen:?}");
}

#[test]
fn a_lying_cache_loses_what_was_flushed() {
    let lost = (0..20).filter(|seed| {
        let (cache, ram) = cache(1 << 20, true);
        cache.write_fua(0, data(1, 0, 4)).unwrap();
        cache.flush().unwrap();
        cache.power_cut(*seed).unwrap();
        (0..4).any(|block| holds(&ram, block) == 0)
    });
    assert!(lost.count() > 5);
}
