//! What the superblock says of a mounted and of an unmounted file system.

use super::superblock;
use crate::error::{Ext4Error, Result};
use crate::fs::Ext4;
use crate::meta::MetaLog;
use crate::ondisk::{Compat, Incompat, RoCompat, StateFlags, Superblock};

impl Ext4 {
    /// Writes into the superblock that the file system is in use.
    pub(super) fn mark_mounted(&self) -> Result<()> {
        let seconds = self.volume.clock.seconds();
        let journalled = matches!(self.volume.log, MetaLog::Journal(_));
        self.rewrite_superblock(|sb| {
            sb.mount_count.set(sb.mount_count.get().saturating_add(1));
            sb.mount_time.set(seconds as u32);
            sb.mount_time_hi = (seconds >> 32) as u8;
            let mut features = sb.features();
            if journalled {
                features.incompat.insert(Incompat::NEEDS_RECOVERY);
            } else {
                sb.state.set(sb.state.get() & !StateFlags::VALID.bits());
            }
            if features.compat.contains(Compat::ORPHAN_FILE) {
                features.ro_compat.insert(RoCompat::ORPHAN_PRESENT);
            }
            sb.set_features(features);
        })
    }

    fn rewrite_superblock(&self, change: impl FnOnce(&mut Superblock)) -> Result<()> {
        let mut meta = self.volume.lock_meta();
        let mut sb = meta.superblock;
        change(&mut sb);
        let seconds = self.volume.clock.seconds();
        sb.write_time.set(seconds as u32);
        sb.write_time_hi = (seconds >> 32) as u8;
        superblock::write(&*self.volume.device, &mut sb)?;
        meta.superblock = sb;
        let (block, _) = self.volume.layout.superblock_place();
        meta.cache.borrow_mut().remove(block);
        Ok(())
    }

    /// Writes everything to its place and leaves a clean file system. Handles that are still
    /// open are of no use afterwards; a file that is open without a name is left to the next
    /// mount, as an orphan. The object can only be dropped then.
    ///
    /// # Errors
    /// What could not be written; the file system then stays marked as needing recovery.
    pub fn unmount(&self) -> Result<()> {
        if self.options.read_only {
            return Ok(());
        }
        if self.volume.status.is_unmounted() {
            return Err(Ext4Error::Refused { what: "already unmounted".into() });
        }
        let written = self.pages.flush_all();
        self.pages.shutdown();
        let log = &self.volume.log;
        let closed = match log {
            MetaLog::Journal(journal) => journal.close().map_err(Ext4Error::from),
            MetaLog::Direct(_) | MetaLog::ReadOnly(_) => log.commit(log.running_tid()),
        };
        let forced = self.volume.status.read_only_because();
        self.volume.status.set_unmounted();
        closed?;
        let space = *self.volume.space();
        let orphans_left = !self.volume.lock_meta().orphans.all().is_empty();
        self.rewrite_superblock(|sb| {
            sb.set_free_blocks(space.free_blocks);
            sb.free_inodes.set(space.free_inodes as u32);
            let mut state = sb.state.get() | StateFlags::VALID.bits();
            if forced.is_some() {
                state |= StateFlags::ERROR.bits();
            }
            sb.state.set(state);
            let mut features = sb.features();
            features.incompat.remove(Incompat::NEEDS_RECOVERY);
            if !orphans_left {
                features.ro_compat.remove(RoCompat::ORPHAN_PRESENT);
            }
            sb.set_features(features);
        })?;
        Ok(written?)
    }
}
