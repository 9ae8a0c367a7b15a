//! Tables whose bytes are anything: an error or a namespace, never a panic.

use proptest::prelude::*;

use super::*;
use crate::filter::btt::info::{PAGE, checksum_of};

/// Numbers that are near a border of something.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (0u32..64).prop_map(|bit| 1 << bit),
        (0u32..64).prop_map(|bit| (1u64 << bit).wrapping_sub(1)),
        (0u64..8192).prop_map(|pages| pages * 4096),
        0u64..10_000,
    ]
}

/// Uses whatever came of it.
fn use_it(memory: &Device) {
    drop(probe(&**memory));
    drop(check(&**memory));
    if let Ok(btt) = open(memory) {
        let info = btt.info();
        let size = u64::from(info.logical_block);
        assert!(info.size > 0 && info.size <= BYTES);
        for at in [0, size * 7, info.size - size] {
            if at < info.size {
                drop(btt.read(at, size));
                drop(btt.write(at, vec![3; size as usize].into()));
                drop(btt.discard(at, size));
            }
        }
        drop(btt.read(0, info.size));
    }
    drop(restore(memory, None));
    drop(check(&**memory));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The info block says anything, with a right checksum.
    #[test]
    fn info_blocks_of_anything(
        fields in prop::collection::vec((48usize..112, number(), any::<bool>()), 1..5),
        sector in prop_oneof![Just(512u32), Just(4096)],
    ) {
        let (memory, btt) = made(Options { sector, nfree: 2, ..Options::default() });
        btt.write(0, vec![5; 8192].into()).unwrap();
        drop(btt);
        let mut info: [u8; PAGE as usize] = load(&memory, 4096);
        for (at, value, long) in fields {
            // The fields of 4 bytes are before byte 80.
            let (at, len) = if at < 80 || !long { (at & !3, 4) } else { (at & !7, 8) };
            info[at..at + len].copy_from_slice(&value.to_le_bytes()[..len]);
        }
        let sum = checksum_of(&info);
        info[PAGE as usize - 8..].copy_from_slice(&sum.to_le_bytes());
        patch(&memory, 4096, &info);
        use_it(&memory);
    }

    /// The flog and the map say anything.
    #[test]
    fn tables_of_anything(
        flog in prop::collection::vec((0u64..128, number()), 0..4),
        map in prop::collection::vec((0u32..16, any::<u32>()), 0..8),
    ) {
        let (memory, btt) = made(Options { nfree: 2, ..Options::default() });
        btt.write(0, vec![5; 8 * 4096].into()).unwrap();
        drop(btt);
        let found = arena(&memory);
        for (at, value) in flog {
            let bytes = (value as u32).to_le_bytes();
            patch(&memory, found.at + found.info.layout.flog + (at & !3), &bytes);
        }
        for (sector, raw) in map {
            patch(&memory, found.at + found.info.layout.entry_at(sector), &raw.to_le_bytes());
        }
        use_it(&memory);
    }

    /// Any bytes anywhere.
    #[test]
    fn anything_anywhere(
        changes in prop::collection::vec((0u64..BYTES, any::<u8>()), 0..64),
        near in prop::collection::vec((0u64..PAGE, any::<u8>()), 0..8),
    ) {
        let (memory, btt) = made(Options { sector: 512, nfree: 3, ..Options::default() });
        btt.write(0, vec![5; 8192].into()).unwrap();
        drop(btt);
        for (at, byte) in changes {
            patch(&memory, at, &[byte]);
        }
        for (at, byte) in near {
            patch(&memory, PAGE + at, &[byte]);
        }
        use_it(&memory);
    }
}
