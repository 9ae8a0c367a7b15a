//! The info block of an fsdax namespace, in ranges of several lengths. Its checksum is made right,
//! which the fuzzer could not guess.
#![cfg_attr(feature = "libfuzzer", no_main)]

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_devices::filter::fsdax;
use steadfast_devices::source::Ram;
use steadfast_fuzz::fletcher64;

const INFO_AT: u64 = 4096;
const INFO_BYTES: usize = 4096;
const SUM_AT: usize = INFO_BYTES - 8;
/// Lengths of ranges, and bytes behind them that are a label's.
const SIZES: [u64; 4] = [12 << 10, 4 << 20, (128 << 20) - (128 << 10), 1 << 40];
const BEHIND: [u64; 3] = [0, 128 << 10, u64::MAX];

pub fn run(input: &[u8]) {
    let Some((how, rest)) = input.split_first() else { return };
    let mut info = vec![0; INFO_BYTES];
    let len = rest.len().min(SUM_AT);
    info[..len].copy_from_slice(&rest[..len]);
    let sum = fletcher64(&info);
    info[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
    let size = SIZES[usize::from(how % 4)];
    let behind = BEHIND[usize::from(how / 4 % 3)];
    let device: Arc<dyn BlockDevice> = Arc::new(Ram::new("pmem0", size));
    device.write(INFO_AT, info.into()).expect("it is inside");
    drop(fsdax::probe(&*device));
    let Ok(namespace) = fsdax::open(&device, behind) else { return };
    let found = namespace.namespace();
    assert_eq!(namespace.info().size, found.bytes);
    assert!(found.bytes > 0 && found.start + found.bytes <= size, "{found:?}");
    let sector = u64::from(namespace.info().logical_block);
    for at in [0, found.bytes - sector] {
        namespace.write(at, vec![1; sector as usize].into()).expect("it is inside");
        assert_eq!(namespace.read(at, sector).expect("it is inside")[0], 1);
    }
    let info = device.read(INFO_AT, 512).expect("it is inside");
    assert_eq!(info[..16], rest[..16], "the data is not before its place");
}

steadfast_fuzz::target!(run);
