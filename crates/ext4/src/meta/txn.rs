//! One operation: an overlay of changes under the metadata lock.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use steadfast_block::Completion;
use steadfast_ext4_format::ondisk::{GroupDesc, GroupNo, InodeNo, Superblock};
use steadfast_ext4_format::{RangeSet, Result};
use steadfast_journal::{FsBlock, Tid, Update};
use steadfast_runtime::MutexGuard;

use super::group_edits::{GroupEdit, GroupEdits};
use super::lock::MetaState;
use super::parts::Parts;
use super::read::Miss;
use super::volume::Volume;
use crate::planted::Bug;
use crate::state::{Inode, InodeEdit, NameEdit, Named, Notes, OrphanSet, SpaceEdit};

/// An operation on the metadata. See the module's text.
pub struct Txn<'v> {
    pub(crate) parts: &'v Parts,
    pub(crate) volume: &'v Volume,
    pub(crate) meta: MutexGuard<'v, MetaState>,
    blocks: BTreeMap<u64, Bytes>,
    /// Those of `blocks` that are data: not to be kept among the metadata.
    data: RangeSet,
    revokes: BTreeSet<u64>,
    pub(crate) inodes: BTreeMap<InodeNo, InodeEdit>,
    /// Inodes that were looked at, a few: they stay what they are while the lock is held.
    pub(crate) seen: RefCell<Vec<Arc<Inode>>>,
    pub(crate) groups: GroupEdits,
    pub(crate) superblock: Option<Box<Superblock>>,
    pub(crate) orphans: Option<OrphanSet>,
    pub(crate) space: SpaceEdit,
    /// The space that this transaction takes was promised when it was reserved: no quota is
    /// held against it any more.
    pub(crate) quota_promised: bool,
    pub(crate) xattr_notes: Notes,
    wait_for: Vec<Completion>,
    /// Names that come and go.
    pub(crate) names: Vec<NameEdit>,
    /// The names that came and went, if this can be recorded in a fast commit.
    pub(crate) recorded: Option<Vec<Named>>,
    /// It cannot, whoever has said so.
    pub(crate) ineligible: bool,
    /// A block that is not in memory ends the transaction.
    yields: bool,
    /// Blocks that planted bugs keep in memory only.
    left_out: BTreeSet<u64>,
}

impl<'v> Txn<'v> {
    pub(crate) fn new(parts: &'v Parts) -> Self {
        Txn {
            parts,
            volume: &parts.volume,
            meta: parts.lock_meta(),
            blocks: BTreeMap::new(),
            data: RangeSet::new(),
            revokes: BTreeSet::new(),
            inodes: BTreeMap::new(),
            seen: RefCell::default(),
            groups: GroupEdits::default(),
            superblock: None,
            orphans: None,
            space: SpaceEdit::default(),
            quota_promised: false,
            xattr_notes: Notes::new(),
            wait_for: Vec::new(),
            names: Vec::new(),
            recorded: None,
            ineligible: false,
            yields: false,
            left_out: BTreeSet::new(),
        }
    }

    /// Lets the transaction fail with `NotCached` where it would read under the metadata lock.
    pub(crate) fn yielding(self) -> Self {
        let yields = self.parts.meta.allows_retries();
        Txn { yields, ..self }
    }

    fn miss(&self, ahead: u32) -> Miss {
        if self.yields { Miss::Yield { ahead } } else { Miss::Wait }
    }

    /// The volume that is operated on.
    pub fn volume(&self) -> &'v Volume {
        self.volume
    }

    /// A block's contents as this transaction sees them. `check` is asked when the block comes
    /// from the device: its checksum, usually.
    pub fn read_checked(&self, block: u64, check: &dyn Fn(&[u8]) -> Result<()>) -> Result<Bytes> {
        self.read_ahead(block, 0, check)
    }

    /// As [`read_checked`](Self::read_checked); when the block must be read from the device, the
    /// next `ahead` ones are read with it if that can be.
    pub(crate) fn read_ahead(
        &self,
        block: u64,
        ahead: u32,
        check: &dyn Fn(&[u8]) -> Result<()>,
    ) -> Result<Bytes> {
        match self.blocks.get(&block) {
            Some(contents) => Ok(contents.clone()),
            None => self.read_below(block, check, self.miss(ahead)),
        }
    }

    fn read_below(
        &self,
        block: u64,
        check: &dyn Fn(&[u8]) -> Result<()>,
        miss: Miss,
    ) -> Result<Bytes> {
        self.meta.read(self.volume, &self.parts.log, block, check, miss)
    }

    /// A block's contents as this transaction sees them, unchecked.
    pub fn read(&self, block: u64) -> Result<Bytes> {
        self.read_checked(block, &|_| Ok(()))
    }

    /// Changes a block in place. The block must have been read with its check before, if it has
    /// one.
    pub(crate) fn modify<R>(
        &mut self,
        block: u64,
        change: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<R> {
        let contents = match self.blocks.remove(&block) {
            Some(ours) => ours,
            None => self.read_below(block, &|_| Ok(()), self.miss(0))?,
        };
        let mut contents = match contents.try_into_mut() {
            Ok(ours_alone) => ours_alone,
            Err(shared) => BytesMut::from(&shared[..]),
        };
        let result = change(&mut contents);
        self.revokes.remove(&block);
        self.blocks.insert(block, contents.freeze());
        Ok(result)
    }

    /// Gives a block new contents, whatever it held.
    pub fn create(&mut self, block: u64, contents: impl Into<Bytes>) {
        let contents = contents.into();
        debug_assert_eq!(contents.len() as u64, self.volume.block_size());
        self.revokes.remove(&block);
        self.blocks.insert(block, contents);
    }

    /// As [`create`](Self::create), for so many blocks of a file's data, each as `contents` says
    /// of its number in the run.
    pub(crate) fn create_data(&mut self, start: u64, blocks: u64, contents: impl Fn(u64) -> Bytes) {
        let end = start + blocks;
        if !self.revokes.is_empty() {
            self.revokes.retain(|block| !(start..end).contains(block));
        }
        let mut run: BTreeMap<u64, Bytes> =
            (start..end).map(|block| (block, contents(block - start))).collect();
        debug_assert!(run.values().all(|c| c.len() as u64 == self.volume.block_size()));
        self.blocks.append(&mut run);
        self.data.insert(start, end);
    }

    /// A block of metadata is no longer any: its older images must never be replayed over what
    /// comes there next.
    pub fn forget(&mut self, block: u64) {
        self.blocks.remove(&block);
        self.revokes.insert(block);
    }

    /// The transaction may not commit before this write has completed.
    pub fn wait_for(&mut self, write: Completion) {
        self.wait_for.push(write);
    }

    /// How many blocks the transaction changes so far: to stop in time.
    pub(crate) fn changed_blocks(&self) -> usize {
        self.blocks.len() + self.inodes.len()
    }

    /// How many blocks the transaction revokes so far.
    pub(crate) fn revoked_blocks(&self) -> usize {
        self.revokes.len()
    }

    /// A group's descriptor as this transaction sees it.
    pub(crate) fn group(&self, group: GroupNo) -> &GroupDesc {
        match self.groups.edited.get(&group) {
            Some(edit) => &edit.desc,
            None => &self.meta.groups[group.0 as usize],
        }
    }

    /// A group's descriptor, to be changed.
    pub(crate) fn group_mut(&mut self, group: GroupNo) -> &mut GroupEdit {
        let current = &self.meta.groups[group.0 as usize];
        self.groups.edited.entry(group).or_insert_with(|| GroupEdit {
            desc: *current,
            blocks_changed: false,
            inodes_changed: false,
        })
    }

    /// The superblock as this transaction sees it.
    pub fn superblock(&self) -> &Superblock {
        self.superblock.as_deref().unwrap_or(&self.meta.superblock)
    }

    /// The superblock, to be changed.
    pub(crate) fn superblock_mut(&mut self) -> &mut Superblock {
        self.superblock.get_or_insert_with(|| Box::new(self.meta.superblock))
    }

    /// Makes the changes real: one update for the journal, then everything in memory. Returns the
    /// transaction that has it. Nothing is durable before that one commits.
    ///
    /// # Errors
    /// If the journal has failed; then nothing has changed, and the volume is read-only.
    pub fn finish(mut self) -> Result<Tid> {
        if self.parts.quotas.is_on() {
            (self.parts.store_quotas)(&self.parts.quotas, &mut self)?;
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
            let changed = self.groups.edited.values().filter(|edit| edit.inodes_changed);
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
        for (group, edit) in std::mem::take(&mut self.groups.edited) {
            self.meta.groups[group.0 as usize] = edit.desc;
        }
        if let Some(superblock) = self.superblock.take() {
            self.meta.superblock = *superblock;
        }
        if let Some(orphans) = self.orphans.take() {
            self.meta.orphans = orphans;
        }
        self.meta.xattr_blocks.apply(std::mem::take(&mut self.xattr_notes));
        self.parts.names.change(std::mem::take(&mut self.names));
        let size_is_data = !self.volume.has(Bug::FdatasyncWithoutSize);
        for (_, edit) in std::mem::take(&mut self.inodes) {
            self.parts.quotas.owner_changes(&edit, &self.volume.layout);
            edit.publish(&self.parts.inodes, tid, size_is_data);
        }
    }

    fn store_groups(&mut self) -> Result<()> {
        let layout = &self.volume.layout;
        let mut edited = std::mem::take(&mut self.groups.edited);
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
            self.modify(block, |b| edit.desc.write_to(&mut b[offset..]))?;
        }
        self.groups.edited = edited;
        Ok(())
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
