//! Finishing a transaction: the update for the journal, and what each part learns of it.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use steadfast_ext4_format::ondisk::{GroupDesc, GroupNo};
use steadfast_ext4_format::{RangeSet, Result};
use steadfast_journal::{FsBlock, Tid, Update};

use super::txn::Txn;
use crate::planted::Bug;

impl Txn<'_> {
    /// Makes the changes real: one update for the journal, then everything in memory. Returns the
    /// transaction that has it. Nothing is durable before that one commits.
    ///
    /// # Errors
    /// If the journal has failed; then nothing has changed, and the volume is read-only.
    pub fn finish(mut self) -> Result<Tid> {
        self.finish_held()
    }

    /// As [`finish`](Self::finish), and nobody else comes before the caller has dropped it.
    pub(crate) fn finish_held(&mut self) -> Result<Tid> {
        if self.parts.quotas.is_on() {
            (self.parts.store_quotas)(&self.parts.quotas, self)?;
        }
        self.store_inodes()?;
        self.store_groups()?;
        self.store_superblock()?;
        if self.blocks.is_empty() && self.revokes.is_empty() && self.space.freed.is_empty() {
            self.parts.allocator.counts().settled_blocks += self.space.settles;
            return Ok(self.parts.log.running_tid());
        }
        let busy = match self.volume.has(Bug::FreedBlockReused) {
            true => RangeSet::new(),
            false => self.parts.allocator.busy_until_commit(&self.space),
        };
        let (update, images) = self.take_update(&busy);
        let recorded = self.take_recorded(!update.revokes.is_empty());
        let revoked = update.revokes.clone();
        let tid = self.parts.log.submit(update).inspect_err(|_| {
            // Sets the reason if the log is no more.
            let _ = self.parts.check_writable();
        })?;
        if let Some(track) = &self.parts.fast {
            let forgotten = recorded.is_none() && self.volume.has(Bug::FastIneligibleForgotten);
            if !forgotten {
                track.note(tid, recorded);
            }
        }
        self.parts.allocator.count(&mut self.meta.alloc, &self.space, &busy);
        self.publish(images, &revoked, tid);
        Ok(tid)
    }

    /// The journal's update, and all images that are the newest once it is submitted.
    fn take_update(&mut self, busy: &RangeSet) -> (Update, Vec<(FsBlock, Bytes)>) {
        let mut update = Update {
            writes: Vec::new(),
            revokes: std::mem::take(&mut self.revokes).into_iter().map(FsBlock).collect(),
            wait_for: std::mem::take(&mut self.wait_for),
            on_commit: Vec::new(),
        };
        if !busy.is_empty() {
            update.on_commit.push(self.parts.allocator.on_commit(busy));
        }
        let images: Vec<(FsBlock, Bytes)> =
            std::mem::take(&mut self.blocks).into_iter().map(|(b, i)| (FsBlock(b), i)).collect();
        update.writes.clone_from(&images);
        let unlogged = self.unlogged();
        if !unlogged.is_empty() {
            update.writes.retain(|(block, _)| !unlogged.contains(&block.0));
        }
        (update, images)
    }

    /// Hands the journal what the transaction has changed so far, but for the blocks of `later`,
    /// and lets others go on: what [`Bug::EntryBeforeInode`] does.
    pub(crate) fn submit_early(&self, later: &BTreeSet<u64>) -> Result<()> {
        let early = self.blocks.iter().filter(|(block, _)| !later.contains(block));
        let writes = early.map(|(block, image)| (FsBlock(*block), image.clone())).collect();
        self.parts.log.submit(Update { writes, ..Update::default() })?;
        steadfast_runtime::sleep(Duration::from_micros(100));
        Ok(())
    }

    /// What a planted bug leaves out of the transaction, and has in memory only.
    fn unlogged(&self) -> BTreeSet<u64> {
        let mut left_out = self.left_out.clone();
        if self.volume.has(Bug::InodeBitmapNotLogged) {
            let changed = self.groups.values().filter(|edit| edit.inodes_changed);
            left_out.extend(changed.map(|edit| edit.desc.inode_bitmap()));
        }
        left_out
    }

    /// This block is left out of the transaction, if the bug is planted.
    pub(crate) fn leave_out(&mut self, block: u64, bug: Bug) {
        if self.volume.has(bug) {
            self.left_out.insert(block);
        }
    }

    /// The blocks that the transaction has changed so far.
    pub(crate) fn block_numbers(&self) -> BTreeSet<u64> {
        self.blocks.keys().copied().collect()
    }

    fn publish(&mut self, images: Vec<(FsBlock, Bytes)>, revoked: &[FsBlock], tid: Tid) {
        if !self.meta.fetches.is_empty() {
            let fetches = &mut self.meta.fetches;
            images
                .iter()
                .map(|(block, _)| block)
                .chain(revoked)
                .for_each(|block| fetches.changed(block.0));
        }
        {
            let mut cache = self.meta.cache.borrow_mut();
            for (FsBlock(block), contents) in images {
                if self.data.contains(block) {
                    cache.remove(block);
                } else {
                    cache.insert(block, contents, true);
                }
            }
            for block in revoked {
                cache.remove(block.0);
            }
        }
        for (group, edit) in std::mem::take(&mut self.groups) {
            self.meta.groups[group.0 as usize] = edit.desc;
        }
        if let Some(superblock) = self.superblock.take() {
            self.meta.superblock = *superblock;
        }
        if let Some(orphans) = self.orphan_edit.take() {
            self.meta.orphans.apply(orphans);
        }
        self.meta.xattr_blocks.apply(std::mem::take(&mut self.xattr_notes));
        self.parts.names.change(std::mem::take(&mut self.name_edits));
        let size_is_data = !self.volume.has(Bug::FdatasyncWithoutSize);
        for (_, edit) in std::mem::take(&mut self.inodes) {
            self.parts.quotas.owner_changes(&edit, &self.volume.layout);
            edit.publish(&self.parts.inodes, tid, size_is_data);
        }
    }

    fn store_groups(&mut self) -> Result<()> {
        let layout = &self.volume.layout;
        let mut edited = std::mem::take(&mut self.groups);
        for (group, edit) in &mut edited {
            if edit.blocks_changed {
                let bitmap = self.read(edit.desc.block_bitmap())?;
                let bits = layout.clusters_per_group();
                layout.checksums.set_block_bitmap(&bitmap, bits, &mut edit.desc);
            }
            if edit.inodes_changed {
                let bitmap = self.read(edit.desc.inode_bitmap())?;
                let bits = layout.inodes_per_group;
                layout.checksums.set_inode_bitmap(&bitmap, bits, &mut edit.desc);
            }
            layout.checksums.set_group_desc(*group, &mut edit.desc);
            let (block, offset) = layout.desc_place(*group);
            if !self.in_memory(block)
                && let Some(image) = self.descriptors_beside(*group)
            {
                self.create(block, image);
            }
            self.modify(block, |b| edit.desc.write_to(&mut b[offset..]))?;
        }
        self.groups = edited;
        Ok(())
    }

    /// The block of descriptors that a group's is in, of those in memory; `None`: a part of it is
    /// not there.
    fn descriptors_beside(&self, group: GroupNo) -> Option<Vec<u8>> {
        let layout = &self.volume.layout;
        let per_block = layout.descs_per_block();
        let first = (group.0 / per_block * per_block) as usize;
        let all = self.meta.groups.get(first..first + per_block as usize)?;
        let image: Vec<u8> = all.iter().flat_map(GroupDesc::as_bytes).copied().collect();
        // The ends of longer descriptors are not in memory.
        (image.len() == layout.block_size as usize).then_some(image)
    }

    fn store_superblock(&mut self) -> Result<()> {
        let Some(mut superblock) = self.superblock.take() else { return Ok(()) };
        superblock.make_atomic(&self.meta.superblock);
        let (block, offset) = self.volume.layout.superblock_place();
        self.modify(block, |b| {
            let bytes = zerocopy::IntoBytes::as_bytes(&*superblock);
            b[offset..offset + bytes.len()].copy_from_slice(bytes);
        })?;
        self.superblock = Some(superblock);
        Ok(())
    }
}
