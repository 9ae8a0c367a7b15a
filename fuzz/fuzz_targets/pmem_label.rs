//! The label area of an emulated range: two index blocks and the labels. The checksum of each is
//! made right if the input says so, which the fuzzer could not guess.
#![cfg_attr(feature = "libfuzzer", no_main)]

use std::io::{Seek, SeekFrom, Write};

use steadfast_block::BlockDevice;
use steadfast_devices::source::pmem::{LABEL_BYTES, Pmem, PmemOptions};
use steadfast_fuzz::fletcher64;
use steadfast_fuzz::input::InMemory;

const SIZE: u64 = 256 << 10;
/// Bytes of an index block, and of a label; where their checksums are.
const UNIT: usize = 256;
const INDEX_SUM: usize = 64;
const LABEL_SUM: usize = UNIT - 8;
const UNITS_MAX: usize = 16;

pub fn run(input: &[u8]) {
    let Some((how, rest)) = input.split_first() else { return };
    let mut area = rest[..rest.len().min(UNITS_MAX * UNIT)].to_vec();
    for (number, unit) in area.chunks_exact_mut(UNIT).enumerate() {
        if how >> number.min(7) & 1 == 0 {
            let at = if number < 2 { INDEX_SUM } else { LABEL_SUM };
            unit[at..at + 8].fill(0);
            let sum = fletcher64(unit);
            unit[at..at + 8].copy_from_slice(&sum.to_le_bytes());
        }
    }
    let file = InMemory::new(&[]);
    let mut handle = file.handle();
    handle.set_len(SIZE).expect("room in memory");
    handle.seek(SeekFrom::Start(SIZE - LABEL_BYTES)).expect("a file's offset");
    handle.write_all(&area).expect("room in memory");
    let Some(label) = Pmem::label_of(file.path()) else { return };
    assert!(label.bytes > 0 && label.bytes <= SIZE - LABEL_BYTES, "{label:?}");
    assert!(label.name.chars().count() <= 64);
    let options = PmemOptions { read_only: true, ..PmemOptions::default() };
    if let Ok(pmem) = Pmem::open(file.path(), &options) {
        assert_eq!(pmem.label(), Some(&label));
        assert!(pmem.info().size <= label.bytes);
        drop(pmem.read(0, 512));
    }
}

steadfast_fuzz::target!(run);
