//! Nodes of an extent tree: one in an inode and one in a block.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steadfast_ext4::ondisk::{Extent, ExtentHeader, ExtentIndex, ExtentLeaf};
use zerocopy::FromBytes;

fuzz_target!(|input: &[u8]| {
    let expected_depth = input.first().and_then(|b| (*b < 6).then_some(u16::from(*b)));
    let node = input.get(1..).unwrap_or_default();
    let Ok(header) = ExtentHeader::parse(node, expected_depth, String::new) else { return };
    let count = usize::from(header.entries.get());
    let entries: Vec<_> = node[12..].chunks_exact(12).take(count).collect();
    assert_eq!(entries.len(), count, "an accepted header counts entries that are there");
    for entry in entries {
        if header.depth.get() == 0 {
            let leaf = ExtentLeaf::read_from_bytes(entry).unwrap();
            let extent = Extent::from(leaf);
            if extent.len > 0 {
                assert_eq!(ExtentLeaf::from(extent), leaf);
            }
        } else {
            assert!(ExtentIndex::read_from_bytes(entry).unwrap().block() < 1 << 48);
        }
    }
});
