//! What the superblock says of a mounted and of an unmounted file system.

use steadfast_ext4_format::ondisk::{Compat, Incompat, RoCompat, StateFlags, Superblock};
use steadfast_ext4_format::{Result, refused, superblock};
use steadfast_journal::Tid;

use crate::meta::MetaLog;
use crate::mounted::Ext4;

impl Ext4 {
    /// Writes into the superblock that the file system is in use.
    pub(super) fn mark_mounted(&self) -> Result<()> {
        let seconds = self.volume.clock.seconds();
        let journalled = matches!(self.parts.log, MetaLog::Journal(_));
        let journal_number = self.options.journal_number;
        if journalled {
            self.mark_recoverable()?;
        }
        self.rewrite_superblock(|sb| {
            sb.mount_count.set(sb.mount_count.get().saturating_add(1));
            sb.mount_time.set(seconds as u32);
            sb.mount_time_hi = (seconds >> 32) as u8;
            if journal_number != 0 && sb.has_external_journal() {
                sb.journal_device.set(journal_number);
            }
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

    /// Says that there is a log to recover before it gets its first transaction, as the kernel does
    /// (`ext4_setup_super`, fs/ext4/super.c): what holds at the end of a mount (see
    /// [`Ext4::mark_recovered`]) holds at its start.
    fn mark_recoverable(&self) -> Result<()> {
        let write = || {
            let mut meta = self.parts.lock_meta();
            let mut features = meta.superblock.features();
            if !features.incompat.contains(Incompat::NEEDS_RECOVERY) {
                features.incompat.insert(Incompat::NEEDS_RECOVERY);
                meta.superblock.set_features(features);
                superblock::write(&*self.volume.device, &mut meta.superblock)?;
            }
            Ok((meta.superblock, ()))
        };
        match &self.home {
            Some(home) => home.while_written(write),
            None => write().map(|(_, done)| done),
        }
    }

    /// Changes the superblock in its place, after the log holds it: a write that a power cut
    /// tears is made whole by recovery.
    fn rewrite_superblock(&self, change: impl FnOnce(&mut Superblock)) -> Result<()> {
        let write = |tid: Option<Tid>| {
            let mut meta = self.parts.lock_meta();
            if let Some(tid) = tid {
                meta.superblock.set_home_mark(tid);
            }
            superblock::write(&*self.volume.device, &mut meta.superblock)?;
            Ok((meta.superblock, ()))
        };
        match &self.home {
            // No checkpoint begins meanwhile, so this write is the only one.
            Some(home) => home.while_written(|| write(Some(self.log_superblock(change)?))),
            None => {
                self.log_superblock(change)?;
                write(None).map(|(_, done)| done)
            }
        }
    }

    /// Commits a changed superblock; returns the transaction.
    fn log_superblock(&self, change: impl FnOnce(&mut Superblock)) -> Result<Tid> {
        let seconds = self.volume.clock.seconds();
        let mut txn = self.parts.look();
        let sb = txn.superblock_mut();
        change(sb);
        sb.write_time.set(seconds as u32);
        sb.write_time_hi = (seconds >> 32) as u8;
        let tid = txn.finish()?;
        self.parts.log.commit(tid)?;
        Ok(tid)
    }

    /// Writes everything to its place (with data=transact: what the last transaction point holds,
    /// which is made here if the mask says so) and leaves a clean file system. Handles that are
    /// still open are of no use afterwards, nothing is held any more, and files without a name are
    /// deleted. The object can only be dropped then. What was shut down stays as a power cut would
    /// leave it.
    ///
    /// # Errors
    /// What could not be written; the file system then stays marked as needing recovery.
    pub fn unmount(&self) -> Result<()> {
        if matches!(self.parts.log, MetaLog::ReadOnly(_)) {
            return match &self.protection {
                Some(protection) => protection.release(),
                None => Ok(()),
            };
        }
        if self.volume.status.is_unmounted() {
            return refused("already unmounted");
        }
        if self.volume.status.is_down() {
            self.volume.status.set_unmounted();
            return Ok(());
        }
        self.end_holds();
        let transacted = self.stop_transacting();
        let written = self.pages.flush_all();
        self.pages.shutdown();
        let forced = self.volume.status.read_only_because().is_some();
        self.volume.status.set_unmounted();
        let orphans_left = self.parts.lock_meta().orphans.len() > 0;
        self.log_superblock(|sb| self.mark_clean(sb, forced, orphans_left))?;
        self.parts.log.close()?;
        self.mark_recovered()?;
        if let Some(protection) = &self.protection {
            protection.release()?;
        }
        Ok(transacted.and(written)?)
    }

    fn mark_clean(&self, sb: &mut Superblock, forced_read_only: bool, orphans_left: bool) {
        let space = *self.parts.allocator.counts();
        sb.set_free_blocks(space.free_blocks);
        sb.free_inodes.set(space.free_inodes as u32);
        let mut state = sb.state.get() | StateFlags::VALID.bits();
        if forced_read_only {
            state |= StateFlags::ERROR.bits();
        }
        sb.state.set(state);
        let mut features = sb.features();
        if !orphans_left {
            features.ro_compat.remove(RoCompat::ORPHAN_PRESENT);
        }
        sb.set_features(features);
    }

    /// Says that no recovery is needed, once the log is empty, as the kernel does
    /// (`ext4_put_super`, fs/ext4/super.c). A log with transactions beside a superblock that needs
    /// no recovery is damage for e2fsck -p, which then asks for a person. So the log cannot hold
    /// this one write; it is the kernel's, too.
    fn mark_recovered(&self) -> Result<()> {
        if !matches!(self.parts.log, MetaLog::Journal(_)) {
            return Ok(());
        }
        let mut meta = self.parts.lock_meta();
        let mut features = meta.superblock.features();
        features.incompat.remove(Incompat::NEEDS_RECOVERY);
        meta.superblock.set_features(features);
        meta.superblock.clear_home_mark();
        superblock::write(&*self.volume.device, &mut meta.superblock)
    }
}
