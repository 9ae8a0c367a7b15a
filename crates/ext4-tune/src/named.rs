//! Which journal the superblock names.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_ext4_format::journal::forget_journal;
use steadfast_ext4_format::ondisk::{Compat, Incompat, Layout, Superblock};
use steadfast_ext4_format::{Result, superblock};
use uuid::Uuid;

/// Names an external journal.
pub(super) fn name_external(sb: &mut Superblock, uuid: Uuid, number: u32) {
    forget_journal(sb);
    let mut f = sb.features();
    f.compat.insert(Compat::HAS_JOURNAL);
    sb.set_features(f);
    sb.journal_uuid = *uuid.as_bytes();
    sb.journal_device.set(number);
}

/// Says that the log is to be replayed.
pub(super) fn demand_recovery(sb: &mut Superblock) {
    let mut f = sb.features();
    f.incompat.insert(Incompat::NEEDS_RECOVERY);
    sb.set_features(f);
}

/// Writes the superblock in one piece, durable on return, then brings the copies up to date: who
/// repairs the file system with one of them must find the same journal.
pub(super) fn put(
    device: &Arc<dyn BlockDevice>,
    layout: &Layout,
    sb: &mut Superblock,
) -> Result<()> {
    device.flush()?;
    superblock::write(&**device, sb)?;
    device.flush()?;
    put_copies(device, layout, sb)
}

fn put_copies(device: &Arc<dyn BlockDevice>, layout: &Layout, sb: &Superblock) -> Result<()> {
    let size = u64::from(layout.block_size);
    for group in layout.backup_groups() {
        let at = layout.group_start(group) * size;
        let block = device.read(at, size)?;
        let Ok(mut copy) = Superblock::parse_mended(&block) else { continue };
        if !copy.checksum_ok() {
            continue;
        }
        if copy.uuid != sb.uuid {
            continue;
        }
        let before = copy;
        let mut f = copy.features();
        f.compat.set(Compat::HAS_JOURNAL, sb.features().compat.contains(Compat::HAS_JOURNAL));
        copy.set_features(f);
        copy.journal_inode = sb.journal_inode;
        copy.journal_device = sb.journal_device;
        copy.journal_uuid = sb.journal_uuid;
        copy.journal_blocks = sb.journal_blocks;
        copy.journal_backup_type = sb.journal_backup_type;
        if copy == before {
            continue;
        }
        superblock::write_at(&**device, at, &mut copy)?;
    }
    Ok(device.flush()?)
}
