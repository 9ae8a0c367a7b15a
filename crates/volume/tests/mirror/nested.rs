//! Volumes that are members of others, with members missing.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_devices::filter::fault::Fault;
use steadfast_devices::source::Ram;
use steadfast_runtime::Sim;
use steadfast_volume::mirror::LegState;
use steadfast_volume::{
    AssembleOptions, AssemblyReport, MirrorOptions, NewLeg, ResyncThrottle, Volume, assemble,
    create_mirror, create_rows,
};

use crate::bench::{Device, degraded, plain};

const BYTES: u64 = 4 << 20;

fn disk(name: &str) -> Device {
    Arc::new(Ram::new(name, BYTES).persistent())
}

fn mirror_of(name: &str, legs: &[&Device]) -> steadfast_volume::Mirror {
    let legs: Vec<NewLeg> = legs.iter().map(|d| NewLeg::new(Arc::clone(d))).collect();
    let options = MirrorOptions { region_bytes: Some(64 << 10), ..MirrorOptions::default() };
    create_mirror(name, &legs, &options).unwrap()
}

fn names(found: &AssemblyReport) -> Vec<&str> {
    found.volumes.iter().map(|v| v.name.as_str()).collect()
}

/// The UUIDs, and so their order, depend on the seed.
fn for_seeds(body: fn()) {
    (0..6).for_each(|seed| Sim::new(seed).run(body).unwrap());
}

fn outer(found: &AssemblyReport) -> &Volume {
    let outer: Vec<&Volume> = found.outer().collect();
    assert_eq!(outer.len(), 1, "{:?}", names(found));
    outer[0]
}

/// An outer mirror waits for a member that is a mirror with a leg missing, and is assembled once.
#[test]
fn rule_an_outer_volume_waits_for_its_members() {
    for_seeds(|| {
        let (a, b, c) = (disk("a"), disk("b"), disk("c"));
        let inner = mirror_of("inner", &[&a, &b]);
        let on_inner: Device = Arc::new(inner.clone());
        let top = mirror_of("outer", &[&on_inner, &c]);
        top.write(1 << 20, vec![7; 4096].into()).unwrap();
        top.close().unwrap();
        inner.close().unwrap();
        for given in [vec![&a, &c], vec![&c, &a]] {
            let devices: Vec<Device> = given.into_iter().map(Arc::clone).collect();
            let found = assemble(&devices, &degraded());
            assert!(found.problems.is_empty(), "{:?}", found.problems);
            assert_eq!(names(&found), ["inner", "outer"]);
            let mirror = outer(&found).mirror.as_ref().unwrap();
            let legs: Vec<LegState> = mirror.status().legs.iter().map(|l| l.state).collect();
            assert_eq!(legs, [LegState::Okay, LegState::Okay]);
            assert_eq!(mirror.read(1 << 20, 4096).unwrap(), vec![7; 4096]);
            found.close().unwrap();
        }
        // Nothing was written, and the other one is taken as before.
        let found = assemble(&[a, b, c], &plain());
        assert_eq!(names(&found), ["inner", "outer"]);
        let whole = |v: &Volume| v.mirror.as_ref().unwrap().status().is_whole();
        assert!(found.volumes.iter().all(whole));
    });
}

/// A device that was a member, and could not be wiped when it was replaced, is none: the volume
/// that has taken its place is waited for.
#[test]
fn rule_who_was_a_member_does_not_make_a_volume_complete() {
    for_seeds(|| {
        let large = |name| Arc::new(Ram::new(name, 2 * BYTES).persistent()) as Device;
        let (a, c, d) = (disk("a"), large("c"), large("d"));
        let gone = Ram::new("gone", BYTES).persistent();
        let fault = Fault::new(Arc::new(gone.clone()));
        let faults = fault.faults();
        let on_fault: Device = Arc::new(fault);
        let top = mirror_of("outer", &[&a, &on_fault]);
        faults.take_away("unplugged");
        top.write(1 << 20, vec![6; 4096].into()).unwrap();
        let inner = mirror_of("inner", &[&c, &d]);
        top.detach(1).unwrap();
        top.attach(&NewLeg::new(Arc::new(inner.clone()))).unwrap();
        top.write(1 << 20, vec![7; 4096].into()).unwrap();
        assert!(top.resync(ResyncThrottle::default()).unwrap().complete);
        top.close().unwrap();
        inner.close().unwrap();
        let found = assemble(&[a, Arc::new(gone), c, d], &plain());
        assert!(found.problems.is_empty(), "{:?}", found.problems);
        assert_eq!(names(&found), ["inner", "outer"]);
        let mirror = outer(&found).mirror.as_ref().unwrap();
        assert!(mirror.status().is_whole());
        assert_eq!(mirror.read(1 << 20, 4096).unwrap(), vec![7; 4096]);
    });
}

/// Three deep, with something missing of each.
#[test]
fn rule_nested_volumes_come_from_the_inside_out() {
    for_seeds(|| {
        let disks: Vec<Device> = ["a", "b", "c", "d", "e"].map(disk).into();
        let low = mirror_of("low", &[&disks[0], &disks[1]]);
        let on_low: Device = Arc::new(low.clone());
        let row = create_rows("row", &[on_low, Arc::clone(&disks[2])], None, false).unwrap();
        let top = mirror_of("top", &[&row.device, &disks[3], &disks[4]]);
        top.write(0, vec![7; 4096].into()).unwrap();
        top.close().unwrap();
        low.close().unwrap();
        let given: Vec<Device> = [0, 2, 3].map(|n| Arc::clone(&disks[n])).into();
        let found = assemble(&given, &degraded());
        assert!(found.problems.is_empty(), "{:?}", found.problems);
        assert_eq!(names(&found), ["low", "row", "top"]);
        let mirror = outer(&found).mirror.as_ref().unwrap();
        assert_eq!(mirror.read(0, 4096).unwrap(), vec![7; 4096]);
        mirror.write(4096, vec![8; 4096].into()).unwrap();
        found.close().unwrap();
        // A concat with a component missing is none; its mirror goes on, once it is asked to.
        let given: Vec<Device> = [0, 3].map(|n| Arc::clone(&disks[n])).into();
        let found = assemble(&given, &plain());
        assert_eq!(names(&found), ["low"]);
        assert_eq!(found.problems.len(), 2, "{:?}", found.problems);
        let found = assemble(&given, &degraded());
        assert_eq!(found.volumes.len(), 2, "{:?}", names(&found));
        let volume = found.volumes.iter().find(|v| v.name == "top").unwrap();
        let mirror = volume.mirror.as_ref().unwrap();
        assert_eq!(mirror.read(4096, 4096).unwrap(), vec![8; 4096]);
    });
}

/// A volume of which the start cannot be read, because who holds it is missing, still takes its
/// place in the volume above, which goes on with its other leg.
#[test]
fn rule_a_stale_start_does_not_stop_what_lies_above() {
    for_seeds(|| {
        let (a, b, c) = (disk("a"), disk("b"), disk("c"));
        let inner = mirror_of("inner", &[&a, &b]);
        let on_inner: Device = Arc::new(inner.clone());
        let top = mirror_of("outer", &[&on_inner, &c]);
        top.write(1 << 20, vec![7; 4096].into()).unwrap();
        // Leg b is behind by what the outer mirror writes at the start of the inner one.
        inner.offline(1).unwrap();
        top.write(2 << 20, vec![8; 4096].into()).unwrap();
        top.flush().unwrap();
        inner.online(1, None).unwrap();
        top.close().unwrap();
        drop((top, on_inner));
        inner.close().unwrap();
        let found = assemble(&[Arc::clone(&b), Arc::clone(&c)], &degraded());
        let volume = found.volumes.iter().find(|v| v.name == "outer").unwrap();
        let mirror = volume.mirror.as_ref().unwrap();
        assert_eq!(mirror.read(2 << 20, 4096).unwrap(), vec![8; 4096]);
        mirror.write(3 << 20, vec![9; 4096].into()).unwrap();
        mirror.flush().unwrap();
        assert_eq!(names(&found).len(), 2);
        found.close().unwrap();
        drop(found);
        let found = assemble(&[a, b, c], &degraded());
        let mirror = outer(&found).mirror.as_ref().unwrap();
        assert!(mirror.resync(ResyncThrottle::default()).unwrap().complete);
        for (at, byte) in [(1u64, 7u8), (2, 8), (3, 9)] {
            assert_eq!(mirror.read(at << 20, 4096).unwrap(), vec![byte; 4096], "{at} MiB");
        }
    });
}

/// Looking at nested volumes after a power cut writes nothing, though their labels are in doubt.
#[test]
fn rule_nested_volumes_are_looked_at_without_a_write() {
    for_seeds(|| {
        let (a, b, c) = (disk("a"), disk("b"), disk("c"));
        let inner = mirror_of("inner", &[&a, &b]);
        let on_inner: Device = Arc::new(inner);
        let top = mirror_of("outer", &[&on_inner, &c]);
        top.write(0, vec![7; 4096].into()).unwrap();
        let contents = |d: &Device| d.read(0, BYTES).unwrap();
        // As after a power cut: nobody closes it.
        let copies: Vec<Device> = [&a, &b, &c]
            .map(|d| {
                let copy: Device = Arc::new(Ram::new(d.info().name, BYTES).persistent());
                copy.write(0, contents(d).into()).unwrap();
                copy
            })
            .into();
        let before: Vec<_> = copies.iter().map(contents).collect();
        let found = assemble(&copies, &AssembleOptions::default());
        assert_eq!(names(&found), ["inner", "outer"]);
        found.close().unwrap();
        drop(found);
        assert!(copies.iter().map(contents).eq(before));
    });
}
