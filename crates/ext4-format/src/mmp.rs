//! The block of multiple-mount protection (`mmp`): where it is and what it may hold.

use zerocopy::FromBytes;

use crate::error::{Ext4Error, Result};
use crate::ondisk::{Layout, MMP_MAGIC, Mmp, Superblock};

/// Largest number of a user (`EXT4_MMP_SEQ_MAX`).
pub const USER_MAX: u32 = 0xe24d_4d4f;
/// Nobody has it (`EXT4_MMP_SEQ_CLEAN`).
pub const CLEAN: u32 = 0xff4d_4d50;
/// e2fsck has it (`EXT4_MMP_SEQ_FSCK`).
pub const FSCK: u32 = 0xe24d_4d50;
/// Where the block is.
///
/// # Errors
/// Corrupt: outside the file system.
pub fn place(superblock: &Superblock, layout: &Layout) -> Result<u64> {
    let block = superblock.mmp_block.get();
    if block <= layout.first_data_block || !layout.contains(block, 1) {
        let what = "the block of multiple-mount protection is outside the file system";
        return Err(Ext4Error::corrupt(what, format!("block {block}")));
    }
    Ok(block)
}

/// What the block with this number holds. A wrong checksum is an error unless `may_be_torn`.
///
/// # Errors
/// Corrupt: its bytes make no sense.
pub fn decode(bytes: &[u8], layout: &Layout, block: u64, may_be_torn: bool) -> Result<Mmp> {
    let corrupt = |what: &str| {
        let what = format!("{what} in the block of multiple-mount protection");
        Err(Ext4Error::corrupt(what, format!("block {block}")))
    };
    // A block has at least 1024 bytes.
    let Ok((mmp, _)) = Mmp::read_from_prefix(bytes) else { return corrupt("too few bytes") };
    if mmp.magic.get() != MMP_MAGIC {
        return corrupt("wrong magic number");
    }
    let seed = layout.checksums.seed().filter(|_| !may_be_torn);
    if seed.is_some_and(|seed| mmp.checksum_with(seed) != mmp.checksum.get()) {
        return corrupt("wrong checksum");
    }
    if !matches!(mmp.sequence.get(), 0..=USER_MAX | CLEAN | FSCK) {
        return corrupt("an unknown state (tune2fs -f -E clear_mmp makes it anew)");
    }
    Ok(mmp)
}
