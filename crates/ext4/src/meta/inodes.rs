//! Inodes in a transaction.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use steadfast_ext4_format::ondisk::{
    FIRST_INODE_REV0, GOOD_OLD_INODE_SIZE, InodeLocation, InodeNo, RawInode, RoCompat,
};
use steadfast_ext4_format::{Ext4Error, Result};
use steadfast_journal::Tid;
use steadfast_vfs::{FileType, FsError, Timestamp};

use super::txn::Txn;
use crate::planted::Bug;
use crate::state::{Inode, InodeEdit, Life, OrphanLocation};

/// Longest file that all implementations of ext2 can read.
const SMALL_FILE_MAX: u64 = 0x7fff_ffff;

/// Inodes that a transaction remembers to have looked at: most operations are about two or three.
const SEEN_MAX: usize = 4;

impl Txn<'_> {
    pub(crate) fn inode_block(&self, no: InodeNo) -> Result<(u64, InodeLocation)> {
        let place = self.volume.layout.inode_place(no)?;
        let table = self.group(place.group).inode_table();
        Ok((table + u64::from(place.table_block), place))
    }

    /// The inode in memory; reads it if it is not there.
    ///
    /// # Errors
    /// Not found: not in use. Corrupt: no such number, a wrong checksum, no valid type.
    pub fn inode(&self, no: InodeNo) -> Result<Arc<Inode>> {
        if let Some(edit) = self.inodes.get(&no) {
            return Ok(Arc::clone(&edit.inode));
        }
        if let Some(seen) = self.seen.borrow().iter().find(|inode| inode.no == no) {
            return Ok(Arc::clone(seen));
        }
        if let Some(inode) = self.parts.inodes.get(no) {
            self.note_seen(&inode);
            return Ok(inode);
        }
        let raw = self.load_inode(no)?;
        // It may have been changed by a transaction that has not committed yet: fsync must not
        // take it for durable (the kernel's ext4_iget does the same).
        // Nor its data, which somebody may have written before it left the memory; and somebody may
        // know its times from then.
        let outside = self.parts.outside.load(Ordering::SeqCst);
        let mut tid = self.parts.log.running_tid();
        if self.volume.has(Bug::InodeReadAnewCountsAsCommitted) {
            tid = Tid(tid.0.wrapping_sub(1));
        }
        let inode = Arc::new(Inode::new(no, raw, tid, outside));
        inode.state().times_seen = true;
        self.parts.inodes.insert(Arc::clone(&inode));
        self.note_seen(&inode);
        Ok(inode)
    }

    fn note_seen(&self, inode: &Arc<Inode>) {
        let mut seen = self.seen.borrow_mut();
        if seen.len() < SEEN_MAX {
            seen.push(Arc::clone(inode));
        }
    }

    /// The inode's bytes in its table, checksum verified.
    pub(crate) fn load_raw_inode(&self, no: InodeNo) -> Result<RawInode> {
        let layout = &self.volume.layout;
        let (block, place) = self.inode_block(no)?;
        let table = self.read(block)?;
        let size = usize::from(layout.inode_size);
        let raw = RawInode::from_bytes(&table[place.offset..place.offset + size]);
        if !layout.checksums.verify_inode(no, &raw) {
            return Err(Ext4Error::corrupt("wrong checksum", format!("inode {no}")));
        }
        Ok(raw)
    }

    fn load_inode(&self, no: InodeNo) -> Result<RawInode> {
        let layout = &self.volume.layout;
        let raw = self.load_raw_inode(no)?;
        let bad = |what: &str| Ext4Error::corrupt(what, format!("inode {no}"));
        let deleted = raw.links() == 0 && !self.is_orphan(no);
        if raw.is_blank() || (deleted && raw.core().dtime.get() != 0) {
            return Err(FsError::NotFound.into());
        }
        let Some(kind) = raw.file_type() else { return Err(bad("no valid file type")) };
        if raw.size() > layout.max_file_size()
            || (kind == FileType::Directory
                && !raw.is_inline()
                && raw.size() % self.volume.block_size() != 0)
        {
            return Err(bad("impossible size"));
        }
        Ok(raw)
    }

    /// Looks at the inode's fields as this transaction sees them.
    pub(crate) fn look_at<T>(&self, no: InodeNo, look: impl FnOnce(&RawInode) -> T) -> Result<T> {
        if let Some(edit) = self.inodes.get(&no) {
            return Ok(look(&edit.raw));
        }
        if let Some(seen) = self.seen.borrow().iter().find(|inode| inode.no == no) {
            return Ok(look(&seen.state().raw));
        }
        Ok(look(&self.inode(no)?.state().raw))
    }

    /// A copy of the inode's fields as this transaction sees them.
    pub fn raw_inode(&self, no: InodeNo) -> Result<RawInode> {
        if let Some(edit) = self.inodes.get(&no) {
            return Ok(edit.raw.clone());
        }
        Ok(self.inode(no)?.state().raw.clone())
    }

    /// The fields of an inode that the file system has for itself, and that its superblock names or
    /// the format does: that it is not in use is damage.
    pub(crate) fn own_inode(&self, no: InodeNo, what: &str) -> Result<RawInode> {
        match self.raw_inode(no) {
            Err(Ext4Error::Fs(FsError::NotFound)) => {
                let what = format!("the {what} is not in use: let e2fsck -f repair this");
                Err(Ext4Error::corrupt(what, format!("inode {no}")))
            }
            Err(Ext4Error::Corrupt { what: why, place }) => {
                let what = format!("the {what} has {why}: let e2fsck -f repair this");
                Err(Ext4Error::corrupt(what, place))
            }
            other => other,
        }
    }

    pub(crate) fn edit_inode(&mut self, no: InodeNo) -> Result<&mut InodeEdit> {
        if !self.inodes.contains_key(&no) {
            let inode = self.inode(no)?;
            self.inodes.insert(no, InodeEdit::new(inode, Life::GoesOn));
        }
        // OK to unwrap: just inserted.
        Ok(self.inodes.get_mut(&no).unwrap())
    }

    /// Changes the inode's fields.
    pub fn modify_inode<R>(
        &mut self,
        no: InodeNo,
        change: impl FnOnce(&mut RawInode) -> R,
    ) -> Result<R> {
        Ok(change(&mut self.edit_inode(no)?.raw))
    }

    /// The time for a change of an inode that is made now.
    pub(crate) fn time_of_change(&self, no: InodeNo) -> Result<Timestamp> {
        let seen = self.inode(no)?.state().times_seen;
        Ok(self.volume.stamps.for_change(self.look_at(no, RawInode::ctime)?, seen))
    }

    /// Sets mtime and ctime, or only ctime, to the time of a change made now.
    pub fn touch(&mut self, no: InodeNo, contents: bool) -> Result<()> {
        let now = self.time_of_change(no)?;
        self.modify_inode(no, |raw| {
            raw.set_ctime(now);
            if contents {
                raw.set_mtime(now);
            }
        })
    }

    /// The superblock says that there is a file of 2 GiB or more (the `large_file` feature).
    fn mark_large_file(&mut self) {
        let mut features = self.superblock().features();
        if !features.ro_compat.contains(RoCompat::LARGE_FILE) {
            features.ro_compat.insert(RoCompat::LARGE_FILE);
            let superblock = self.superblock_mut();
            superblock.set_features(features);
            if superblock.revision.get() == 0 {
                // Features begin with revision 1 (kernel: ext4_update_dynamic_rev).
                superblock.revision.set(1);
                superblock.first_inode.set(FIRST_INODE_REV0);
                superblock.inode_size.set(GOOD_OLD_INODE_SIZE as u16);
            }
        }
    }

    /// Puts the changed inodes into the blocks of their tables.
    pub(crate) fn store_inodes(&mut self) -> Result<()> {
        let mut edits = std::mem::take(&mut self.inodes);
        if edits.values().any(|e| e.raw.size() > SMALL_FILE_MAX) {
            self.mark_large_file();
        }
        for (no, edit) in &mut edits {
            self.volume.layout.checksums.set_inode(*no, &mut edit.raw);
            let (block, place) = self.inode_block(*no)?;
            self.modify(block, |table| {
                let bytes = edit.raw.as_bytes();
                table[place.offset..place.offset + bytes.len()].copy_from_slice(bytes);
            })?;
        }
        self.inodes = edits;
        Ok(())
    }

    /// Where an orphan is written, as this transaction sees it.
    pub(crate) fn orphan_place(&self, no: InodeNo) -> Option<OrphanLocation> {
        let edited = self.orphan_edit.as_ref().and_then(|edit| edit.get(&no).copied());
        edited.unwrap_or_else(|| self.meta.orphans.place(no))
    }

    pub(crate) fn is_orphan(&self, no: InodeNo) -> bool {
        self.orphan_place(no).is_some()
    }

    /// Who is before and after an orphan, if it is one of the list.
    pub(crate) fn listed_orphan(&self, no: InodeNo) -> Option<(Option<InodeNo>, Option<InodeNo>)> {
        match self.orphan_place(no) {
            Some(OrphanLocation::Listed { before, after }) => Some((before, after)),
            _ => None,
        }
    }

    /// Changes where an orphan is written; `None`: it is one no more.
    pub(crate) fn set_orphan_place(&mut self, no: InodeNo, place: Option<OrphanLocation>) {
        self.orphan_edit.get_or_insert_default().insert(no, place);
    }

    pub(crate) fn free_orphan_slot(&self, slots: u32) -> Option<u32> {
        self.meta.orphans.free_slot(slots, self.orphan_edit.as_ref())
    }
}
