//! The superblock, read and written past the journal.
//!
//! It has more than one sector, and a power cut may leave one of them new and one old: then the
//! checksum is wrong, though every field is one of two that were right. What a mount needs to find
//! the journal never changes, so a superblock without its checksum is good enough to look there;
//! every superblock that is written to its place has been committed to the journal before, so
//! recovery makes it whole. Where less than a sector is kept whole, a superblock that no log can
//! hold is written in steps (see `ondisk/redo.rs`).

use steadfast_block::{BlockDevice, signatures};
use steadfast_journal::{FsBlock, Overlay};
use zerocopy::IntoBytes;

use crate::error::{Ext4Error, Result};
use crate::ondisk::{Layout, SUPERBLOCK_LEN, SUPERBLOCK_MAGIC, SUPERBLOCK_OFFSET, Superblock};

/// Bytes of the smallest sector.
const SECTOR: u32 = 512;

/// Reads whole sectors around the bytes `[at, at + len)`.
pub fn read_bytes(device: &dyn BlockDevice, at: u64, len: usize) -> Result<Vec<u8>> {
    let sector = u64::from(device.info().logical_block);
    let from = at / sector * sector;
    let to = (at + len as u64).next_multiple_of(sector);
    let bytes = device.read(from, to - from)?;
    let skip = (at - from) as usize;
    Ok(bytes[skip..skip + len].to_vec())
}

/// Where the magic number is in a superblock.
const MAGIC_AT: usize = std::mem::offset_of!(Superblock, magic);

/// A superblock as it was found.
pub struct FoundSuperblock {
    /// As it stands there, or as a change that was interrupted leaves it.
    pub superblock: Superblock,
    /// Its checksum is right.
    pub whole: bool,
}

/// Reads the superblock to find the journal with; its checksum may be wrong.
///
/// # Errors
/// Of the device. [`Ext4Error::NoFileSystem`], which says what is there instead;
/// [`Ext4Error::Corrupt`] if there is a file system whose superblock is overwritten.
pub fn find(device: &dyn BlockDevice) -> Result<FoundSuperblock> {
    let size = device.info().size;
    if size < SUPERBLOCK_OFFSET + SUPERBLOCK_LEN as u64 {
        let found = format!("{} has only {size} bytes", device.info().name);
        return Err(Ext4Error::NoFileSystem { found });
    }
    let bytes = read_bytes(device, SUPERBLOCK_OFFSET, SUPERBLOCK_LEN)?;
    of_bytes(&bytes).map_err(|e| match e {
        Ext4Error::NoFileSystem { .. } => instead(device, bytes, e),
        e => e,
    })
}

/// The places of the first copy of a superblock, by default: block, and bytes of it.
const COPIES: [(u64, u64); 3] = [(8193, 1024), (16384, 2048), (32768, 4096)];

/// What there is instead of a superblock's magic number: another thing's, or what is left of a
/// superblock. Else what is known already.
fn instead(device: &dyn BlockDevice, mut bytes: Vec<u8>, known: Ext4Error) -> Ext4Error {
    if let Some(what) = signatures::probe(device) {
        return Ext4Error::NoFileSystem { found: format!("it holds {what}") };
    }
    let damaged = |what: String| Ext4Error::corrupt(what, "superblock");
    let size = device.info().size;
    let magic = &mut bytes[MAGIC_AT..MAGIC_AT + 2];
    let was = u16::from_le_bytes([magic[0], magic[1]]);
    magic.copy_from_slice(&SUPERBLOCK_MAGIC.to_le_bytes());
    if Superblock::parse(&bytes).is_ok_and(|sb| Layout::new(&sb, size).is_ok()) {
        return damaged(format!("the magic number is {was:#06x}, but all else is right"));
    }
    for (block, block_size) in COPIES {
        let at = block * block_size;
        if at + SUPERBLOCK_LEN as u64 > size {
            continue;
        }
        let copy = read_bytes(device, at, SUPERBLOCK_LEN);
        if copy.is_ok_and(|copy| Superblock::parse(&copy).is_ok()) {
            return damaged(format!(
                "the magic number is {was:#06x}, but a copy of it is in block {block}: \
                 `e2fsck -b {block} -B {block_size}` restores it"
            ));
        }
    }
    match signatures::describe(device) {
        Some(what) => Ext4Error::NoFileSystem { found: format!("it holds {what}") },
        None => known,
    }
}

fn of_bytes(bytes: &[u8]) -> Result<FoundSuperblock> {
    let superblock = Superblock::parse_mended(bytes)?;
    Ok(FoundSuperblock { whole: superblock.checksum_ok(), superblock })
}

/// Whether a power cut may leave a sector of the device neither old nor new.
pub fn tears_sectors(device: &dyn BlockDevice) -> bool {
    device.info().atomic_write < SECTOR
}

/// Whether what the log would replay makes a torn superblock whole.
pub fn is_mended(torn: &Superblock, layout: &Layout, replayed: &Overlay) -> bool {
    let (block, offset) = layout.superblock_place();
    let image = replayed.get(&FsBlock(block)).map(|image| Superblock::parse(&image[offset..]));
    matches!(image, Some(Ok(sb)) if sb.uuid == torn.uuid
        && sb.blocks_count() == torn.blocks_count()
        && sb.journal_inode == torn.journal_inode)
}

/// Reads the superblock, from the overlay if it has been replayed there.
pub fn read(device: &dyn BlockDevice, overlay: &Overlay) -> Result<Superblock> {
    let found = find(device)?.superblock;
    let layout = Layout::new(&found, device.info().size)?;
    let (block, offset) = layout.superblock_place();
    match overlay.get(&FsBlock(block)) {
        Some(image) => Superblock::parse(&image[offset..]),
        None => Superblock::parse(found.as_bytes()),
    }
}

/// Writes the superblock to its place and makes it durable. Only when the log holds no other image
/// of its block. A power cut leaves the old superblock or the new one: only one sector is written
/// (see [`Superblock::make_atomic`]). If something in the second changes too, that sector is
/// written after the first, with the checksum that goes with both. Where a cut tears sectors, a
/// record of the change goes before it (`ondisk/redo.rs`).
pub fn write(device: &dyn BlockDevice, superblock: &mut Superblock) -> Result<()> {
    write_at(device, SUPERBLOCK_OFFSET, superblock)
}

/// As [`write()`], of the superblock or a copy of it at byte `at`.
pub fn write_at(device: &dyn BlockDevice, at: u64, superblock: &mut Superblock) -> Result<()> {
    let old = settle_at(device, at)?;
    let before = Superblock::parse(&old).ok();
    if let Some(before) = before.filter(|_| tears_sectors(device)) {
        superblock.update_checksum();
        if let Some(steps) = before.steps_to(superblock) {
            return put_steps(device, at, &before, &steps);
        }
    }
    if let Some(before) = before {
        let mut halfway = superblock.with_second_sector_of(&before);
        halfway.make_atomic(&before);
        put(device, at, &old, &halfway)?;
        superblock.algorithm_usage = halfway.algorithm_usage;
        superblock.checksum = halfway.checksum;
        superblock.make_atomic(&halfway);
        return put(device, at, halfway.as_bytes(), superblock);
    }
    superblock.update_checksum();
    put(device, at, &old, superblock)
}

/// As [`find`]; finishes a change of the superblock that a cut has interrupted. Before anybody
/// writes it otherwise, as recovery does.
pub fn settle(device: &dyn BlockDevice) -> Result<FoundSuperblock> {
    of_bytes(&settle_at(device, SUPERBLOCK_OFFSET)?)
}

/// Returns what is there then.
fn settle_at(device: &dyn BlockDevice, at: u64) -> Result<Vec<u8>> {
    let mut bytes = read_bytes(device, at, SUPERBLOCK_LEN)?;
    if let Ok(found) = Superblock::parse_unchecked(&bytes) {
        let steps = found.steps_to_mended();
        put_steps(device, at, &found, &steps)?;
        if let Some(last) = steps.last() {
            bytes.copy_from_slice(last.as_bytes());
        }
    }
    Ok(bytes)
}

fn put_steps(
    device: &dyn BlockDevice,
    at: u64,
    from: &Superblock,
    steps: &[Superblock],
) -> Result<()> {
    let mut before = from;
    for step in steps {
        put(device, at, before.as_bytes(), step)?;
        before = step;
    }
    Ok(())
}

/// Writes the sectors in which the superblock at byte `at` differs from `old`, durably.
fn put(device: &dyn BlockDevice, at: u64, old: &[u8], superblock: &Superblock) -> Result<()> {
    let new = superblock.as_bytes();
    let Some(first) = (0..SUPERBLOCK_LEN).find(|i| old[*i] != new[*i]) else {
        return Ok(device.flush()?);
    };
    let last = (first..SUPERBLOCK_LEN).rfind(|i| old[*i] != new[*i]).unwrap_or(first);
    let sector = u64::from(device.info().logical_block);
    let from = (at + first as u64) / sector * sector;
    let to = (at + last as u64 + 1).next_multiple_of(sector);
    let mut bytes = device.read(from, to - from)?.to_vec();
    for (i, byte) in new.iter().enumerate() {
        let place = at + i as u64;
        if (from..to).contains(&place) {
            bytes[(place - from) as usize] = *byte;
        }
    }
    device.write_fua(from, bytes.into())?;
    Ok(())
}
