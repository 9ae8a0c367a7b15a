//! One operation: an overlay of changes under the metadata lock.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use steadfast_block::Completion;
use steadfast_ext4_format::ondisk::{GroupDesc, GroupNo, InodeNo, Superblock};
use steadfast_ext4_format::{RangeSet, Result};
use steadfast_journal::Tid;
use steadfast_runtime::MutexGuard;

use super::lock::MetaState;
use super::parts::Parts;
use super::read::Miss;
use super::volume::Volume;
use crate::state::{
    Allocator, Holds, Inode, InodeEdit, NameCache, NameEdit, NameRecord, Notes, OrphanEdit,
    Orphans, SpaceEdit,
};

/// A group that a transaction changes.
pub(crate) struct GroupEdit {
    pub desc: GroupDesc,
    pub blocks_changed: bool,
    pub inodes_changed: bool,
}

/// An operation on the metadata. See the module's text.
pub struct Txn<'v> {
    /// For beginning and finishing; what works within a transaction has the parts below.
    pub(super) parts: &'v Parts,
    pub(crate) volume: &'v Volume,
    pub(crate) allocator: &'v Allocator,
    pub(crate) orphans: &'v Orphans,
    pub(crate) holds: &'v Holds,
    pub(crate) names: &'v NameCache,
    pub(crate) meta: MutexGuard<'v, MetaState>,
    pub(super) blocks: BTreeMap<u64, Bytes>,
    /// Those of `blocks` that are data: not to be kept among the metadata.
    pub(super) data: RangeSet,
    pub(super) revokes: BTreeSet<u64>,
    pub(crate) inodes: BTreeMap<InodeNo, InodeEdit>,
    /// Inodes that were looked at, a few: they stay what they are while the lock is held.
    pub(crate) seen: RefCell<Vec<Arc<Inode>>>,
    /// Groups that it changes.
    pub(super) groups: BTreeMap<GroupNo, GroupEdit>,
    pub(crate) superblock: Option<Box<Superblock>>,
    pub(crate) orphan_edit: Option<OrphanEdit>,
    pub(crate) space: SpaceEdit,
    /// Space that this transaction takes was promised when it was reserved: no quota is held
    /// against it any more.
    pub(crate) quota_promised: bool,
    /// It takes space for data that was not promised: quotas hold for all of it.
    pub(crate) quota_asked: bool,
    pub(crate) xattr_notes: Notes,
    pub(super) wait_for: Vec<Completion>,
    /// Names that come and go.
    pub(crate) name_edits: Vec<NameEdit>,
    /// The names that came and went, if this can be recorded in a fast commit.
    pub(crate) recorded: Option<Vec<NameRecord>>,
    /// Whether a fast commit cannot record this transaction.
    pub(crate) ineligible: bool,
    /// A block that is not in memory ends the transaction.
    yields: bool,
    /// Blocks that planted bugs keep in memory only.
    pub(super) left_out: BTreeSet<u64>,
}

impl<'v> Txn<'v> {
    pub(crate) fn new(parts: &'v Parts) -> Self {
        Txn {
            parts,
            volume: &parts.volume,
            allocator: &parts.allocator,
            orphans: &parts.orphans,
            holds: &parts.holds,
            names: &parts.names,
            meta: parts.lock_meta(),
            blocks: BTreeMap::new(),
            data: RangeSet::new(),
            revokes: BTreeSet::new(),
            inodes: BTreeMap::new(),
            seen: RefCell::default(),
            groups: BTreeMap::new(),
            superblock: None,
            orphan_edit: None,
            space: SpaceEdit::default(),
            quota_promised: false,
            quota_asked: false,
            xattr_notes: Notes::new(),
            wait_for: Vec::new(),
            name_edits: Vec::new(),
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

    /// The journal's transaction that this one would join now.
    pub(crate) fn running_tid(&self) -> Tid {
        self.parts.log.running_tid()
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

    /// Whether a block, one that has no check, can be had without the device.
    pub(crate) fn in_memory(&self, block: u64) -> bool {
        let miss = Miss::Yield { ahead: 0 };
        self.blocks.contains_key(&block) || self.read_below(block, &|_| Ok(()), miss).is_ok()
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
        match self.groups.get(&group) {
            Some(edit) => &edit.desc,
            None => &self.meta.groups[group.0 as usize],
        }
    }

    /// A group's descriptor, to be changed.
    pub(crate) fn group_mut(&mut self, group: GroupNo) -> &mut GroupEdit {
        let current = &self.meta.groups[group.0 as usize];
        self.groups.entry(group).or_insert_with(|| GroupEdit {
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
}
