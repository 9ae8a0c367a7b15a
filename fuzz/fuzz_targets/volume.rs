//! Assembly of a mirror whose label, map and checksums are anything. The input says which bytes of
//! the label of a good member are changed; its checksum is made right again, which the fuzzer could
//! not guess. Of every other input the mirror has checksums, and the first record of them is
//! anything too, mostly with a right checksum of its own.
#![cfg_attr(feature = "libfuzzer", no_main)]

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_devices::source::Ram;
use steadfast_volume::ondisk::checksums::record_at;
use steadfast_volume::ondisk::{LABEL_AT, MAP_AT, second_label_at};
use steadfast_volume::{AssembleOptions, MirrorOptions, NewLeg, assemble, create_mirror};

const BYTES: u64 = 1 << 20;
const CHECKSUM_AT: usize = 12;

pub fn run(input: &[u8]) {
    let device: Arc<dyn BlockDevice> = Arc::new(Ram::new("leg", BYTES).persistent());
    let checksums = input.first().is_some_and(|byte| byte & 1 != 0);
    let options =
        MirrorOptions { checksums, region_bytes: Some(64 << 10), ..MirrorOptions::default() };
    let mirror = create_mirror("m", &[NewLeg::new(Arc::clone(&device))], &options).unwrap();
    if checksums {
        mirror.write(0, vec![7; 4096].into()).unwrap();
    }
    mirror.close().unwrap();
    if checksums {
        spoil_record(&device, input);
    }
    let mut label = device.read(LABEL_AT, 4096).unwrap().to_vec();
    let (changes, map) = input.split_at(input.len().min(96));
    for change in changes.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % 4096;
        label[at] = change[2];
    }
    label[CHECKSUM_AT..CHECKSUM_AT + 4].fill(0);
    let sum = crc32c::crc32c(&label);
    label[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&sum.to_le_bytes());
    device.write(LABEL_AT, label.clone().into()).unwrap();
    device.write(second_label_at(BYTES), label.into()).unwrap();
    // Mirrors with checksums keep their map: without it nobody looks at a record.
    let whole = if checksums { 0 } else { map.len() / 512 * 512 };
    if whole > 0 {
        device.write(MAP_AT, map[..whole.min(8192)].to_vec().into()).unwrap();
    }
    let found = assemble(&[device], &AssembleOptions { degraded: true, ..Default::default() });
    if let Some(volume) = found.volumes.last() {
        let size = volume.device.info().size;
        drop(volume.device.read(0, 512));
        drop(volume.device.write(size - 4096, vec![1; 4096].into()));
        drop(volume.device.discard(0, size));
    }
    drop(found.close());
}

/// Changes bytes of the first region's record of checksums.
fn spoil_record(device: &Arc<dyn BlockDevice>, input: &[u8]) {
    let (at, len) = record_at(1, 64 << 10, 0);
    let mut record = device.read(at, len).unwrap().to_vec();
    for change in input.rchunks_exact(3).take(16) {
        let place = usize::from(u16::from_le_bytes([change[0], change[1]])) % record.len();
        record[place] = change[2];
    }
    if input.first().is_some_and(|byte| byte & 2 != 0) {
        record[4..8].fill(0);
        let sum = crc32c::crc32c(&record);
        record[4..8].copy_from_slice(&sum.to_le_bytes());
    }
    device.write(at, record.into()).unwrap();
}

steadfast_fuzz::target!(run);
