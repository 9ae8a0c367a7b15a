//! A directory block, read as entries and as a node of the index.
#![cfg_attr(feature = "libfuzzer", no_main)]

use steadfast_ext4_format::ondisk::{
    DirEntries, DirentTail, DxCountLimit, DxRootInfo, NAME_MAX, dx_entries_offset,
};

pub fn run(input: &[u8]) {
    let block_size = 1024 << (input.first().unwrap_or(&0) % 7);
    let mut block = vec![0; block_size];
    let bytes = input.get(1..).unwrap_or_default();
    let len = bytes.len().min(block_size);
    block[..len].copy_from_slice(&bytes[..len]);
    let mut end = 0;
    for entry in DirEntries::new(&block) {
        let Ok(entry) = entry else { break };
        assert_eq!(entry.at, end, "entries follow each other");
        assert!(entry.name.len() <= NAME_MAX);
        end += entry.rec_len;
        assert!(end <= block_size);
    }
    let _ = DirentTail::find(&block);
    let _ = DxRootInfo::of_root(&block);
    if let Some(offset) = dx_entries_offset(&block) {
        let _ = DxCountLimit::read(&block, offset);
    }
}

steadfast_fuzz::target!(run);
