//! The superblock, read and written past the journal.

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

/// Reads the superblock, from the overlay if it has been replayed there.
pub(super) fn read(device: &dyn BlockDevice, overlay: &Overlay) -> Result<Superblock> {
    if device.info().size < SUPERBLOCK_OFFSET + SUPERBLOCK_LEN as u64 {
        return Superblock::parse(&[]);
    }
    let on_device = Superblock::parse(&read_bytes(device, SUPERBLOCK_OFFSET, SUPERBLOCK_LEN)?)?;
    if overlay.is_empty() {
        return Ok(on_device);
    }
    let layout = Layout::new(&on_device, device.info().size)?;
    let (block, offset) = layout.superblock_place();
    match overlay.get(&FsBlock(block)) {
        Some(image) => Superblock::parse(&image[offset..]),
        None => Ok(on_device),
    }
}

/// Writes the superblock and makes it durable. Only when the log holds no image of its block.
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
