//! Recovery of a log whose transaction takes the journal away from the file system.
//!
//! Where a power cut keeps single words, a file system gives its internal journal up by a
//! transaction of that journal itself (`tune/give_up.rs`): the blocks and the inode are free, the
//! superblock names no journal. The superblock goes home last and by its record
//! (`ondisk/redo.rs`), so until then every recovery finds the log and does the same again: by the
//! journal's inode, or, when that is gone already, by the superblock's copy of it. The log is
//! not marked clean: its blocks are free by then, and nobody looks for a log there.

use steadfast_block::BlockDevice;
use steadfast_ext4_format::ondisk::{Compat, Layout, Superblock};
use steadfast_ext4_format::{Result, superblock};
use steadfast_journal::{FsBlock, Overlay, Recovery, RecoveryReport};

/// The superblock that is to be replayed, if it gives up the journal that `home` names.
fn without_journal(home: &Superblock, layout: &Layout, replayed: &Overlay) -> Option<Superblock> {
    let (block, offset) = layout.superblock_place();
    let image = replayed.get(&FsBlock(block))?;
    let new = Superblock::parse(image.get(offset..)?).ok()?;
    let names = |sb: &Superblock| sb.features().compat.contains(Compat::HAS_JOURNAL);
    (names(home) && !names(&new) && new.uuid == home.uuid).then_some(new)
}

/// Carries out what gives the journal up, if that is what the log holds; the recovery back if not.
/// `home` is the superblock in its place.
pub(super) fn finish(
    device: &dyn BlockDevice,
    home: &Superblock,
    layout: &Layout,
    recovery: Recovery,
) -> Result<std::result::Result<RecoveryReport, Recovery>> {
    let Some(mut new) = without_journal(home, layout, &recovery.overlay) else {
        return Ok(Err(recovery));
    };
    let (superblock_at, _) = layout.superblock_place();
    let size = u64::from(layout.block_size);
    for (block, image) in &recovery.overlay {
        if block.0 != superblock_at && block.0 < layout.blocks_count {
            device.write(block.0 * size, image.clone().into())?;
        }
    }
    device.flush()?;
    // The image is of a file system that was not unmounted: for those who write it home first.
    new.state = home.state;
    superblock::write(device, &mut new)?;
    Ok(Ok(recovery.report))
}
