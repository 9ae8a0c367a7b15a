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
use crate::ondisk::{Incompat, Layout, SUPERBLOCK_LEN, SUPERBLOCK_OFFSET, Superblock};

/// Bytes of the smallest sector.
const SECTOR: u32 = 512;

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
pub(crate) struct FoundSuperblock {
    pub superblock: Superblock,
    /// Its checksum is right.
    pub whole: bool,
}

/// Reads the superblock to find the journal with; its checksum may be wrong.
pub(crate) fn find(device: &dyn BlockDevice) -> Result<FoundSuperblock> {
    if device.info().size < SUPERBLOCK_OFFSET + SUPERBLOCK_LEN as u64 {
        Superblock::parse(&[])?;
    }
    let bytes = read_bytes(device, SUPERBLOCK_OFFSET, SUPERBLOCK_LEN)?;
    let superblock = of_bytes(device, &bytes)?;
    Ok(FoundSuperblock { whole: superblock.checksum_ok(), superblock })
}

/// A superblock from its bytes on the device, made whole if it can be.
pub(super) fn of_bytes(device: &dyn BlockDevice, bytes: &[u8]) -> Result<Superblock> {
    let found = Superblock::parse_unchecked(bytes)?;
    Ok(if tears_sectors(device) { untorn(found) } else { found })
}

/// Whether a power cut may leave a sector of the device neither old nor new.
pub(super) fn tears_sectors(device: &dyn BlockDevice) -> bool {
    device.info().atomic_write < SECTOR
}

/// Of memory a power cut keeps any words of 8 bytes. The two writes that no log can hold (see
/// `mount/unmount.rs`) change one flag there, that there is a log to recover, and the word that
/// keeps the checksum; nothing else. If one of the two is there and the other is
/// not, the other value of the flag fits the checksum, and is as good: the log is empty.
fn untorn(found: Superblock) -> Superblock {
    if found.checksum_ok() {
        return found;
    }
    let mut other = found;
    let mut features = other.features();
    features.incompat.toggle(Incompat::NEEDS_RECOVERY);
    other.set_features(features);
    if other.checksum_ok() { other } else { found }
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
pub(crate) fn read(device: &dyn BlockDevice, overlay: &Overlay) -> Result<Superblock> {
    let found = find(device)?.superblock;
    let layout = Layout::new(&found, device.info().size)?;
    let (block, offset) = layout.superblock_place();
    match overlay.get(&FsBlock(block)) {
        Some(image) => Superblock::parse(&image[offset..]),
        None => Superblock::parse(found.as_bytes()),
    }
}

/// Writes the superblock to its place and makes it durable. Only when the log holds no other
/// image of its block. A power cut leaves the old superblock or the new one: only one sector is
/// written (see [`Superblock::seal`]). If something in the second changes too, that sector is
/// written after the first, with the checksum that goes with both.
pub(crate) fn write(device: &dyn BlockDevice, superblock: &mut Superblock) -> Result<()> {
    let at = SUPERBLOCK_OFFSET;
    let old = read_bytes(device, at, SUPERBLOCK_LEN)?;
    if let Ok(before) = of_bytes(device, &old)
        && before.checksum_ok()
    {
        let mut halfway = superblock.with_second_sector_of(&before);
        halfway.seal(&before);
        put(device, &old, &halfway)?;
        superblock.algorithm_usage = halfway.algorithm_usage;
        superblock.checksum = halfway.checksum;
        superblock.seal(&halfway);
        return put(device, halfway.as_bytes(), superblock);
    }
    superblock.update_checksum();
    put(device, &old, superblock)
}

/// Writes the sectors in which the superblock differs from `old`.
fn put(device: &dyn BlockDevice, old: &[u8], superblock: &Superblock) -> Result<()> {
    let new = superblock.as_bytes();
    let Some(first) = (0..SUPERBLOCK_LEN).find(|i| old[*i] != new[*i]) else {
        return Ok(device.flush()?);
    };
    let last = (first..SUPERBLOCK_LEN).rfind(|i| old[*i] != new[*i]).unwrap_or(first);
    let sector = u64::from(device.info().logical_block);
    let from = (SUPERBLOCK_OFFSET + first as u64) / sector * sector;
    let to = (SUPERBLOCK_OFFSET + last as u64 + 1).next_multiple_of(sector);
    let mut bytes = device.read(from, to - from)?.to_vec();
    for (i, byte) in new.iter().enumerate() {
        let place = SUPERBLOCK_OFFSET + i as u64;
        if (from..to).contains(&place) {
            bytes[(place - from) as usize] = *byte;
        }
    }
    device.write_fua(from, bytes.into())?;
    Ok(())
}
