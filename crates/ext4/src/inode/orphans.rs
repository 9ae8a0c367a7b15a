//! Orphans: inodes that a crash would leave half-done. Those without links are deleted at the next
//! mount, those with links are cut to their size.
//!
//! They are kept in slots of the orphan file if the file system has one and it has room, else in
//! a list that begins in the superblock (`s_last_orphan`) and goes on through the inodes'
//! deletion times. Kernel: fs/ext4/orphan.c.

use bytes::Bytes;
use steadfast_ext4_format::ondisk::{InodeNo, ORPHAN_BLOCK_MAGIC, OrphanBlockTail, orphan_slots};
use steadfast_ext4_format::{Ext4Error, Result};

use crate::meta::Txn;
use crate::planted::Bug;
use crate::state::{OrphanFile, OrphanLocation, Orphans};

/// The orphan after `no` in the list on disk.
///
/// # Errors
/// Corrupt: an inode that cannot be an orphan.
pub(crate) fn orphan_after(txn: &Txn<'_>, no: InodeNo) -> Result<InodeNo> {
    let raw = txn.load_raw_inode(no)?;
    Ok(InodeNo(raw.core().dtime.get()))
}

impl Orphans {
    /// Marks the inode, so that a crash from here on is cleaned up after. Once is enough.
    pub(crate) fn add(&self, txn: &mut Txn<'_>, no: InodeNo) -> Result<()> {
        if txn.is_orphan(no) || txn.volume.has(Bug::OrphanNotRecorded) {
            return Ok(());
        }
        let block_size = txn.volume.layout.block_size;
        if let Some(file) = &self.file
            && let Some(slot) = txn.free_orphan_slot(file.slots(block_size))
        {
            file.write_slot(txn, slot, no)?;
            txn.set_orphan_place(no, Some(OrphanLocation::Slot(slot)));
            return Ok(());
        }
        let head = InodeNo(txn.superblock().last_orphan.get());
        txn.modify_inode(no, |raw| raw.core_mut().dtime.set(head.0))?;
        txn.superblock_mut().last_orphan.set(no.0);
        // On a damaged disk it may be in the file, too.
        let after = txn.listed_orphan(head).map(|_| head);
        relink(txn, after, |(before, _)| *before = Some(no));
        txn.set_orphan_place(no, Some(OrphanLocation::Listed { before: None, after }));
        Ok(())
    }

    /// What was to be cut from the inode is cut. Without a name it stays an orphan: it is still to
    /// be deleted.
    pub(crate) fn whole(&self, txn: &mut Txn<'_>, no: InodeNo) -> Result<()> {
        if txn.raw_inode(no)?.links() == 0 {
            return Ok(());
        }
        self.remove(txn, no)
    }

    /// The inode is whole again, or gone.
    pub(crate) fn remove(&self, txn: &mut Txn<'_>, no: InodeNo) -> Result<()> {
        let (before, after) = match txn.orphan_place(no) {
            None => return Ok(()),
            Some(OrphanLocation::Slot(slot)) => {
                // OK to unwrap: a slot comes from the file.
                let file = self.file.as_ref().unwrap();
                file.write_slot(txn, slot, InodeNo::NONE)?;
                txn.set_orphan_place(no, None);
                return Ok(());
            }
            Some(OrphanLocation::Listed { before, after }) => (before, after),
        };
        let next = after.unwrap_or(InodeNo::NONE).0;
        match before {
            None => txn.superblock_mut().last_orphan.set(next),
            Some(before) => txn.modify_inode(before, |raw| raw.core_mut().dtime.set(next))?,
        }
        txn.modify_inode(no, |raw| raw.core_mut().dtime.set(0))?;
        relink(txn, before, |(_, to)| *to = after);
        relink(txn, after, |(to, _)| *to = before);
        txn.set_orphan_place(no, None);
        Ok(())
    }
}

/// Changes who is before and after an orphan of the list.
fn relink(
    txn: &mut Txn<'_>,
    no: Option<InodeNo>,
    change: impl FnOnce(&mut (Option<InodeNo>, Option<InodeNo>)),
) {
    if let Some(no) = no
        && let Some(mut between) = txn.listed_orphan(no)
    {
        change(&mut between);
        let (before, after) = between;
        txn.set_orphan_place(no, Some(OrphanLocation::Listed { before, after }));
    }
}

impl OrphanFile {
    /// A block of the orphan file, checked.
    pub(crate) fn read(&self, txn: &Txn<'_>, block: u64) -> Result<Bytes> {
        let checksums = &txn.volume.layout.checksums;
        txn.read_checked(block, &|contents| {
            let magic = OrphanBlockTail::of(contents).map(|t| t.magic.get());
            if magic == Some(ORPHAN_BLOCK_MAGIC)
                && checksums.verify_orphan_block(self.seed, block, contents)
            {
                return Ok(());
            }
            Err(Ext4Error::corrupt("wrong magic or checksum", format!("orphan file block {block}")))
        })
    }

    fn write_slot(&self, txn: &mut Txn<'_>, slot: u32, no: InodeNo) -> Result<()> {
        let per_block = orphan_slots(txn.volume.layout.block_size as usize) as u32;
        let block = self.blocks[(slot / per_block) as usize];
        let at = (slot % per_block) as usize * 4;
        self.read(txn, block)?;
        let checksums = txn.volume.layout.checksums;
        txn.modify(block, |contents| {
            contents[at..at + 4].copy_from_slice(&no.0.to_le_bytes());
            checksums.set_orphan_block(self.seed, block, contents);
        })
    }
}
