//! The superblock, read and written past the journal.
//!
//! It has more than one sector, and a power cut may leave one of them new and one old: then the
//! checksum is wrong, though every field is one of two that were right. What a mount needs to find
//! the journal never changes, so a superblock without its checksum is good enough to look there;
//! every superblock that is written to its place has been committed to the journal before, so
//! recovery makes it whole.

use steadfast_block::BlockDevice;
use steadfast_journal::{FsBlock, Overlay};
use zerocopy::IntoBytes;

use crate::error::Result;
use crate::ondisk::{Layout, SUPERBLOCK_LEN, SUPERBLOCK_OFFSET, Superblock};

/// Reads whole sectors around the bytes `[at, at + len)`.
pub(super) fn read_bytes(device: &dyn BlockDevice, at: u64, len: usize) -> Result<Vec<u8>> {
    let sector = u64::from(device.info().logical_block);
    let from = at / sector * sector;
    let to = (at + len as u64).next_multiple_of(sector);
    let bytes = device.read(from, to - from)?;
    let skip = (at - from) as usize;
    Ok(bytes[skip..skip + len].to_vec())
}

/// A superblock as it was found.
pub(super) struct FoundSuperblock {
    pub superblock: Superblock,
    /// Its checksum is right.
    pub whole: bool,
}

/// Reads the superblock to find the journal with; its checksum may be wrong.
pub(super) fn find(device: &dyn BlockDevice) -> Result<FoundSuperblock> {
    if device.info().size < SUPERBLOCK_OFFSET + SUPERBLOCK_LEN as u64 {
        Superblock::parse(&[])?;
    }
    let bytes = read_bytes(device, SUPERBLOCK_OFFSET, SUPERBLOCK_LEN)?;
    let superblock = Superblock::parse_unchecked(&bytes)?;
    Ok(FoundSuperblock { whole: superblock.checksum_ok(), superblock })
}

/// Whether what the log would replay makes a torn superblock whole.
pub(super) fn is_mended(torn: &Superblock, layout: &Layout, replayed: &Overlay) -> bool {
    let (block, offset) = layout.superblock_place();
    let image = replayed.get(&FsBlock(block)).map(|image| Superblock::parse(&image[offset..]));
    matches!(image, Some(Ok(sb)) if sb.uuid == torn.uuid
        && sb.blocks_count() == torn.blocks_count()
        && sb.journal_inode == torn.journal_inode)
}

/// Reads the superblock, from the overlay if it has been replayed there.
pub(super) fn read(device: &dyn BlockDevice, overlay: &Overlay) -> Result<Superblock> {
    let found = find(device)?.superblock;
    let layout = Layout::new(&found, device.info().size)?;
    let (block, offset) = layout.superblock_place();
    match overlay.get(&FsBlock(block)) {
        Some(image) => Superblock::parse(&image[offset..]),
        None => Superblock::parse(found.as_bytes()),
    }
}

/// Writes the superblock to its place and makes it durable. Only when the log holds no other
/// image of its block.
pub(super) fn write(device: &dyn BlockDevice, superblock: &mut Superblock) -> Result<()> {
    superblock.update_checksum();
    let sector = u64::from(device.info().logical_block);
    let from = SUPERBLOCK_OFFSET / sector * sector;
    let to = (SUPERBLOCK_OFFSET + SUPERBLOCK_LEN as u64).next_multiple_of(sector);
    let mut bytes = device.read(from, to - from)?.to_vec();
    let skip = (SUPERBLOCK_OFFSET - from) as usize;
    bytes[skip..skip + SUPERBLOCK_LEN].copy_from_slice(superblock.as_bytes());
    device.write_fua(from, bytes.into())?;
    Ok(())
}
