//! A superblock, with a checksum that is right whatever the rest says, and the layout it implies.
#![cfg_attr(feature = "libfuzzer", no_main)]

use steadfast_ext4_format::ondisk::{Layout, SUPERBLOCK_LEN, SUPERBLOCK_MAGIC, Superblock};
use steadfast_ext4_format::ondisk::{check_supported_filesystem, check_supported_journal_device};

pub fn run(input: &[u8]) {
    let mut bytes = [0; SUPERBLOCK_LEN];
    let len = input.len().min(SUPERBLOCK_LEN);
    bytes[..len].copy_from_slice(&input[..len]);
    let _ = Superblock::parse(&bytes);
    bytes[56..58].copy_from_slice(&SUPERBLOCK_MAGIC.to_le_bytes());
    let Ok(mut sb) = Superblock::parse_unchecked(&bytes) else { return };
    sb.update_checksum();
    let _ = check_supported_journal_device(&sb);
    if check_supported_filesystem(&sb).is_err() {
        return;
    }
    for device_size in [1 << 20, 1 << 32, u64::MAX] {
        let Ok(layout) = Layout::new(&sb, device_size) else { continue };
        assert!(layout.size() <= device_size);
        for group in layout.all_groups().take(100) {
            let (block, offset) = layout.desc_place(group);
            assert!(layout.contains(block, 1) && offset < layout.block_size as usize);
            assert!(layout.contains(layout.group_start(group), 1));
            let inode = layout.inode_number(group, 0);
            let _ = layout.inode_place(inode);
        }
        let _ = layout.backup_groups().take(100).count();
    }
}

steadfast_fuzz::target!(run);
