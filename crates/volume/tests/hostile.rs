//! Members whose bytes are anything: an error or a volume, never a panic.

use std::sync::Arc;

use proptest::prelude::*;
use steadfast_block::BlockDevice;
use steadfast_devices::source::Ram;
use steadfast_volume::ondisk::checksums::record_at;
use steadfast_volume::ondisk::{LABEL_AT, MAP_AT, second_label_at};
use steadfast_volume::{
    AssembleOptions, MirrorOptions, NewLeg, assemble, create_mirror, create_rows,
};

type Device = Arc<dyn BlockDevice>;

const BYTES: u64 = 1 << 20;
const CHECKSUM_AT: usize = 12;

fn disk(name: &str) -> Device {
    Arc::new(Ram::new(name, BYTES).persistent())
}

/// Changes bytes of a member's label, and makes its checksum right again.
fn change(device: &Device, changes: &[(usize, u8)]) {
    let mut label = device.read(LABEL_AT, 4096).unwrap().to_vec();
    for (at, byte) in changes {
        label[*at] = *byte;
    }
    label[CHECKSUM_AT..CHECKSUM_AT + 4].fill(0);
    let sum = crc32c::crc32c(&label);
    label[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&sum.to_le_bytes());
    device.write(LABEL_AT, label.clone().into()).unwrap();
    device.write(second_label_at(BYTES), label.into()).unwrap();
}

/// Uses whatever came of it.
fn use_it(devices: &[Device]) {
    let found = assemble(devices, &AssembleOptions { degraded: true, ..Default::default() });
    for volume in &found.volumes {
        let size = volume.device.info().size;
        drop(volume.device.read(0, 4096));
        if size >= 4096 {
            drop(volume.device.write(size - 4096, vec![1; 4096].into()));
            drop(volume.device.discard(0, size));
        }
    }
    drop(found.close());
}

/// What a label names and this program does not know is refused by its bits, and nothing written.
#[test]
fn what_is_not_known_is_refused_by_name() {
    let legs = [disk("a"), disk("b")];
    let new = [NewLeg::new(Arc::clone(&legs[0])), NewLeg::new(Arc::clone(&legs[1]))];
    create_mirror("m", &new, &MirrorOptions::default()).unwrap().close().unwrap();
    legs.iter().for_each(|leg| change(leg, &[(148, 4)]));
    let before: Vec<_> = legs.iter().map(|leg| leg.read(0, BYTES).unwrap()).collect();
    let found = assemble(&legs, &AssembleOptions { degraded: true, ..Default::default() });
    assert!(found.volumes.is_empty());
    let text = found.problems[0].1.to_string();
    assert!(text.contains("a: its volume needs what this program does not know"), "{text}");
    assert!(text.contains("features 0x4"), "{text}");
    let after: Vec<_> = legs.iter().map(|leg| leg.read(0, BYTES).unwrap()).collect();
    assert!(before == after);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn mirrors_of_anything(
        changes in prop::collection::vec((8usize..1200, any::<u8>()), 0..6),
        map in prop::collection::vec(any::<u8>(), 8192),
    ) {
        let legs = [disk("a"), disk("b")];
        let new = [NewLeg::new(Arc::clone(&legs[0])), NewLeg::new(Arc::clone(&legs[1]))];
        let mirror = create_mirror("m", &new, &MirrorOptions::default()).unwrap();
        mirror.write(0, vec![5; 4096].into()).unwrap();
        mirror.close().unwrap();
        change(&legs[0], &changes);
        legs[1].write(MAP_AT, map.into()).unwrap();
        use_it(&legs);
    }

    #[test]
    fn checksums_of_anything(
        changes in prop::collection::vec((8usize..1200, any::<u8>()), 0..4),
        area in prop::collection::vec(any::<u8>(), 4096),
        record in prop::collection::vec((24usize..4096, any::<u8>()), 1..6),
    ) {
        let legs = [disk("a"), disk("b"), disk("c")];
        let new: Vec<NewLeg> = legs.iter().cloned().map(NewLeg::new).collect();
        let options = MirrorOptions {
            checksums: true,
            region_bytes: Some(64 << 10),
            ..MirrorOptions::default()
        };
        let mirror = create_mirror("m", &new, &options).unwrap();
        mirror.write(0, vec![5; 128 << 10].into()).unwrap();
        mirror.close().unwrap();
        let (at, len) = record_at(1, 64 << 10, 0);
        legs[0].write(at, area.into()).unwrap();
        // A record that says something else, with a right checksum of its own.
        let mut bytes = legs[1].read(at, len).unwrap().to_vec();
        for (at, byte) in &record {
            bytes[*at] = *byte;
        }
        bytes[4..8].fill(0);
        let sum = crc32c::crc32c(&bytes);
        bytes[4..8].copy_from_slice(&sum.to_le_bytes());
        legs[1].write(at, bytes.into()).unwrap();
        change(&legs[2], &changes);
        use_it(&legs);
    }

    #[test]
    fn stripes_of_anything(changes in prop::collection::vec((8usize..1200, any::<u8>()), 0..6)) {
        let parts = [disk("a"), disk("b")];
        drop(create_rows("s", &parts, Some(4096), false).unwrap());
        change(&parts[1], &changes);
        use_it(&parts);
        use_it(&parts[1..]);
    }
}
