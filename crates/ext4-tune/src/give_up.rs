//! An internal journal is given up by a transaction of its own: on memory, where what is written
//! without a log may tear.
//!
//! The log still holds that transaction when its blocks are free, and the superblock names the
//! journal until all is in its place (`mount/given_up.rs`). Of others that recover it: e2fsck
//! replays it and checks the file system, because the superblock that is in the log says that it
//! was not unmounted. Linux 6.18 replays it, does not mount for once ("Journal got removed"), and
//! mounts when it is asked again; where the journal's inode has gone home already it does not
//! mount until e2fsck has looked. It never goes on with a journal whose blocks are free.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_ext4::journal_plan::{Plan, plan_free};
use steadfast_ext4::mount::replay;
use steadfast_ext4_format::journal::{find_internal, forget_journal, read_journal_inode};
use steadfast_ext4_format::ondisk::{Layout, StateFlags, Superblock};
use steadfast_ext4_format::{Result, superblock};

use crate::bootstrap::commit_only;
use crate::named::demand_recovery;
use crate::prepare::{load, mount_options};

/// A transaction takes at most this part of a log; one that is larger is not tried.
const LOG_FRACTION: u32 = 4;

/// Gives the internal journal of a clean file system up; how many blocks are free then. `None`,
/// and nothing is changed, if the log is too small to hold what that changes.
pub(super) fn by_its_log(
    device: &Arc<dyn BlockDevice>,
    layout: &Layout,
    sb: &Superblock,
) -> Result<Option<u64>> {
    let log = find_internal(device, sb, layout)?.log;
    let Plan { mut images, blocks, .. } = plan_free(device, forget_journal)?;
    if images.len() as u64 > u64::from(log.blocks() / LOG_FRACTION) {
        return Ok(None);
    }
    let (place, offset) = layout.superblock_place();
    if let Some(image) = images.get_mut(&place) {
        let mut logged = Superblock::parse(&image[offset..])?;
        logged.state.set(logged.state.get() & !StateFlags::VALID.bits());
        logged.update_checksum();
        let mut bytes = image.to_vec();
        let len = size_of::<Superblock>();
        bytes[offset..offset + len].copy_from_slice(zerocopy::IntoBytes::as_bytes(&logged));
        *image = bytes.into();
    }
    let mut during = *sb;
    demand_recovery(&mut during);
    // By which the log is found when its inode is gone.
    during.set_journal_backup(&read_journal_inode(device, sb, layout)?);
    superblock::write(&**device, &mut during)?;
    commit_only(log, device, layout.features, images)?;
    replay(device, &mount_options(None))?;
    device.flush()?;
    debug_assert!(!load(device)?.0.has_journal(), "the log held it");
    Ok(Some(blocks))
}
