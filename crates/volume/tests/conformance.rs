//! Every kind of volume is a block device like any other.

use std::sync::Arc;

use steadfast_block::{BlockDevice, conformance};
use steadfast_devices::filter::cache::{CacheSettings, WriteCache};
use steadfast_devices::source::Ram;
use steadfast_runtime::Sim;
use steadfast_volume::{
    Contents, MirrorOptions, NewLeg, Policies, ReadPolicy, WritePolicy, create_mirror, create_rows,
};

type Device = Arc<dyn BlockDevice>;

const LEG: u64 = 6 << 20;

fn disk(name: &str) -> Device {
    Arc::new(Ram::new(name, LEG).persistent())
}

fn cached(name: &str) -> Device {
    Arc::new(WriteCache::new(disk(name), CacheSettings::default()))
}

fn memory(name: &str) -> Device {
    Arc::new(Ram::new(name, LEG))
}

fn mirror(legs: &[Device], read: ReadPolicy, write: WritePolicy, contents: Contents) -> Device {
    let legs: Vec<NewLeg> = legs.iter().cloned().map(NewLeg::new).collect();
    let policies = Policies { read, write, ..Policies::default() };
    let options = MirrorOptions { policies, contents, ..MirrorOptions::default() };
    Arc::new(create_mirror("m", &legs, &options).unwrap())
}

fn with_checksums(legs: &[Device], write: WritePolicy) -> Device {
    let legs: Vec<NewLeg> = legs.iter().cloned().map(NewLeg::new).collect();
    let policies = Policies { write, ..Policies::default() };
    let options = MirrorOptions {
        policies,
        checksums: true,
        region_bytes: Some(64 << 10),
        ..MirrorOptions::default()
    };
    Arc::new(create_mirror("m", &legs, &options).unwrap())
}

fn run(make: fn() -> Device) {
    conformance::run(&make);
    Sim::new(3).run(move || conformance::run(&make)).unwrap();
}

/// Of what needs a thread for each of thousands of requests.
fn simulated(make: fn() -> Device) {
    Sim::new(3).run(move || conformance::run(&make)).unwrap();
}

#[test]
fn a_mirror_of_two() {
    run(|| {
        let legs = [disk("a"), disk("b")];
        mirror(&legs, ReadPolicy::RoundRobin, WritePolicy::Parallel, Contents::Anything)
    });
}

#[test]
fn a_mirror_of_one_and_of_the_same_zeros() {
    run(|| mirror(&[disk("a")], ReadPolicy::First, WritePolicy::Parallel, Contents::Same));
}

#[test]
fn a_mirror_with_checksums() {
    run(|| with_checksums(&[disk("a"), disk("b")], WritePolicy::Parallel));
}

#[test]
fn a_mirror_with_checksums_and_memory() {
    simulated(|| with_checksums(&[cached("a"), memory("b")], WritePolicy::WriteBehind));
    simulated(|| with_checksums(&[cached("a"), disk("b")], WritePolicy::Serial));
}

#[test]
fn a_mirror_of_caches() {
    simulated(|| {
        let legs = [cached("a"), cached("b"), cached("c")];
        mirror(&legs, ReadPolicy::Geometric, WritePolicy::Parallel, Contents::Anything)
    });
}

#[test]
fn a_mirror_written_one_leg_after_the_other() {
    simulated(|| {
        let legs = [disk("a"), disk("b")];
        mirror(&legs, ReadPolicy::Geometric, WritePolicy::Serial, Contents::Anything)
    });
}

#[test]
fn a_mirror_with_memory_that_follows() {
    run(|| {
        let legs = [disk("a"), cached("b"), memory("c"), memory("d")];
        mirror(&legs, ReadPolicy::Preferred(2), WritePolicy::WriteBehind, Contents::Anything)
    });
}

#[test]
fn an_adaptive_mirror() {
    run(|| {
        let legs = [cached("a"), memory("b")];
        mirror(&legs, ReadPolicy::Adaptive, WritePolicy::Parallel, Contents::Anything)
    });
}

#[test]
fn a_mirror_of_large_blocks() {
    run(|| {
        let leg = |n| -> Device { Arc::new(Ram::new(n, LEG).persistent().with_block(4096)) };
        let legs = [leg("a"), disk("b")];
        mirror(&legs, ReadPolicy::RoundRobin, WritePolicy::Parallel, Contents::Anything)
    });
}

#[test]
fn a_concat_and_stripes() {
    run(|| create_rows("c", &[disk("a"), disk("b")], None, false).unwrap().device);
    run(|| {
        let components = [disk("a"), disk("b"), disk("c")];
        create_rows("s", &components, Some(16 << 10), false).unwrap().device
    });
}

#[test]
fn a_mirror_of_stripes() {
    run(|| {
        let stripe = |name: &str, a, b| {
            create_rows(name, &[disk(a), disk(b)], Some(8192), false).unwrap().device
        };
        let legs = [stripe("s1", "a", "b"), stripe("s2", "c", "d")];
        mirror(&legs, ReadPolicy::RoundRobin, WritePolicy::Parallel, Contents::Anything)
    });
}

#[test]
fn a_stripe_of_mirrors() {
    run(|| {
        let pair = |a, b| {
            let (read, write) = (ReadPolicy::RoundRobin, WritePolicy::Parallel);
            mirror(&[disk(a), disk(b)], read, write, Contents::Anything)
        };
        let mirrors = [pair("a", "b"), pair("c", "d")];
        create_rows("s", &mirrors, Some(65536), false).unwrap().device
    });
}

/// Also of what lies on one component alone, whichever that is.
#[test]
fn a_flush_and_a_durable_write_reach_every_component() {
    for interlace in [None, Some(16 << 10)] {
        let cache = |name| WriteCache::new(disk(name), CacheSettings::default());
        let caches = [cache("a"), cache("b"), cache("c")];
        let components = caches.clone().map(|cache| -> Device { Arc::new(cache) });
        let made = create_rows("r", &components, interlace, false).unwrap().device;
        let size = made.info().size;
        // Of stripes the first three; of a concat the beginning, the middle and the end.
        let places = [0, 16 << 10, 32 << 10, size / 8192 * 4096, size - 4096];
        let dirty = || caches.each_ref().map(WriteCache::dirty_bytes);
        made.flush().unwrap();
        for at in places {
            made.write(at, vec![1; 4096].into()).unwrap();
        }
        assert!(dirty().iter().all(|bytes| *bytes > 0), "{interlace:?}: {:?}", dirty());
        made.flush().unwrap();
        assert_eq!(dirty(), [0; 3], "{interlace:?}");
        for at in places {
            made.write_fua(at, vec![2; 4096].into()).unwrap();
            assert_eq!(dirty(), [0; 3], "{interlace:?}, {at}");
        }
    }
}
