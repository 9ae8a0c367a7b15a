//! Inodes, as fast commits record them.

use steadfast_ext4_format::extents::{FILE_END, Node, ROOT_BYTES};
use steadfast_ext4_format::indirect::has_extents;
use steadfast_ext4_format::ondisk::{GOOD_OLD_INODE_SIZE, InodeFlags, InodeNo, RawInode};
use steadfast_ext4_format::{Ext4Error, Result, unsupported};
use steadfast_vfs::{FileType, FsError};

use super::{Replay, keeps_tree, unsupported_attributes};
use crate::fastcommit::space::{count_directory, is_inode_number_taken, take_inode_number};
use crate::state::{Inode, InodeEdit, Life};
use crate::xattr::release_xattrs;

/// `i_block` in the inode, and what follows it.
const BLOCK: std::ops::Range<usize> = 40..100;

impl Replay<'_> {
    /// Whether a fast commit may speak of the inode: not those that the file system keeps for
    /// itself (what is recorded of quota files is worked out anew).
    pub(super) fn is_ordinary(&self, no: InodeNo) -> Result<bool> {
        self.txn.volume.layout.inode_place(no)?;
        Ok(!self.txn.volume.layout.is_reserved(no))
    }

    /// The inode as it is now, if its number is taken.
    pub(super) fn present(&self, no: InodeNo) -> Result<Option<RawInode>> {
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
    pub(super) fn recorded(&mut self, no: InodeNo) -> Result<Option<RawInode>> {
        if let Some(raw) = self.records.remove(&no) {
            self.take_record(no, &raw)?;
        }
        self.present(no)
    }

    pub(super) fn take_record(&mut self, no: InodeNo, record: &[u8]) -> Result<()> {
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
        let inode = Inode::new(no, raw, self.txn.running_tid(), 0);
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
            return unsupported(format!("fast commit of the encrypted directory inode {no}"));
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
        let listed = self.txn.is_orphan(no);
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
        self.txn.orphans.remove(&mut self.txn, no)
    }
}
