//! The changes that fast commits record, made again in one transaction.
//!
//! They are taken in order, each over what the ones before it have left. What is recorded of an
//! inode in one fast commit is its state when that was written, but the parts of it come in an
//! order that suits a kernel; so an inode's own record is taken when it is first spoken of.
//!
//! * A record holds everything of an inode but where its blocks are, and, for a directory, its
//!   entries. Another generation or type than what is there means that the number has been
//!   given to another inode: what the old one had is free.
//! * Names are added and removed as if by the operations themselves; a name that is already as it
//!   should be is left alone. The directory's times become those of the inode, if they are later.
//! * An inode whose last name went is an orphan at the end, as after the operation itself: the next
//!   mount deletes it. So is a file with data beyond its end: the next mount cuts it.
//!
//! What kernels get wrong in this (counts of links of directories, targets of symbolic links, an
//! unnamed inode that is given a name) is made right.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use steadfast_ext4_format::extents::{FILE_END, Lookup, Node, ROOT_BYTES};
use steadfast_ext4_format::indirect::has_extents;
use steadfast_ext4_format::ondisk::{
    Extent, GOOD_OLD_INODE_SIZE, InodeFlags, InodeNo, RawInode, RoCompat,
};
use steadfast_ext4_format::{Ext4Error, Result};
use steadfast_journal::FastTag;
use steadfast_vfs::{FileType, FsError};

use super::space::{
    claim_blocks, count_directory, disclaim_blocks, is_inode_number_taken, sum_up_free,
    take_inode_number,
};
use super::tags::{Change, decode};
use crate::dir::InodeBlocks;
use crate::extents::change_tree;
use crate::extents::{add_blocks, find_extent, map_extent, next_extent};
use crate::indirect::change_map;
use crate::meta::{Parts, Txn};
use crate::namespace::{add_subdirectory, remove_subdirectory};
use crate::state::NameChange;
use crate::state::{Inode, InodeEdit, Life};
use crate::xattr::release_xattrs;

/// `i_block` in the inode, and what follows it.
const BLOCK: std::ops::Range<usize> = 40..100;

/// Makes the changes in a volume that is only staged.
///
/// # Errors
/// Corrupt: the fast commits or what they change make no sense. Unsupported: by name.
pub(super) fn replay(parts: &Parts, commits: &[Vec<FastTag>]) -> Result<()> {
    if parts.volume.layout.features.ro_compat.contains(RoCompat::BIGALLOC) {
        let what = "replaying fast commits of a file system with bigalloc: let e2fsck do it";
        return Err(Ext4Error::Unsupported { what: what.into() });
    }
    let size = usize::from(parts.volume.layout.inode_size);
    let mut decoded = Vec::with_capacity(commits.len());
    for commit in commits {
        let changes: Result<Vec<Change>> = commit.iter().map(|tag| decode(tag, size)).collect();
        decoded.push(changes?);
    }
    // What belongs to files is not for nodes of trees and directories.
    for change in decoded.iter().flatten() {
        if let Change::Mapped { extent, .. } = change {
            let end = extent.start.saturating_add(extent.len.into());
            parts.lock_meta().alloc.busy.insert(extent.start, end);
        }
    }
    let mut txn = parts.look();
    txn.quota_promised = true;
    let mut replay = Replay { txn, records: BTreeMap::new(), touched: BTreeSet::new() };
    for commit in &decoded {
        replay.commit(commit)?;
    }
    replay.end()
}

struct Replay<'v> {
    txn: Txn<'v>,
    /// Inodes of which this fast commit holds a record that has not been taken yet.
    records: BTreeMap<InodeNo, Bytes>,
    touched: BTreeSet<InodeNo>,
}

impl<'v> Replay<'v> {
    fn commit(&mut self, changes: &[Change]) -> Result<()> {
        self.records = changes
            .iter()
            .filter_map(|change| match change {
                Change::Inode { no, raw } => Some((*no, raw.clone())),
                _ => None,
            })
            .collect();
        for change in changes {
            match change {
                Change::Inode { no, raw } => self.take_record(*no, raw)?,
                Change::Mapped { no, extent } => self.map(*no, *extent)?,
                Change::Unmapped { no, from, to } => self.unmap(*no, *from, *to)?,
                Change::Name { what, dir, no, name } => match what {
                    NameChange::Unlinked => self.remove_name(*dir, *no, name)?,
                    NameChange::Linked => self.add_name(*dir, *no, name, false)?,
                    NameChange::Created => self.add_name(*dir, *no, name, true)?,
                },
            }
        }
        Ok(())
    }

    /// Whether a fast commit may speak of the inode: not those that the file system keeps for
    /// itself (what is recorded of quota files is worked out anew).
    fn is_ordinary(&self, no: InodeNo) -> Result<bool> {
        self.txn.volume.layout.inode_place(no)?;
        Ok(no == InodeNo::ROOT || no >= self.txn.volume.layout.first_inode)
    }

    /// The inode as it is now, if its number is taken.
    fn present(&self, no: InodeNo) -> Result<Option<RawInode>> {
        if !self.is_ordinary(no)? || !is_inode_number_taken(&self.txn, no)? {
            return Ok(None);
        }
        match self.txn.raw_inode(no) {
            Ok(raw) => Ok(Some(raw)),
            Err(Ext4Error::Fs(FsError::NotFound)) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// As [`present`](Self::present), once the inode's record of this fast commit has been taken.
    fn recorded(&mut self, no: InodeNo) -> Result<Option<RawInode>> {
        if let Some(raw) = self.records.remove(&no) {
            self.take_record(no, &raw)?;
        }
        self.present(no)
    }

    fn take_record(&mut self, no: InodeNo, record: &[u8]) -> Result<()> {
        if !self.is_ordinary(no)? {
            return Ok(());
        }
        self.records.remove(&no);
        self.touched.insert(no);
        let recorded = self.checked(no, record)?;
        let kind = recorded.file_type();
        let old = self.present(no)?;
        let same = old
            .as_ref()
            .filter(|old| old.generation() == recorded.generation() && old.file_type() == kind);
        let raw = match same {
            Some(old) => self.renewed(no, old, &recorded, record.len())?,
            None => self.begun(recorded, record.len())?,
        };
        match &old {
            Some(old) if same.is_none() => self.clear_out(no, old)?,
            _ => {}
        }
        let directory = kind == Some(FileType::Directory);
        if old.is_some() {
            let was_directory = old.and_then(|old| old.file_type()) == Some(FileType::Directory);
            if was_directory != directory {
                count_directory(&mut self.txn, no, directory)?;
            }
            return self.txn.modify_inode(no, |now| *now = raw);
        }
        if !is_inode_number_taken(&self.txn, no)? {
            take_inode_number(&mut self.txn, no, directory)?;
        }
        let inode = Inode::new(no, raw, self.txn.parts.log.running_tid(), 0);
        self.txn.inodes.insert(no, InodeEdit::new(inode.into(), Life::Begins));
        Ok(())
    }

    /// The inode of a record, if it can be one.
    fn checked(&self, no: InodeNo, record: &[u8]) -> Result<RawInode> {
        let layout = &self.txn.volume.layout;
        let bad = |what| Err(Ext4Error::corrupt(what, format!("fast commit, inode {no}")));
        let size = usize::from(layout.inode_size);
        let mut bytes = vec![0; size];
        bytes[..record.len()].copy_from_slice(record);
        let recorded = RawInode::from_bytes(&bytes);
        let Some(kind) = recorded.file_type() else { return bad("no valid file type") };
        let extra = recorded.extra().map_or(0, |e| usize::from(e.extra_isize.get()));
        if GOOD_OLD_INODE_SIZE + extra > size || !extra.is_multiple_of(4) {
            return bad("impossible size of its extra fields");
        }
        if recorded.size() > layout.max_file_size() {
            return bad("impossible size");
        }
        if kind == FileType::Directory && recorded.flags().contains(InodeFlags::ENCRYPTED) {
            let what = format!("fast commit of the encrypted directory inode {no}");
            return Err(Ext4Error::Unsupported { what });
        }
        Ok(recorded)
    }

    /// The inode that is there, with what a record of `len` bytes says of it.
    fn renewed(
        &self,
        no: InodeNo,
        old: &RawInode,
        recorded: &RawInode,
        len: usize,
    ) -> Result<RawInode> {
        if recorded.file_acl() != old.file_acl() {
            return Err(unsupported_attributes(no));
        }
        let block_size = self.txn.volume.layout.block_size;
        let mut raw = old.clone();
        raw.as_mut_bytes()[..BLOCK.start].copy_from_slice(&recorded.as_bytes()[..BLOCK.start]);
        raw.as_mut_bytes()[BLOCK.end..len].copy_from_slice(&recorded.as_bytes()[BLOCK.end..len]);
        raw.set_sectors(old.sectors(block_size), block_size);
        // A place in the list of orphans is not the record's to give.
        let listed = self.txn.orphans().contains(no);
        raw.core_mut().dtime.set(if listed { old.core().dtime.get() } else { 0 });
        if old.file_type() == Some(FileType::Directory) {
            raw.set_links(old.links());
            raw.set_size(old.size());
            let ours = InodeFlags::EXTENTS | InodeFlags::INLINE_DATA | InodeFlags::INDEX;
            raw.set_flags((recorded.flags() - ours) | (old.flags() & ours));
            return Ok(raw);
        }
        if keeps_tree(recorded) {
            if !keeps_tree(old) {
                Node::empty(ROOT_BYTES).encode(raw.block_mut());
            }
        } else if !recorded.is_mapped() {
            raw.block_mut().copy_from_slice(recorded.block());
        }
        Ok(raw)
    }

    /// A new inode: what a record of `len` bytes says, and nothing mapped.
    fn begun(&self, recorded: RawInode, len: usize) -> Result<RawInode> {
        let block_size = self.txn.volume.layout.block_size;
        let mut raw = recorded;
        raw.as_mut_bytes()[len..].fill(0);
        if raw.file_acl() != 0 {
            return Err(unsupported_attributes(InodeNo::NONE));
        }
        raw.set_sectors(0, block_size);
        raw.core_mut().dtime.set(0);
        if raw.file_type() == Some(FileType::Directory) {
            if raw.is_inline() {
                raw.leave_inline(self.txn.volume.uses_extents());
            }
            // Its entries are recorded one by one; it gets its first block with its name.
            raw.set_flags(raw.flags() - InodeFlags::INDEX);
            raw.set_size(0);
            raw.set_links(0);
        }
        if has_extents(&raw) {
            Node::empty(ROOT_BYTES).encode(raw.block_mut());
        } else if raw.is_mapped() {
            raw.block_mut().fill(0);
        }
        Ok(raw)
    }

    /// Frees everything that an inode has whose number is another's now.
    fn clear_out(&mut self, no: InodeNo, old: &RawInode) -> Result<()> {
        if old.is_mapped() {
            self.unmap_blocks(no, 0, FILE_END)?;
        }
        if !release_xattrs(&mut self.txn, no)?.0.is_empty() {
            return Err(unsupported_attributes(no));
        }
        self.txn.parts.orphans.remove(&mut self.txn, no)
    }

    fn map(&mut self, no: InodeNo, extent: Extent) -> Result<()> {
        let Some(raw) = self.recorded(no)? else { return Ok(()) };
        if raw.file_type() == Some(FileType::Directory) || !raw.is_mapped() {
            let what = "a range of blocks for an inode that has none";
            return Err(Ext4Error::corrupt(what, format!("fast commit, inode {no}")));
        }
        self.touched.insert(no);
        if find_extent(&self.txn, no, extent.logical)? == Lookup::Mapped(extent) {
            return claim_blocks(&mut self.txn, extent.start, extent.len.into());
        }
        self.unmap_blocks(no, extent.logical.into(), extent.end())?;
        claim_blocks(&mut self.txn, extent.start, extent.len.into())?;
        // No clusters here: file systems that have them are refused.
        map_extent(&mut self.txn, no, extent, extent.len)
    }

    fn unmap(&mut self, no: InodeNo, from: u64, to: u64) -> Result<()> {
        let Some(raw) = self.recorded(no)? else { return Ok(()) };
        if raw.file_type() == Some(FileType::Directory) || !raw.is_mapped() {
            return Ok(());
        }
        self.touched.insert(no);
        self.unmap_blocks(no, from, to)
    }

    fn unmap_blocks(&mut self, no: InodeNo, from: u64, to: u64) -> Result<()> {
        let txn = &mut self.txn;
        let removed = if has_extents(&txn.raw_inode(no)?) {
            change_tree(txn, no, |tree| tree.remove(from, to))?
        } else {
            change_map(txn, no, |map| map.remove(from, to))?
        };
        for e in removed {
            disclaim_blocks(txn, e.start, e.len.into())?;
            add_blocks(txn, no, -i64::from(e.len))?;
        }
        Ok(())
    }

    /// The directory, if it is one that names can be added to.
    fn directory(&self, dir: InodeNo) -> Result<Option<RawInode>> {
        let raw = self.present(dir)?.filter(|raw| raw.file_type() == Some(FileType::Directory));
        if raw.as_ref().is_some_and(|raw| raw.flags().contains(InodeFlags::ENCRYPTED)) {
            let what = format!("fast commit of names in the encrypted directory inode {dir}");
            return Err(Ext4Error::Unsupported { what });
        }
        // A directory that was removed has no blocks.
        Ok(raw.filter(|raw| raw.size() > 0))
    }

    fn add_name(&mut self, dir: InodeNo, no: InodeNo, name: &[u8], first: bool) -> Result<()> {
        let inode = match self.present(no)? {
            Some(raw) if !first && raw.links() > 0 => Some(raw),
            _ => self.recorded(no)?,
        };
        let (Some(inode), Some(_)) = (inode, self.directory(dir)?) else { return Ok(()) };
        // OK to unwrap: an inode without a type is not loaded.
        let kind = inode.file_type().unwrap();
        let directory = kind == FileType::Directory;
        if directory && (!first || inode.size() > 0) {
            return Ok(());
        }
        let there = InodeBlocks::directory(&self.txn, dir)?.lookup(name)?;
        if let Some(there) = there {
            if there.ino == no {
                return Ok(());
            }
            self.remove_name(dir, there.ino, name)?;
        }
        self.touched.insert(no);
        let txn = &mut self.txn;
        if directory {
            InodeBlocks::directory(&mut *txn, no)?.init(dir)?;
            txn.modify_inode(no, |raw| raw.set_links(2))?;
            add_subdirectory(txn, dir)?;
        } else {
            let links = if first { 1 } else { inode.links().saturating_add(1) };
            if inode.links() == 0 {
                txn.parts.orphans.remove(txn, no)?;
            }
            txn.modify_inode(no, |raw| raw.set_links(links))?;
        }
        InodeBlocks::directory(&mut *txn, dir)?.insert(name, no, kind)?;
        self.touch(dir, &inode)
    }

    fn remove_name(&mut self, dir: InodeNo, no: InodeNo, name: &[u8]) -> Result<()> {
        let (Some(inode), Some(_)) = (self.present(no)?, self.directory(dir)?) else {
            return Ok(());
        };
        let found = InodeBlocks::directory(&self.txn, dir)?.lookup(name)?;
        let Some(found) = found.filter(|found| found.ino == no) else { return Ok(()) };
        self.touched.insert(no);
        let txn = &mut self.txn;
        if inode.file_type() == Some(FileType::Directory) {
            if !InodeBlocks::directory(&*txn, no)?.is_empty()? {
                let place = format!("fast commit, directory inode {no}");
                return Err(Ext4Error::corrupt("removed, but not empty", place));
            }
            txn.modify_inode(no, |raw| {
                raw.set_links(0);
                raw.set_size(0);
            })?;
            remove_subdirectory(txn, dir)?;
        } else {
            txn.modify_inode(no, |raw| raw.set_links(raw.links().saturating_sub(1)))?;
        }
        InodeBlocks::directory(&mut *txn, dir)?.remove(&found)?;
        self.touch(dir, &inode)
    }

    /// The directory has changed when the inode did.
    fn touch(&mut self, dir: InodeNo, inode: &RawInode) -> Result<()> {
        let at = inode.ctime();
        self.txn.modify_inode(dir, |raw| {
            if raw.ctime() < at {
                raw.set_ctime(at);
            }
            if raw.mtime() < at {
                raw.set_mtime(at);
            }
        })
    }

    /// What follows from all of it.
    fn end(mut self) -> Result<()> {
        for no in std::mem::take(&mut self.touched) {
            let Some(raw) = self.present(no)? else { continue };
            let beyond = raw.is_mapped() && self.claim_all(no, &raw)?;
            if raw.links() == 0 || beyond {
                self.txn.parts.orphans.add(&mut self.txn, no)?;
            }
        }
        sum_up_free(&mut self.txn);
        self.txn.finish().map(drop)
    }

    /// Claims the inode's blocks. Whether a regular file has data beyond its end.
    fn claim_all(&mut self, no: InodeNo, raw: &RawInode) -> Result<bool> {
        let end = raw.size().div_ceil(self.txn.volume.block_size());
        let (mut at, mut beyond) = (0, false);
        while let Some(e) = next_extent(&self.txn, no, at)? {
            claim_blocks(&mut self.txn, e.start, e.len.into())?;
            at = e.end();
            beyond |= !e.unwritten && at > end;
        }
        Ok(beyond && raw.file_type() == Some(FileType::Regular))
    }
}

/// Whether `i_block` is the root of a tree of extents.
fn keeps_tree(raw: &RawInode) -> bool {
    has_extents(raw) && !raw.is_inline()
}

fn unsupported_attributes(no: InodeNo) -> Ext4Error {
    let what = format!("fast commits that change the attributes of an inode ({no})");
    Ext4Error::Unsupported { what }
}
