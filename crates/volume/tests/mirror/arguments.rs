//! Wrong values are errors; a spare that cannot be used is not.

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::BlockDevice;
use steadfast_block::rng::Rng;
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_runtime::sleep;
use steadfast_volume::mirror::LegState;
use steadfast_volume::{
    MirrorOptions, NewLeg, Policies, ReadPolicy, ResyncThrottle, create_mirror, create_rows,
    planned_mirror, planned_rows,
};

use crate::bench::{BLOCK, Device, REGION, bench, plain, simulated};
use crate::campaign::media::{LEG_BYTES, Medium};
use crate::gate::Gate;

fn disk(bytes: u64) -> Device {
    Arc::new(Ram::new("disk", bytes).persistent())
}

fn refusal(bytes: u64, options: MirrorOptions) -> String {
    let device = disk(bytes);
    let before = device.read(0, bytes).unwrap();
    let made = create_mirror("m", &[NewLeg::new(Arc::clone(&device))], &options);
    assert!(device.read(0, bytes).unwrap() == before, "it was written to");
    made.err().unwrap().to_string()
}

#[test]
fn a_size_that_cannot_be_is_an_error() {
    let size = |size| MirrorOptions {
        size: Some(size),
        region_bytes: Some(64 << 10),
        ..MirrorOptions::default()
    };
    for (wrong, says) in [
        (0, "a volume of 0 bytes: it has whole regions of 65536, for example 65536"),
        (100_000, "whole regions of 65536, for example 131072"),
        (3 << 20, "is too small: for 3145728 bytes"),
        (u64::MAX, "is too small"),
        (u64::MAX - 65535, "is too small"),
    ] {
        let refused = refusal(3 << 20, size(wrong));
        assert!(refused.contains(says), "{wrong}: {refused}");
    }
    let region = |region| MirrorOptions { region_bytes: Some(region), ..MirrorOptions::default() };
    for wrong in [0, 1, 2048, 65537, 3 << 20, 128 << 20, u32::MAX] {
        let refused = refusal(3 << 20, region(wrong));
        assert!(refused.contains("a region has a power of two"), "{wrong}: {refused}");
    }
    let read = ReadPolicy::Preferred(4);
    let policies = Policies { read, ..Policies::default() };
    let refused = refusal(3 << 20, MirrorOptions { policies, ..MirrorOptions::default() });
    assert!(refused.contains("leg 4 cannot be preferred"), "{refused}");
    let refused = refusal(8192, MirrorOptions::default());
    assert!(refused.contains("is too small"), "{refused}");
}

/// What would be refused is refused in the same words when it is asked for, and nothing is written:
/// neither then, nor where it would be done.
#[test]
fn whether_it_would_be_refused_can_be_asked_for() {
    let two = [disk(4 << 20), disk(4 << 20)].map(NewLeg::new);
    let mirror = create_mirror("m", &two, &MirrorOptions::default()).unwrap();
    let (small, good) = (NewLeg::new(disk(1 << 20)), NewLeg::new(disk(5 << 20)));
    let before = |leg: &NewLeg| leg.device.read(0, leg.device.info().size).unwrap();
    let contents = [&two[0], &two[1], &small, &good].map(before);
    let text = |refused: steadfast_volume::VolumeError| refused.to_string();
    let asked = [
        mirror.check_attach(&small),
        mirror.check_add_spare(&small),
        mirror.check_replace(1, Some(&small), false),
        mirror.check_replace(3, None, false),
    ];
    let done = [
        mirror.attach(&small).map(drop),
        mirror.add_spare(&small),
        mirror.replace(1, Some(&small)),
        mirror.replace(3, None),
    ];
    for (asked, done) in asked.into_iter().zip(done) {
        assert_eq!(asked.map_err(text), Err(text(done.unwrap_err())));
    }
    mirror.check_attach(&good).unwrap();
    mirror.check_add_spare(&good).unwrap();
    mirror.check_replace(1, Some(&good), false).unwrap();
    let one = std::slice::from_ref(&good);
    let planned = planned_mirror("n", one, &MirrorOptions::default()).unwrap();
    assert_eq!(planned.info().name, "n");
    // A concat that is still to be made, in a leg's place.
    let planned = planned_rows("c", &[Arc::clone(&good.device)], None, false).unwrap();
    let leg = NewLeg { force: true, ..NewLeg::new(Arc::clone(&planned)) };
    mirror.check_replace(1, Some(&leg), false).unwrap();
    assert!(planned.read(0, 4096).unwrap_err().to_string().contains("it is not made yet"));
    assert!([&two[0], &two[1], &small, &good].map(before) == contents, "something was written");
    let made = create_rows("c", &[Arc::clone(&good.device)], None, false).unwrap();
    assert_eq!(made.device.info(), planned.info());
}

#[test]
fn an_interlace_that_cannot_be_is_an_error() {
    for (wrong, says) in [
        (0, "an interlace of 0 bytes"),
        (512, "an interlace of 512 bytes"),
        (5000, "an interlace of 5000 bytes"),
        ((100 << 20) + 4096, "at most 100 MiB"),
        (u32::MAX, "an interlace"),
        (4 << 20, "is too small to be a component"),
    ] {
        let devices = [disk(3 << 20), disk(3 << 20)];
        let refused = create_rows("s", &devices, Some(wrong), false).err().unwrap().to_string();
        assert!(refused.contains(says), "{wrong}: {refused}");
        assert!(devices.iter().all(|d| d.read(4096, 4096).unwrap() == vec![0; 4096]));
    }
}

#[test]
fn a_growth_that_cannot_be_is_an_error() {
    simulated(|| {
        let b = bench(&[false, false]);
        for (wrong, says) in [
            (0, "never made smaller"),
            ((1 << 20) + 4096, "are not whole regions of 65536: 1048576 or 1114112 would be"),
            (u64::MAX, "has room for"),
            (u64::MAX - 65535, "has room for"),
            (1 << 40, "has room for"),
        ] {
            let refused = b.mirror.grow(Some(wrong)).unwrap_err().to_string();
            assert!(refused.contains(says), "{wrong}: {refused}");
        }
        assert_eq!(b.mirror.info().size, 1 << 20);
        let throttle = ResyncThrottle { bytes_per_second: Some(0), ..ResyncThrottle::default() };
        let refused = b.mirror.resync(throttle).unwrap_err().to_string();
        assert!(refused.contains("0 bytes a second"), "{refused}");
    });
}

/// A slow resync does not keep a mirror open.
#[test]
fn a_throttled_resync_ends_when_the_mirror_is_closed() {
    simulated(|| {
        let b = bench(&[false, false]);
        (0..64).for_each(|n| b.write(n, 1));
        b.mirror.flush().unwrap();
        b.mirror.replace(1, None).unwrap();
        let throttle = ResyncThrottle { bytes_per_second: Some(1), ..ResyncThrottle::default() };
        b.mirror.keep(Duration::from_millis(5), throttle);
        sleep(Duration::from_millis(50));
        let begun = steadfast_runtime::now();
        b.mirror.close().unwrap();
        assert!(steadfast_runtime::now() - begun < Duration::from_secs(1));
    });
}

/// A spare must be large enough when it is added, and when it is used: the volume may have grown.
#[test]
fn a_spare_that_is_too_small_is_not_used() {
    simulated(|| {
        let mut b = bench(&[false, false]);
        b.write(0, 1);
        let small = NewLeg::new(disk(1 << 20));
        let refused = b.mirror.add_spare(&small).unwrap_err().to_string();
        assert!(refused.contains("is too small"), "{refused}");
        let spare = NewLeg::new(disk((1 << 20) + 4 * REGION));
        b.mirror.add_spare(&spare).unwrap();
        let refused = b.mirror.add_spare(&NewLeg { force: true, ..spare }).unwrap_err().to_string();
        assert!(refused.contains("a spare of this mirror already"), "{refused}");
        b.mirror.grow(None).unwrap();
        b.plugs[0].faults.take_away("broken");
        b.write(0, 2);
        b.mirror.tick().unwrap();
        assert_eq!(b.state(0), LegState::NeedsMaintenance, "it does not fit");
        // One that fits takes the place.
        let fits = Medium::used("fits", false, &mut Rng::new(9));
        let plug = fits.plug(10);
        let gate = Gate::new(Arc::clone(&plug.device));
        b.mirror.add_spare(&NewLeg::new(Arc::new(gate.clone()))).unwrap();
        b.mirror.tick().unwrap();
        assert!(b.mirror.resync(ResyncThrottle::default()).unwrap().complete);
        b.mirror.flush().unwrap();
        (b.disks[0], b.plugs[0], b.gates[0]) = (fits, plug, gate);
        b.cut(0);
        b.assemble(&[0, 1], &plain()).unwrap();
        assert_eq!(b.state(0), LegState::Okay);
        assert!(b.is_everywhere(0, 2));
    });
}

/// A spare that was used by others meanwhile is nobody's leg, and is no reason to stop the upkeep.
#[test]
fn a_spare_that_is_none_any_more_is_left_out() {
    simulated(|| {
        let b = bench(&[false, false]);
        b.write(0, 1);
        let device = disk(LEG_BYTES);
        b.mirror.add_spare(&NewLeg::new(Arc::clone(&device))).unwrap();
        device.write(0, vec![9; LEG_BYTES as usize].into()).unwrap();
        b.plugs[0].faults.take_away("broken");
        b.write(0, 2);
        b.mirror.tick().unwrap();
        b.mirror.tick().unwrap();
        assert_eq!(b.state(0), LegState::NeedsMaintenance);
        assert!(b.mirror.status().spares.is_empty());
        assert_eq!(device.read(0, BLOCK).unwrap(), vec![9; BLOCK as usize]);
        assert!(b.is_everywhere(0, 2));
    });
}

/// A store that is larger, with the same bytes.
pub fn larger(of: &Store, bytes: u64) -> Store {
    let mut store = Store::new(bytes);
    store.write_slice(0, &of.read(0, of.size()));
    store
}
