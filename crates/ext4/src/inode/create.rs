//! New inodes.

use std::sync::Arc;

use steadfast_ext4_format::Result;
use steadfast_ext4_format::extents::{Node, ROOT_BYTES};
use steadfast_ext4_format::ondisk::{Incompat, InodeFlags, InodeNo, RawInode};
use steadfast_runtime::random_u64;
use steadfast_vfs::{FileType, NewNode};

use crate::meta::Txn;
use crate::state::{Inode, InodeEdit, Life};

/// Set-group-id.
const SETGID: u16 = 0o2000;

/// Flags that a new inode takes from its directory (`EXT4_FL_INHERITED`, without those of
/// features that are refused).
const INHERITED: InodeFlags = InodeFlags::SECURE_DELETE
    .union(InodeFlags::UNDELETE)
    .union(InodeFlags::COMPRESSED)
    .union(InodeFlags::SYNC)
    .union(InodeFlags::NO_DUMP)
    .union(InodeFlags::NO_ATIME)
    .union(InodeFlags::JOURNAL_DATA)
    .union(InodeFlags::NO_TAIL)
    .union(InodeFlags::DIR_SYNC)
    .union(InodeFlags::DAX)
    .union(InodeFlags::CASEFOLD);

/// Of those, what makes sense for anything (`EXT4_OTHER_FLMASK`).
const FOR_ALL: InodeFlags = InodeFlags::NO_DUMP.union(InodeFlags::NO_ATIME);

impl Txn<'_> {
    /// Makes an inode in or near the directory `parent`: no links, no name, no blocks, an empty
    /// extent tree or block map (no tree for a symbolic link). Its mode and access control list
    /// follow the directory's default list or, without one, the umask. The caller gives it a name
    /// and links.
    ///
    /// # Errors
    /// No space: no inode is free.
    pub(crate) fn create_inode(
        &mut self,
        parent: InodeNo,
        kind: FileType,
        node: NewNode,
    ) -> Result<InodeNo> {
        let no = self.create_inode_without_acls(parent, kind, node)?;
        self.inherit_acls(parent, no, node.umask)?;
        Ok(no)
    }

    /// As [`create_inode`](Self::create_inode), with just the mode in `node`.
    pub(crate) fn create_inode_without_acls(
        &mut self,
        parent: InodeNo,
        kind: FileType,
        node: NewNode,
    ) -> Result<InodeNo> {
        let above = self.raw_inode(parent)?;
        let no = self.allocate_inode_number(parent, &above, kind)?;
        self.prepare_place(no)?;
        let size = usize::from(self.volume.layout.inode_size);
        let mut raw = RawInode::new(size, self.superblock().extra_of_new_inodes());
        let mut mode = node.mode;
        raw.set_uid(node.uid);
        raw.set_gid(node.gid);
        if above.permissions() & SETGID != 0 {
            raw.set_gid(above.gid());
            if kind == FileType::Directory {
                mode |= SETGID;
            }
        }
        raw.set_mode(kind, mode);
        let mut flags = above.flags().intersection(INHERITED);
        if above.flags().contains(InodeFlags::PROJECT_INHERIT) {
            raw.set_project(above.project());
            if kind == FileType::Directory {
                flags.insert(InodeFlags::PROJECT_INHERIT);
            }
        }
        match kind {
            FileType::Directory => {}
            FileType::Regular => flags.remove(InodeFlags::DIR_SYNC | InodeFlags::CASEFOLD),
            _ => flags = flags.intersection(FOR_ALL),
        }
        let mapped = matches!(kind, FileType::Regular | FileType::Directory);
        if mapped && self.volume.uses_extents() {
            flags.insert(InodeFlags::EXTENTS);
            Node::empty(ROOT_BYTES).encode(raw.block_mut());
        }
        raw.set_flags(flags);
        let feature = self.volume.layout.features.incompat.contains(Incompat::INLINE_DATA);
        if feature && kind == FileType::Directory && raw.inline_room().is_some() {
            // Its first block is stored in the inode then, as any change that fits.
            raw.set_inline_contents(&[]);
        }
        raw.core_mut().generation.set(random_u64() as u32);
        let now = self.volume.clock.tick();
        raw.set_atime(now);
        raw.set_mtime(now);
        raw.set_ctime(now);
        raw.set_crtime(now);
        let inode = Arc::new(Inode::new(no, raw, self.volume.log.running_tid(), 0));
        let mut edit = InodeEdit::new(inode, Life::Begins);
        edit.data_changed = true;
        self.inodes.insert(no, edit);
        Ok(no)
    }

    /// Gives the inode's number back: its blocks are gone, it has no links and is no orphan.
    pub(crate) fn delete_inode(&mut self, no: InodeNo) -> Result<()> {
        let seconds = self.volume.clock.seconds() as u32;
        let edit = self.edit_inode(no)?;
        edit.life = Life::Ends;
        edit.raw.core_mut().dtime.set(seconds);
        edit.raw.set_links(0);
        let kind = edit.raw.file_type();
        self.free_inode_number(no, kind == Some(FileType::Directory))
    }
}
